"""Folders that sentence-transformers wrote, and models of the Hub, as scorers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condsim.encoders import Order
from condsim.errors import MissingExtraError, ModelError, require
from condsim.scorers.applicability import head_of
from condsim.scorers.calibration import UNCALIBRATED, Calibration
from condsim.scorers.onnx import MODEL_FILE
from condsim.scorers.settings import FILE_NAME, Kind, Settings

if TYPE_CHECKING:
    from condsim.scorers.cross_encoder import CrossEncoderScorer
    from condsim.scorers.encoder import EncoderScorer

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
    _check_folder(path)
    return _load_trained(str(path), path, device=device)


def load_hub_model(name: str, *, device: str | None = None) -> EncoderScorer | CrossEncoderScorer:
    """Loads a model of the Hub as a bi-encoder scorer without calibration; see `load_trained`."""
    return _load_trained(name, None, device=device)


def _check_folder(folder: Path) -> None:
    if not ((folder / FILE_NAME).is_file() or (folder / _MODULES).is_file()):
        raise ModelError(
            f"{folder} holds no model: there must be a {MODEL_FILE} (exported) or a {_MODULES} "
            f"(sentence-transformers), with a {FILE_NAME} beside it. Give the folder that "
            "'condsim train' wrote."
        )
    if not (folder / _MODULES).is_file():
        raise ModelError(f"{folder} has a {FILE_NAME} and no weights; get the model anew.")


def _load_trained(
    model: str, folder: Path | None, *, device: str | None
) -> EncoderScorer | CrossEncoderScorer:
    """Loads a folder, or a Hub name where ``folder`` is None, with sentence-transformers."""
    try:
        library = require("sentence_transformers", extra="train")
    except MissingExtraError as error:
        what = f"The model {model!r} needs torch" if folder else f"There is no folder {model!r}"
        also = "" if folder else "; a Hub name needs more than the core"
        raise MissingExtraError(f"{what}{also}. {error}") from error
    settings = None
    if folder is not None and (folder / FILE_NAME).is_file():
        settings = Settings.load(folder)
    kind: Kind = "bi-encoder"  # what a Hub name is taken for
    if settings is not None:
        kind = settings.kind
    elif folder is not None:
        kind = kind_of(folder)
    loaded = _load(library, model, kind, device=device)
    name = settings.name if settings else Path(model).name
    calibration: Calibration | None = settings.calibration if settings else None
    if kind == "cross-encoder":
        from condsim.scorers.cross_encoder import CrossEncoderScorer

        first: Order = settings.order if settings else "sentence-first"
        return CrossEncoderScorer(loaded, name=name, order=first, calibration=calibration)
    from condsim.scorers.encoder import EncoderScorer

    order: Order = settings.order if settings else "condition-first"
    scorer = EncoderScorer(loaded, name=name, order=order, calibration=calibration or UNCALIBRATED)
    scorer.head = None if folder is None else head_of(folder)
    return scorer


def kind_of(folder: Path) -> Kind:
    """Tells the kind of a sentence-transformers folder that brings no settings.

    Args:
        folder: A folder with ``modules.json``.

    Returns:
        The kind.

    Raises:
        ModelError: If the list of modules is damaged.
    """
    config = folder / "config_sentence_transformers.json"
    try:
        modules = json.loads((folder / _MODULES).read_text(encoding="utf-8"))
        written = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
        types = [str(module["type"]) for module in modules]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{folder}: its {_MODULES} is damaged ({error!r}); get it anew.") from None
    if any(name.startswith("condsim.") for name in types):
        return "tri-encoder"
    return "cross-encoder" if written.get("model_type") == "CrossEncoder" else "bi-encoder"


def _load(library: Any, model: str, kind: Kind, *, device: str | None) -> Any:  # noqa: ANN401
    """Loads the model itself; ``library`` is sentence_transformers, imported late."""
    from condsim.encoders import load_tri_encoder, without_progress_bars

    loader = library.CrossEncoder if kind == "cross-encoder" else library.SentenceTransformer
    try:
        with without_progress_bars():
            if kind == "tri-encoder":
                encoder = load_tri_encoder(model)
                return encoder if device is None else encoder.to(device)
            return loader(model, device=device)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        what = f"The {kind} {model!r} cannot be loaded"
        if not Path(model).is_dir():
            what = f"There is no folder {model!r}, and the Hub gives no model of that name"
        raise ModelError(f"{what}: {reason}") from error
