"""Exports a bi-encoder to the folder that scores without torch. Needs the ``train`` extra."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn

from condsim import __version__
from condsim.data.csts import iter_csts
from condsim.errors import InputError, ModelError, unknown_name
from condsim.io import check_folder, replacing, write_text
from condsim.model.backbone import quiet_loading, without_progress_bars
from condsim.model.conditions import card_texts, conditional_sentences
from condsim.model.onnx import MODEL_FILE, TOKENIZER_FILE
from condsim.model.settings import FILE_NAME, Fact, Settings
from condsim.model.trained import check_loaded, check_not_pickled, kind_of, loading_reason
from condsim.training.quantize import quantize_static
from condsim.types import FloatArray

_ROWS = 256  # more change the measured ranges little

_SENTENCES, _CONDITIONS = (
    part.splitlines()
    for part in Path(__file__).with_name("samples.txt").read_text("utf-8").split("\n\n")
)

SAMPLES: tuple[tuple[str, str], ...] = tuple(
    (sentence, _CONDITIONS[(3 * number + 5 * repeat) % len(_CONDITIONS)])
    for number, sentence in enumerate(_SENTENCES)
    for repeat in range(4)
)
"""Pairs of sentence and condition, typical of photo captions."""


def samples_of(path: Path) -> list[tuple[str, str]]:
    """Takes the conditional sentences of the first rows of a file.

    Args:
        path: A file of C-STS rows, labelled or not.

    Returns:
        Pairs of sentence and condition, two a row.

    Raises:
        InputError: If the file cannot be read or breaks a rule.
    """
    rows = islice(iter_csts(path, labels=False), _ROWS)
    return [(text, row.condition) for row in rows for text in (row.sentence1, row.sentence2)]


Quantize = Literal["int8"]

_LOGGER = logging.getLogger("condsim")
_SAME = 0.9999  # cosine below which a traced graph is not the model
_BATCH = 16  # samples run at once
_OPSET = 17  # the first with LayerNormalization; ONNX Runtime reads it since 1.14
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True)
class ExportResult:
    """What was written and how near it is to the model."""

    output: Path  # the folder
    size: int  # bytes of ``model.onnx``
    cosine_mean: float  # mean cosine between exported and original embeddings of the samples
    cosine_worst: float  # the lowest of them


@without_progress_bars()
def export_onnx(
    model_folder: Path | str,
    output_folder: Path | str,
    *,
    quantize: Quantize | None = "int8",
    samples: Sequence[tuple[str, str]] = SAMPLES,
    name: str | None = None,
    facts: Mapping[str, Fact] | None = None,
) -> ExportResult:
    """Exports a bi-encoder: any transformer, pooling, dense layers; tokens in, embedding out.

    Writes ``model.onnx``, ``tokenizer.json``, ``condsim.json`` and ``README.md``.

    Args:
        model_folder: A folder that sentence-transformers loads, with ``condsim.json`` if it has an
            order and a calibration of its own.
        output_folder: The folder to write; it is made if need be, and must not be the model's.
        quantize: ``int8`` for a quarter of the size and three times the speed, or None for float32.
        samples: (sentence, condition) of texts as the model will see them, a hundred or so, on
            which the range of activations is measured. Those of the training data are best.
        name: Short name, shown in tables; that of the model if None.
        facts: What else ``condsim info`` and the card shall show.

    Raises:
        InputError: If there are no samples, ``quantize`` is unknown or the folders are the same.
        ModelError: If the model cannot be loaded, is no bi-encoder or cannot be exported.
    """
    source, output = Path(model_folder), Path(output_folder)
    if quantize not in ("int8", None):
        raise unknown_name("quantize", str(quantize), ("int8",))
    if not samples:
        raise InputError("The 'samples' must be (sentence, condition) pairs, at least one.")
    if output.exists() and output.resolve() == source.resolve():
        raise InputError(f"{output} is the model itself. Give another folder to write.")
    settings = _settings(source)
    _check_place(output, name or settings.name)
    model = _load_bi_encoder(source)
    pairs = conditional_sentences(*zip(*samples, strict=True), order=settings.order)
    expected = np.asarray(
        model.encode(pairs, normalize_embeddings=True, show_progress_bar=False), np.float32
    )
    graph, names = _trace(model)
    parts = [pairs[start : start + _BATCH] for start in range(0, len(pairs), _BATCH)]
    batches = [
        {name: value.numpy() for name, value in model.preprocess(part).items() if name in names}
        for part in parts
    ]
    _compare(graph, batches, expected, at_least=_SAME)
    if quantize is not None:
        graph = quantize_static(graph, batches)
    cosines = _compare(graph, batches, expected, at_least=-1.0)
    settings = replace(
        settings,
        name=name or settings.name,
        dimension=expected.shape[1],
        max_seq_length=model.max_seq_length,
        facts={
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "precision": quantize or "float32",
            **settings.facts,
            **(facts or {}),
        },
        condsim=__version__,
    )
    output.mkdir(parents=True, exist_ok=True)
    _write(output, graph, model, settings)
    result = ExportResult(
        output=output,
        size=(output / MODEL_FILE).stat().st_size,
        cosine_mean=float(cosines.mean()),
        cosine_worst=float(cosines.min()),
    )
    _LOGGER.info(
        "%s: %.1f MB, cosine to float32 %.4f on average, %.4f at worst",
        output,
        result.size / 1e6,
        result.cosine_mean,
        result.cosine_worst,
    )
    return result


def _check_place(output: Path, name: str) -> None:
    """Refuses a folder that holds anything but an earlier export of a model of that name."""
    check_folder(output, what="exported model", own=[MODEL_FILE])
    if (output / MODEL_FILE).is_file() and (output / FILE_NAME).is_file():
        other = Settings.load(output).name
        if other != name or (output / "modules.json").exists():
            raise InputError(f"{output} holds the model {other!r}; give another folder to write.")


def _settings(source: Path) -> Settings:
    """Settings of the model, or those of a plain sentence-transformers model."""
    if not (source / "modules.json").is_file():
        raise ModelError(
            f"{source} is no folder that sentence-transformers wrote (there is no modules.json)."
        )
    if (source / FILE_NAME).is_file():
        settings = Settings.load(source)
    else:
        settings = Settings(kind_of(source), source.resolve().name, order="condition-first")
    if settings.kind != "bi-encoder":
        raise ModelError(
            f"{source} is a {settings.kind}; only a bi-encoder can be exported, for its embedding "
            "comes from one text. Load the folder itself with condsim.load, with the extra 'train'."
        )
    return settings


def _load_bi_encoder(source: Path) -> SentenceTransformer:
    check_not_pickled(source)
    try:
        with quiet_loading():
            model = SentenceTransformer(
                str(source),
                device="cpu",
                local_files_only=True,
                # Written out, attention becomes plain operators, which ONNX Runtime fuses best.
                model_kwargs={"attn_implementation": "eager"},
            )
    except Exception as error:  # a damaged file makes the libraries raise all kinds of errors
        reason = loading_reason(error)
        raise ModelError(f"The bi-encoder {str(source)!r} cannot be loaded: {reason}") from error
    if (source / FILE_NAME).is_file():
        check_loaded(model, source)
    first = next(iter(model.children()))
    if not isinstance(first, Transformer) or not hasattr(model.tokenizer, "backend_tokenizer"):
        raise ModelError(
            f"{source} must begin with a Transformer that has a fast tokenizer. Got "
            f"{type(first).__name__} with {type(model.tokenizer).__name__} instead."
        )
    return model.float().eval()


def _compare(
    graph: onnx.ModelProto,
    batches: Iterable[dict[str, NDArray[np.int64]]],
    expected: FloatArray,
    *,
    at_least: float,
) -> FloatArray:
    """Cosines between the graph's embeddings and the model's, (samples,)."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found = np.concatenate([session.run(["embedding"], batch)[0] for batch in batches])
    cosines: FloatArray = np.einsum("nd,nd->n", found, expected)
    if not cosines.min() >= at_least:  # nor NaN
        raise ModelError(
            "This model cannot be exported: the traced graph computes something else (its lowest "
            f"cosine to the model is {cosines.min():.4f})."
        )
    return cosines


class _Pipeline(nn.Module):
    """Every module of an encoder in turn, then length 1."""

    def __init__(self, model: SentenceTransformer, names: tuple[str, ...]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(model.children())
        self.names = names

    def forward(self, *tokens: Tensor) -> Tensor:
        """Embeds tokens."""
        features = dict(zip(self.names, tokens, strict=True))
        for stage in self.stages:
            features = stage(features)
        return nn.functional.normalize(features["sentence_embedding"], p=2.0, dim=-1)


def _trace(model: SentenceTransformer) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Traces an encoder; also tells which of the three usual inputs it reads."""
    # The exporter is torch's older one (``dynamo=False``): it needs nothing but ``onnx``, and its
    # graph is what ONNX Runtime's own fusions know.
    # Rows of different lengths, so that the traced graph has seen padding.
    features = model.preprocess([["the color", "A red ball."], ["the animal", "A dog"]])
    names = tuple(name for name in _INPUTS if name in features)
    axes = {name: {0: "batch", 1: "tokens"} for name in names} | {"embedding": {0: "batch"}}
    pipeline = _Pipeline(model, names).eval()
    with tempfile.TemporaryDirectory(prefix="condsim-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of itself and of each shape it reads
        path = Path(folder, "traced.onnx")
        with torch.no_grad():
            torch.onnx.export(
                pipeline,
                tuple(features[name] for name in names),
                str(path),
                input_names=list(names),
                output_names=["embedding"],
                dynamic_axes=axes,
                opset_version=_OPSET,
                dynamo=False,
            )
        return onnx.load(str(path)), names


def _write(
    output: Path, graph: onnx.ModelProto, model: SentenceTransformer, settings: Settings
) -> None:
    with replacing(output / MODEL_FILE) as partial:
        onnx.save(graph, str(partial))
    tokenizer = model.tokenizer
    backend = tokenizer.backend_tokenizer
    # Padding is stated for its id alone; the scorer pads by itself.
    backend.enable_padding(pad_id=tokenizer.pad_token_id or 0, pad_token=str(tokenizer.pad_token))
    backend.no_truncation()
    write_text(output / TOKENIZER_FILE, backend.to_str())
    write_text(output / "README.md", _card(settings))
    settings.save(output)


def _card(settings: Settings) -> str:
    """The text of ``README.md``."""
    shown = {
        name.replace("_", " "): f"{value:,}" if isinstance(value, int) else value
        for name, value in settings.facts.items()
    }
    facts = "\n".join(f"| {name} | {value} |" for name, value in shown.items())
    first, second = card_texts(settings.order)
    card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    return card.format(settings=settings, facts=facts, first=first, second=second)
