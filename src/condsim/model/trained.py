"""Loading of models of sentence-transformers as scorers; damaged folders are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condsim.errors import MissingExtraError, ModelError, one_line, require
from condsim.model.applicability import head_of
from condsim.model.calibration import UNCALIBRATED
from condsim.model.embedding import EmbeddingScorer
from condsim.model.inputs import Order
from condsim.model.settings import FILE_NAME, Kind, ModelSettings
from condsim.model.torch import CrossEncoderScorer, EncoderScorer

if TYPE_CHECKING:
    from condsim.model.builders import Pooling

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
    library = require("sentence_transformers", extra="train")
    from condsim.model.builders import check_hub, quiet_loading

    check_hub(model)
    try:
        with quiet_loading():
            loaded = library.CrossEncoder(model)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise ModelError(
            f"The cross-encoder {model!r} cannot be loaded: {loading_reason(error)}"
        ) from error
    if loaded.num_labels != 1:
        raise ModelError(
            f"The cross-encoder {model!r} must have one output, a similarity; it has "
            f"{loaded.num_labels}, as a classifier (NLI) has."
        )
    return CrossEncoderScorer(loaded, name=Path(model).name)


def transformer_scorer(
    model: str, *, pooling: Pooling = "mean", device: str | None = None
) -> EncoderScorer:
    """Make a scorer of an encoder that was never trained for similarity; scores are cosines.

    Args:
        model: A local folder or a Hub name: a transformers checkpoint, or a sentence-transformers
            model, of which only the transformer is used.
        pooling: ``mean`` over the tokens of the last layer, the special ones too; ``cls``, the
            first token; or another of `condsim.model.builders.Pooling`.
        device: Device of torch, which chooses if None.
    """
    _require_library("An encoder needs torch")
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(model, pooling=pooling).eval()
    if device is not None:
        encoder = encoder.to(device)
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
    calibration = settings.calibration
    if settings.kind != "cross-encoder":
        calibration = calibration or UNCALIBRATED
        return EncoderScorer(
            loaded, name=settings.name, order=settings.order, calibration=calibration
        )
    return CrossEncoderScorer(
        loaded,
        name=settings.name,
        order=settings.order,
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
