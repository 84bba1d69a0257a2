"""Folders that sentence-transformers wrote, and models of the Hub, as scorers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condsim.encoders import Order
from condsim.errors import MissingExtraError, ModelError, require
from condsim.scorers.applicability import head_of
from condsim.scorers.calibration import UNCALIBRATED
from condsim.scorers.embedding import EmbeddingScorer
from condsim.scorers.onnx import MODEL_FILE
from condsim.scorers.settings import FILE_NAME, Kind, Settings

if TYPE_CHECKING:
    from condsim.scorers.encoder import CrossEncoderScorer, EncoderScorer

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
    library = _library(f"The model {str(folder)!r} needs torch")
    if has_settings:
        settings = Settings.load(path)
    else:
        kind = kind_of(path)
        order: Order = "sentence-first" if kind == "cross-encoder" else "condition-first"
        settings = Settings(kind=kind, name=path.name, order=order)
    scorer = _scorer(library, str(path), settings, device=device)
    if isinstance(scorer, EmbeddingScorer):
        scorer.head = head_of(path)
    return scorer


def load_hub_model(name: str, *, device: str | None = None) -> EncoderScorer | CrossEncoderScorer:
    """Loads a model of the Hub as a bi-encoder scorer without calibration; see `load_trained`."""
    library = _library(f"There is no folder {name!r}; a Hub name needs more than the core")
    settings = Settings(kind="bi-encoder", name=Path(name).name, order="condition-first")
    return _scorer(library, name, settings, device=device)


def _library(what: str) -> Any:  # noqa: ANN401  (sentence_transformers, imported late)
    try:
        return require("sentence_transformers", extra="train")
    except MissingExtraError as error:
        raise MissingExtraError(f"{what}. {error}") from error


def _scorer(
    library: Any,  # noqa: ANN401  (as above)
    model: str,
    settings: Settings,
    *,
    device: str | None,
) -> EncoderScorer | CrossEncoderScorer:
    loaded = _load(library, model, settings.kind, device=device)
    name, order, calibration = settings.name, settings.order, settings.calibration
    if settings.kind == "cross-encoder":
        from condsim.scorers.encoder import CrossEncoderScorer

        return CrossEncoderScorer(loaded, name=name, order=order, calibration=calibration)
    from condsim.scorers.encoder import EncoderScorer

    return EncoderScorer(loaded, name=name, order=order, calibration=calibration or UNCALIBRATED)


def kind_of(folder: Path) -> Kind:
    """Detects the kind of a sentence-transformers folder without ``condsim.json``.

    Raises:
        ModelError: If its ``modules.json`` is damaged.
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
    except ModelError:
        raise
    except Exception as error:  # a damaged file makes the libraries raise all kinds of errors
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        what = f"The {kind} {model!r} cannot be loaded"
        if not Path(model).is_dir():
            what = f"There is no folder {model!r}, and the Hub gives no model of that name"
        raise ModelError(f"{what}: {reason}") from error
