"""Loads what sentence-transformers or `condsim.training` wrote, and refuses what is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from condsim.errors import MissingExtraError, ModelError, require
from condsim.model.applicability import head_of
from condsim.model.calibration import UNCALIBRATED
from condsim.model.conditions import Order
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import MODEL_FILE
from condsim.model.settings import FILE_NAME, Kind, Settings
from condsim.model.torch import CrossEncoderScorer, EncoderScorer

_MODULES = "modules.json"


def load_trained(
    folder: Path | str, *, device: str | None = None
) -> EncoderScorer | CrossEncoderScorer:
    """Loads a folder with ``modules.json`` as a scorer.

    Args:
        folder: A folder that sentence-transformers or `condsim.training` wrote.
        device: Where torch runs; it chooses if None.

    Returns:
        The scorer, with the settings of ``condsim.json`` where there is one.

    Raises:
        ModelError: If the folder holds no model, or a damaged one.
        MissingExtraError: If the ``train`` extra is not installed.
    """
    path = Path(folder)
    has_settings, has_modules = (path / FILE_NAME).is_file(), (path / _MODULES).is_file()
    if not (has_settings or has_modules):
        raise ModelError(
            f"{folder} holds no model: there must be a {MODEL_FILE} (exported) or a {_MODULES} "
            f"(sentence-transformers), with a {FILE_NAME} beside it. Give the folder that "
            "'condsim train' wrote."
        )
    if not has_modules:
        raise ModelError(f"{folder} has a {FILE_NAME} and no weights; get the model anew.")
    check_not_pickled(path)
    _check_library(f"The model {str(folder)!r} needs torch")
    if has_settings:
        settings = Settings.load(path)
    else:
        kind = kind_of(path)
        order: Order = "sentence-first" if kind == "cross-encoder" else "condition-first"
        settings = Settings(kind=kind, name=path.name, order=order)
    scorer = _scorer(str(path), settings, device=device)
    if has_settings:
        check_loaded(scorer.model, path)
    if isinstance(scorer, EmbeddingScorer):
        scorer.head = head_of(path)
    return scorer


def check_not_pickled(folder: Path) -> None:
    """Refuses a model with weights in a pickle.

    Raises:
        ModelError: If it has one.
    """
    weights = _weights(folder)
    for pickled in sorted(folder.glob("**/pytorch_model*.bin")):
        if not any(one.parent == pickled.parent for one in weights):
            raise ModelError(
                f"{pickled} holds weights in a pickle, which can run code: it is not read. Save "
                "the model with save_pretrained, which writes model.safetensors."
            )


def check_loaded(model: Any, folder: Path) -> None:  # noqa: ANN401  (a module)
    """Refuses a model with another tokenizer, or with parameters that its folder does not hold.

    Raises:
        ModelError: If it is one.
    """
    _check_tokens(model)
    if not (folder / "adapter_config.json").exists():
        _check_weights(model, _weights(folder))


def _weights(folder: Path) -> list[Path]:
    """The files of weights of a model."""
    files = sorted(folder.glob("**/*.safetensors"))
    return [file for file in files if "checkpoints" not in file.relative_to(folder).parts]


def _check_weights(model: Any, files: list[Path]) -> None:  # noqa: ANN401  (a module)
    """Refuses a model with parameters that no file holds: they would be random."""
    from safetensors import safe_open

    kept: set[str] = set()
    for file in files:
        with safe_open(file, framework="np") as tensors:
            kept.update(tensors.keys())
    for name, _ in model.named_parameters():
        parts = name.split(".")
        if not any(".".join(parts[start:]) in kept for start in range(len(parts))):
            raise ModelError(f"{files[0]} lacks {name!r}; get the model anew.")


def _check_tokens(model: Any) -> None:  # noqa: ANN401  (a module)
    """Refuses a tokenizer with numbers of tokens that the model has no vector of."""
    tokens: dict[str, int] = getattr(model.tokenizer, "get_vocab", dict)()
    if tokens and not tokens.keys() - set(getattr(model.tokenizer, "all_special_tokens", ())):
        raise ModelError("The model has no tokenizer; get the model anew.")
    numbers = list(tokens.values())
    first = next(iter(model.children()), None)
    size = getattr(getattr(first, "config", None), "vocab_size", None)
    if size is not None and max(numbers, default=0) >= size:
        raise ModelError(
            f"The tokenizer is another model's: it numbers tokens up to {max(numbers)}, and this "
            f"model has {size}; get the model anew."
        )


def load_hub_model(name: str, *, device: str | None = None) -> EncoderScorer | CrossEncoderScorer:
    """Loads a model of the Hub as a bi-encoder scorer without calibration; see `load_trained`.

    Raises:
        ModelError: If the Hub has no such model, or it is a cross-encoder.
    """
    _check_library(f"There is no folder {name!r}; a Hub name needs more than the core")
    settings = Settings(kind="bi-encoder", name=Path(name).name, order="condition-first")
    scorer = _scorer(name, settings, device=device)
    configs = [getattr(module, "config", None) for module in scorer.model.modules()]
    classes = [kind for one in configs for kind in getattr(one, "architectures", None) or ()]
    if any(one.endswith("ForSequenceClassification") for one in classes):
        raise ModelError(f"{name} is a cross-encoder. Name it cross-encoder:{name}.")
    return scorer


def _check_library(what: str) -> None:
    try:
        require("sentence_transformers", extra="train")
    except MissingExtraError as error:
        raise MissingExtraError(f"{what}. {error}") from error


def _scorer(
    model: str, settings: Settings, *, device: str | None
) -> EncoderScorer | CrossEncoderScorer:
    loaded = _load(model, settings.kind, device=device)
    name, order, calibration = settings.name, settings.order, settings.calibration
    if settings.kind == "cross-encoder":
        return CrossEncoderScorer(
            loaded,
            name=name,
            order=order,
            calibration=calibration,
            layout=settings.layout,
            inputs=settings.inputs,
        )
    return EncoderScorer(loaded, name=name, order=order, calibration=calibration or UNCALIBRATED)


def kind_of(folder: Path) -> Kind:
    """Detects the kind of a sentence-transformers folder without ``condsim.json``.

    Raises:
        ModelError: If its ``modules.json`` or its configuration is damaged.
    """
    config = folder / "config_sentence_transformers.json"
    try:
        modules = json.loads((folder / _MODULES).read_text(encoding="utf-8"))
        written = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
        types, model_type = [str(one["type"]) for one in modules], written.get("model_type")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{folder}: {config.name} or its {_MODULES} is damaged ({error!r}); get it anew."
        ) from None
    if any(name.startswith("condsim.") for name in types):
        return "tri-encoder"
    return "cross-encoder" if model_type == "CrossEncoder" else "bi-encoder"


def loading_reason(error: Exception) -> str:
    """Says in a line why a model cannot be loaded."""
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    if "ignore_mismatched_sizes" in reason:  # refers to a table that is not shown
        return "its weights have other shapes than its config.json says; get the model anew."
    return reason


def _load(model: str, kind: Kind, *, device: str | None) -> Any:  # noqa: ANN401  (two classes)
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from condsim.model.backbone import check_hub, quiet_loading
    from condsim.model.stored import load_tri_encoder

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
    except Exception as error:  # a damaged file makes the libraries raise all kinds of errors
        reason = loading_reason(error)
        what = f"The {kind} {model!r} cannot be loaded"
        if not Path(model).is_dir():
            what = f"There is no folder {model!r}, and the Hub gives no model of that name"
        raise ModelError(f"{what}: {reason}") from error
