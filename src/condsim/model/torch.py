"""Models of sentence-transformers: loading, which refuses damaged folders, and scorers on them.

Importing this module needs no torch.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from condsim.errors import MissingExtraError, ModelError, check_name, one_line, require
from condsim.model.applicability import head_of
from condsim.model.base import PairScorer, Rows, Scale, rescaled
from condsim.model.calibration import UNCALIBRATED, Calibration
from condsim.model.embedding import EmbeddingScorer
from condsim.model.inputs import (
    Input,
    Inputs,
    Layout,
    Order,
    check_order,
    cross_encoder_inputs,
    record_truncation,
    token_batches,
)
from condsim.model.reading import Tokenized
from condsim.model.settings import FILE_NAME, Kind, ModelSettings
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from tokenizers import Tokenizer

    from condsim.model.builders import Pooling

Numbers = Literal["float32", "bfloat16", "float16"]
"""A number format. With ``bfloat16`` products are taken of numbers of 8 significant bits, with
``float16`` of 11, and added up in float32; weights, normalization and embeddings are float32."""

Precision = Literal["auto", "float32", "bfloat16", "float16"]
"""A number format, or ``auto``: on a processor bfloat16 if it is clearly faster, else float32."""

# A batch of as many tokens, padding included, keeps the matrix units of a processor busy.
BATCH_TOKENS_CPU = 1024
BATCH_TOKENS_GPU = 16_384
CROSS_ENCODER_ROWS = 32


# A fast tokenizer is changed by each call, and torch uses all processors for one batch anyway.
_ONE_THREAD = threading.RLock()


def check_precision(precision: str) -> None:
    """Refuse an unknown precision."""
    check_name("precision", precision, get_args(Precision))


class EncoderScorer(EmbeddingScorer):
    """Scores with a bi- or tri-encoder of sentence-transformers, which is not copied.

    ``numbers`` is the number format it computes in: float32, unless `with_precision` changed it.
    """

    numbers: Numbers = "float32"
    # Texts encoded at once where the number of tokens is unknown.
    texts_per_batch = 32

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        name: str,
        order: Order = "condition-first",
        calibration: Calibration | None = None,
    ) -> None:
        """Wrap a loaded model that takes pairs of texts."""
        super().__init__(
            name=name,
            order=order,
            dimension=model.get_embedding_dimension() or 0,
            calibration=calibration,
        )
        self.model = model

    def with_precision(self, precision: Precision) -> Self:
        """Make a scorer that shares the model and computes in another number format."""
        check_precision(precision)
        if precision == "auto":
            from condsim.model.precision import uses_bfloat16

            is_faster = self.model.device.type == "cpu" and uses_bfloat16("auto")
            precision = "bfloat16" if is_faster else "float32"
        scorer = copy.copy(self)
        scorer.numbers = precision
        # Cached vectors have another number format.
        scorer.set_cache_size(self._cache.size if self._cache else 0)
        return scorer

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        # Autocast is around all batches, so that weights are rounded once.
        with _ONE_THREAD, self._autocast():
            return self._embed_long(texts, self._vectors)

    @property
    def _backend_tokenizer(self) -> Tokenizer | None:
        return getattr(self.model.tokenizer, "backend_tokenizer", None)

    @property
    def _joint(self) -> bool:
        from condsim.model.tri_encoder import TriEncoder

        return not isinstance(self.model[0], TriEncoder)

    def _tokenized(self, inputs: Sequence[Input]) -> Tokenized:
        """Pair each input with its number of tokens, 0 if that is unknown."""
        lengths = _token_lengths(self.model, inputs)
        if lengths is None:
            return Tokenized([(item, 0) for item in inputs])
        limit = getattr(self.model, "max_seq_length", None) or int(lengths.max(initial=0))
        longer = np.flatnonzero(lengths > limit).tolist()
        if longer and not self._joint:
            # Text and condition have the limit each.
            longer = [row for row in longer if self._longest(inputs[row]) > limit]
        sizes = np.minimum(lengths, limit).tolist()
        return Tokenized(list(zip(inputs, sizes, strict=True)), longer, limit)

    def _longest(self, item: Input) -> int:
        """Tokens of the longer one of a text and its condition."""
        lengths = _token_lengths(self.model, [item] if isinstance(item, str) else item)
        return 0 if lengths is None else int(lengths.max())

    def _vectors(self, sized: Sequence[tuple[Input, int]]) -> FloatArray:
        """Embed in batches of similar length; returns (m, dimension)."""
        vectors = np.empty((len(sized), self.dimension), dtype=np.float32)
        inputs = [item for item, _ in sized]
        lengths = np.array([length for _, length in sized], dtype=np.int64)
        if not lengths.all():
            # Averaged word vectors, for example; sentence-transformers sorts by characters.
            vectors[:] = self._encode(inputs, self.texts_per_batch)
        else:
            on_cpu = self.model.device.type == "cpu"
            tokens = BATCH_TOKENS_CPU if on_cpu else BATCH_TOKENS_GPU
            for batch in token_batches(lengths, tokens=tokens):
                vectors[batch] = self._encode([inputs[row] for row in batch], len(batch))
        if self.numbers != "float32":
            # Lengths that were scaled in half the bits are 1 only to a few digits.
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms > 0, norms, 1)
        return vectors

    def _encode(self, texts: list[Any], batch_size: int) -> FloatArray:
        vectors = self.model.encode(
            texts, batch_size=batch_size, show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(vectors, dtype=np.float32)

    def _autocast(self) -> AbstractContextManager[object]:
        if self.numbers == "float32":
            return nullcontext()
        import torch

        return torch.autocast(self.model.device.type, dtype=getattr(torch, self.numbers))


def _token_lengths(
    model: SentenceTransformer | CrossEncoder, inputs: Sequence[Input]
) -> IntArray | None:
    """Count the tokens of each text or pair, without a limit, (m,); None if that is unknown."""
    from transformers import PreTrainedTokenizerBase

    tokenizer = getattr(model, "tokenizer", None)
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return None
    if not inputs:
        return np.empty(0, np.int64)
    encoding = tokenizer(
        [item if isinstance(item, str) else tuple(item) for item in inputs],
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return np.array([len(ids) for ids in encoding["input_ids"]], dtype=np.int64)


class CrossEncoderScorer(PairScorer):
    """Scores by a cross-encoder's one output, the raw score.

    Without conditions the input is the two sentences, whatever the order; that is for a model
    trained without them. Of a model with a logit for each label (the objective ``classification``)
    the raw score is the expected label, from 0 to 1. Models that condsim did not make
    have the layout ``pair``.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        name: str,
        order: Order = "sentence-first",
        calibration: Calibration | None = None,
        layout: Layout = "pair",
        inputs: Inputs = "both",
    ) -> None:
        """Wrap a loaded model of 1 output or 5, whose tokenizer has a separator."""
        from condsim.model.builders import separator_of

        check_order(order)
        self.model, self.name = model, name
        self.order: Order = order
        self.calibration = calibration
        self.layout: Layout = layout
        self.inputs: Inputs = inputs
        self._separator = separator_of(model.tokenizer, layout)
        if model.num_labels not in (1, 5):
            raise ModelError(
                f"{name}: a cross-encoder must have 1 output, the similarity, or 5, one for each "
                f"label; got {model.num_labels}."
            )

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        texts = cross_encoder_inputs(
            rows.sentences[0],
            rows.sentences[1],
            rows.conditions,
            separator=self._separator,
            order=self.order,
            layout=self.layout,
            inputs=self.inputs,
        )
        with _ONE_THREAD:
            limit, lengths = self.model.max_seq_length, _token_lengths(self.model, texts)
            if limit and lengths is not None:
                record_truncation(self.name, limit, int((lengths > limit).sum()))
            return rescaled(self._outputs(texts), self.calibration, scale)

    def _outputs(self, texts: list[Input]) -> FloatArray:
        """Compute the raw scores, (n,); the library's own ``predict`` takes only pairs."""
        import torch
        from sentence_transformers.util import batch_to_device

        model, raw = self.model.eval(), np.empty(len(texts), np.float32)
        activation = model.activation_fn or torch.nn.Identity()
        order = np.argsort([-sum(map(len, text)) for text in texts], kind="stable")
        for start in range(0, len(order), CROSS_ENCODER_ROWS):
            rows = order[start : start + CROSS_ENCODER_ROWS]
            with torch.inference_mode():
                features = model.preprocess([texts[row] for row in rows])
                outputs = model(batch_to_device(features, model.device))["scores"].float()
                scores = activation(outputs).reshape(len(rows), -1)  # (rows, outputs)
                if scores.shape[1] > 1:
                    levels = torch.linspace(0, 1, scores.shape[1], device=scores.device)
                    scores = scores.softmax(dim=1) @ levels
            raw[rows] = scores.reshape(-1).cpu().numpy()
        return raw


_MODULES = "modules.json"


def load_trained(
    folder: Path | str, *, device: str | None = None
) -> EncoderScorer | CrossEncoderScorer:
    """Load a folder that sentence-transformers or `condsim.training` wrote as a scorer.

    It has the settings of ``condsim.json`` if the folder contains one.
    """
    path = Path(folder)
    has_settings = (path / FILE_NAME).is_file()
    if not (path / _MODULES).is_file():
        problem = f"has a {FILE_NAME} and no weights" if has_settings else "is not a model"
        raise ModelError(
            f"{folder} {problem}: a model folder contains model.onnx or {_MODULES}, as 'condsim "
            "train' writes it."
        )
    check_not_pickled(path)
    _require_library(f"The model {str(folder)!r} needs torch")
    if has_settings:
        settings = ModelSettings.load(path)
    else:
        kind = kind_of(path)
        order: Order = "sentence-first" if kind == "cross-encoder" else "condition-first"
        settings = ModelSettings(kind=kind, name=path.name, order=order)
    scorer = _load_scorer(str(path), settings, device=device)
    if has_settings:
        _check_vocabulary(scorer.model)
        if not (path / "adapter_config.json").exists():
            _check_parameters(scorer.model, _weight_files(path))
    if isinstance(scorer, EmbeddingScorer):
        scorer.head = head_of(path)
        scorer.folder = path.resolve()
    return scorer


def load_hub_model(name: str, *, device: str | None = None) -> EncoderScorer | CrossEncoderScorer:
    """Load a model of the Hub as a bi-encoder without calibration; see `load_trained`."""
    _require_library(f"There is no folder {name!r}; a Hub name needs more than the core")
    settings = ModelSettings(kind="bi-encoder", name=Path(name).name, order="condition-first")
    scorer = _load_scorer(name, settings, device=device)
    architectures: list[str] = []
    for module in scorer.model.modules():
        config = getattr(module, "config", None)
        architectures += getattr(config, "architectures", None) or ()
    if any(item.endswith("ForSequenceClassification") for item in architectures):
        raise ModelError(f"{name} is a cross-encoder; name it cross-encoder:{name}.")
    return scorer


def load_cross_encoder(model: str) -> CrossEncoderScorer:
    """Load a cross-encoder without settings, such as one of the Hub."""
    _require_library("A cross-encoder needs torch")
    loaded = _load_modules(model, "cross-encoder", device=None)
    # Five outputs are labels of similarity only in a model that condsim trained.
    if loaded.num_labels != 1:
        raise ModelError(
            f"The cross-encoder {model!r} must have one output, a similarity; it has "
            f"{loaded.num_labels}, as a classifier (NLI) has."
        )
    return CrossEncoderScorer(loaded, name=Path(model).name)


def transformer_scorer(model: str, *, pooling: Pooling = "mean") -> EncoderScorer:
    """Make a scorer of the transformer of a model, untrained for similarity; scores are cosines."""
    _require_library("An encoder needs torch")
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(model, pooling=pooling).eval()
    return EncoderScorer(encoder, name=f"{pooling}:{Path(model).name}")


def _require_library(reason: str) -> None:
    try:
        require("sentence_transformers", extra="train")
    except MissingExtraError as error:
        raise MissingExtraError(f"{reason}. {error}") from error


def _load_scorer(
    model: str, settings: ModelSettings, *, device: str | None
) -> EncoderScorer | CrossEncoderScorer:
    loaded = _load_modules(model, settings.kind, device=device)
    name, order, calibration = settings.name, settings.order, settings.calibration
    if settings.kind != "cross-encoder":
        calibration = calibration or UNCALIBRATED
        return EncoderScorer(loaded, name=name, order=order, calibration=calibration)
    return CrossEncoderScorer(
        loaded,
        name=name,
        order=order,
        calibration=calibration,
        layout=settings.layout,
        inputs=settings.inputs,
    )


def _load_modules(model: str, kind: Kind, *, device: str | None) -> Any:  # noqa: ANN401
    """Load a CrossEncoder or a SentenceTransformer."""
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from condsim.model.builders import check_hub, quiet_loading
    from condsim.model.tri_encoder import load_tri_encoder

    try:
        with quiet_loading():
            if kind == "tri-encoder":
                encoder = load_tri_encoder(model)
                return encoder if device is None else encoder.to(device)
            check_hub(model)
            loader = CrossEncoder if kind == "cross-encoder" else SentenceTransformer
            return loader(model, device=device)
    except ModelError:
        raise
    # A damaged file makes the libraries raise all kinds of errors.
    except Exception as error:
        problem = f"The {kind} {model!r} cannot be loaded"
        if not Path(model).is_dir():
            problem = f"{model!r} is neither a folder nor a model of the Hub"
        raise ModelError(f"{problem}: {loading_reason(error)}") from error


def loading_reason(error: Exception) -> str:
    """Describe in a line why a model cannot be loaded."""
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    # The message of transformers refers to a table on the terminal.
    if "ignore_mismatched_sizes" in reason:
        return "the shapes of its weights differ from those in its config.json."
    return reason


def kind_of(folder: Path) -> Kind:
    """Detect the kind of a sentence-transformers folder without ``condsim.json``."""
    config = folder / "config_sentence_transformers.json"
    message, advice = f"{folder}: {config.name} or {_MODULES} is damaged", "Download it again."
    causes = (OSError, ValueError, TypeError, KeyError, AttributeError)
    with one_line(message, *causes, advice=advice, kind=ModelError):
        modules = json.loads((folder / _MODULES).read_text(encoding="utf-8"))
        settings = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
        types = [str(module["type"]) for module in modules]
        is_cross_encoder = settings.get("model_type") == "CrossEncoder"
    if any(name.startswith("condsim.") for name in types):
        return "tri-encoder"
    return "cross-encoder" if is_cross_encoder else "bi-encoder"


def check_not_pickled(folder: Path) -> None:
    """Refuse a model with weights in a pickle, which can run code."""
    folders = {path.parent for path in _weight_files(folder)}
    for pickled in sorted(folder.glob("**/pytorch_model*.bin")):
        if pickled.parent not in folders:
            raise ModelError(
                f"{pickled} is a pickle, which can run code and is not read. Save the model with "
                "save_pretrained, which writes model.safetensors."
            )


def _weight_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("**/*.safetensors"))
    return [file for file in files if "checkpoints" not in file.relative_to(folder).parts]


def _check_parameters(model: Any, files: list[Path]) -> None:  # noqa: ANN401
    """Refuse a model with a parameter that no file contains: it would be random."""
    from safetensors import safe_open

    stored: set[str] = set()
    for file in files:
        with safe_open(file, framework="np") as tensors:
            stored.update(tensors.keys())
    for name, _ in model.named_parameters():
        # Files name a parameter without the names of the outer modules.
        parts = name.split(".")
        if not any(".".join(parts[start:]) in stored for start in range(len(parts))):
            raise ModelError(f"{files[0]} lacks {name!r}; download the model again.")


def _check_vocabulary(model: Any) -> None:  # noqa: ANN401
    """Refuse a tokenizer with token ids for which the model has no vector."""
    vocabulary: dict[str, int] = getattr(model.tokenizer, "get_vocab", dict)()
    special = set(getattr(model.tokenizer, "all_special_tokens", ()))
    if vocabulary and not vocabulary.keys() - special:
        raise ModelError("The model has no tokenizer; download it again.")
    largest = max(vocabulary.values(), default=0)
    first = next(iter(model.children()), None)
    size = getattr(getattr(first, "config", None), "vocab_size", None)
    if size is not None and largest >= size:
        raise ModelError(
            f"The tokenizer belongs to another model: its largest token id is {largest}, and this "
            f"model has {size} tokens; download it again."
        )
