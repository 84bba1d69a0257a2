"""Finds the scorer of a model: the bundled one, an exported folder or a trained one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from condsim.encoders.conditioning import Order
from condsim.errors import MissingExtraError, ModelError, require
from condsim.scorers.applicability import head_of
from condsim.scorers.calibration import UNCALIBRATED, Calibration
from condsim.scorers.onnx import MODEL_FILE, OnnxScorer
from condsim.scorers.settings import FILE_NAME, Kind, Settings

if TYPE_CHECKING:
    from condsim.contexts.scoring import OriginScorer
    from condsim.scorers.cross_encoder import CrossEncoderScorer
    from condsim.scorers.encoder import EncoderScorer
    from condsim.scorers.prompt import PromptScorer

    AnyScorer = OnnxScorer | EncoderScorer | CrossEncoderScorer | PromptScorer | OriginScorer

__all__ = ["DEFAULT_FOLDER", "kind_of", "load_scorer"]

DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "assets" / "default"
"""The folder of the model that ships with condsim."""

CONTEXTS_FILE = "contexts.yaml"
"""What tells the folder of an origin model (`condsim.contexts`)."""

_SETTINGS = (".yaml", ".yml")
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_MODULES = "modules.json"


@overload
def load_scorer(model: None = None, *, device: str | None = None) -> OnnxScorer: ...


@overload
def load_scorer(model: str | Path | None, *, device: str | None = None) -> AnyScorer: ...


def load_scorer(model: str | Path | None = None, *, device: str | None = None) -> AnyScorer:
    """Loads a model as a scorer.

    The bundled model and exported folders need neither torch nor a network. A network is used only
    for the name of a model on the Hub, with the ``train`` extra installed.

    Args:
        model: None or ``"default"`` for the bundled model; else a folder with ``model.onnx``, a
            folder that sentence-transformers can load, the folder of a run of ``condsim contexts``
            (its origin model), a Hub name, or a YAML file of a prompted model
            (`condsim.prompting.settings`). A folder of any of these names goes first.
        device: Where torch runs (``"cpu"``, ``"cuda"`` ...); it chooses if None. ONNX models run on
            the processor and ignore it.

    Returns:
        The scorer.

    Raises:
        ModelError: If there is no such model, or it is damaged or of the wrong kind.
        MissingExtraError: If the model needs torch and the ``train`` extra is not installed.
    """
    if model is None or (model == "default" and not Path(model).is_dir()):
        return OnnxScorer(DEFAULT_FOLDER)
    folder = Path(model).expanduser()
    if folder.is_dir():
        if (folder / MODEL_FILE).is_file():
            return OnnxScorer(folder)
        if (folder / CONTEXTS_FILE).is_file():
            from condsim.contexts.pipeline import open_pipeline

            return open_pipeline(folder).scorer
        _check_folder(folder)
        return _load_trained(str(folder), folder, device=device)
    if folder.suffix in _SETTINGS and folder.is_file():
        from condsim.prompting.settings import load_settings
        from condsim.scorers.open_prompt import open_prompt_scorer

        return open_prompt_scorer(load_settings(folder))
    if folder.suffix in _SETTINGS and not folder.exists():
        raise ModelError(f"There is no file {str(model)!r} with the settings of a prompted model.")
    if folder.exists() or isinstance(model, Path) or not _HUB_NAME.fullmatch(model):
        raise ModelError(
            f"There is no model folder {str(model)!r}. Give a folder, the name of a model on the "
            "Hub (owner/name), or nothing for the bundled model."
        )
    return _load_trained(model, None, device=device)


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
    from condsim.encoders import load_tri_encoder
    from condsim.encoders.quiet import without_progress_bars

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
