"""Loading: from a name to a scorer.

| name | scorer |
|---|---|
| ``tfidf-cosine``, ``word-overlap`` | the baseline |
| ``mean:MODEL``, ``cls:MODEL`` | an encoder's token vectors, averaged, or its first one |
| ``cross-encoder:MODEL`` | a cross-encoder without settings, such as one of the Hub |
| anything else | the result of `load_scorer` |

``LABEL=NAME`` gives any of them a name for tables. `PREFIXES` may be extended, as ``papers`` does.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from condsim.errors import InputError, MissingExtraError, ModelError
from condsim.model.base import PairScorer
from condsim.model.baselines import UNFITTED_BASELINES, baseline
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer
from condsim.model.minilm import packaged_folder
from condsim.model.settings import (
    CONTEXTS_FILE,
    FILE_NAME,
    MODEL_FILE,
    ModelSettings,
    model_folder,
    revision_of,
)
from condsim.types import Scorer

if TYPE_CHECKING:
    from condsim.model.onnx import OnnxScorer
    from condsim.model.torch import CrossEncoderScorer, EncoderScorer

    AnyScorer = OnnxScorer | EncoderScorer | CrossEncoderScorer

MAX_PATH_CHARACTERS = 4096
ENTRY_POINTS = "condsim.scorers"
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


@overload
def load_scorer(model: None = None, *, device: str | None = None) -> OnnxScorer: ...


@overload
def load_scorer(model: str | Path | None, *, device: str | None = None) -> AnyScorer: ...


def load_scorer(model: str | Path | None = None, *, device: str | None = None) -> AnyScorer:
    """Load a model as a scorer.

    The default model and exported folders need neither torch nor a network. A network is used only
    for the name of a model on the Hub, with the ``train`` extra installed.

    Args:
        model: None or ``"default"`` for the default model, ``"large"`` for the larger one of the
            package condsim-large (folders of these names are ``"./default"`` and ``"./large"``);
            else a folder with ``model.onnx``, a folder that sentence-transformers can load, the
            folder of a run of ``condsim contexts`` (its origin model), a Hub name, or a YAML file
            of a prompted model. A folder takes precedence over a Hub name.
        device: Device of torch (``"cpu"``, ``"cuda"`` ...); torch chooses if None. ONNX models run
            on the processor and ignore it.

    Raises:
        InputError: If the name begins with a user who does not exist, as in ``~nobody``.
        ModelError: If there is no such model, or it is damaged or of the wrong kind.
        MissingExtraError: If the model needs torch and the ``train`` extra is not installed, or it
            is ``"large"`` and condsim-large is not installed.
    """
    model = "default" if model is None else model
    if not isinstance(model, str | Path) or len(str(model)) > MAX_PATH_CHARACTERS:
        raise ModelError(f"A model must be a folder or a Hub name; got {reprlib.repr(model)}.")
    folder = model_folder(model)
    if folder.is_dir():
        return _load_folder(folder, device)
    if folder.suffix in (".yaml", ".yml"):
        return _load_companion("llm", folder)
    # A slip of the pen is found before torch is imported and the Hub asked.
    near = _near_name(str(model))
    if folder.exists() or near or isinstance(model, Path) or not _HUB_NAME.fullmatch(model):
        advice = near and f"Did you mean {near!r}?"
        raise ModelError(
            f"There is no model folder {str(model)!r}. "
            + (
                advice
                or "Give a folder, a Hub name (owner/name), or nothing for the default model."
            )
        )
    from condsim.model.torch import load_hub_model

    return load_hub_model(model, device=device)


def _near_name(model: str) -> str:
    """Find the name of a model, or of a model folder, that differs by a letter or two; or ""."""
    import difflib

    parent = Path(model).parent
    names = [] if "/" in model else ["default", "large"]
    with suppress(OSError):
        names += [str(path.parent) for path in parent.glob(f"*/{FILE_NAME}")]
    return next(iter(difflib.get_close_matches(model, names, n=1, cutoff=0.8)), "")


def _load_folder(folder: Path, device: str | None) -> AnyScorer:
    if (folder / MODEL_FILE).is_file():
        # ONNX Runtime is slow to import.
        from condsim.model.onnx import OnnxScorer

        return OnnxScorer(folder)
    if (folder / CONTEXTS_FILE).is_file():
        return _load_companion("contexts", folder)
    from condsim.model.torch import load_trained

    return load_trained(folder, device=device)


def _load_companion(name: str, path: Path) -> AnyScorer:
    """Load a scorer of a companion package, by the name of its entry point and extra."""
    from importlib import metadata

    for entry in metadata.entry_points(group=ENTRY_POINTS, name=name):
        scorer: AnyScorer = entry.load()(path)
        return scorer
    raise MissingExtraError.of(f"condsim-{name}", extra=name)


def load_encoder(model: str | Path | PairScorer | None = None) -> EmbeddingScorer:
    """Load a bi- or tri-encoder, or check a loaded one; a ModelError if it gives only scores."""
    scorer = model if isinstance(model, PairScorer) else load_scorer(model)
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives only scores; embeddings need a bi- or tri-encoder.")
    return scorer


def load_criterion(path: str | Path, *, model: str | Path | PairScorer | None = None) -> Criterion:
    """Load a criterion that was learned, and bind it to its model.

    Args:
        path: File that `Criterion.save`, ``condsim learn`` or ``condsim label`` wrote.
        model: The model that it was learned with, as for `load_encoder`.

    Raises:
        ModelError: If the file is damaged, or was learned with another model.
    """
    return Criterion.load(path).bound(load_encoder(model))


_LABELED = re.compile(r"([^=/\\:]+)=(.+)")
_LAYER = re.compile(r"(.+)(@\d+)")


@dataclass(frozen=True)
class NamedScorer:
    """A scorer that is not loaded yet: its name in tables, and its source."""

    name: str
    source: str

    def open(self) -> Scorer:
        """Load the scorer; see `open_scorer`."""
        prefix, model = _split_prefix(self.source)
        if prefix is not None:
            return PREFIXES[prefix](model)
        if self._is_baseline:
            return baseline(self.source)
        return load_scorer(packaged_folder(self.source) or self.source)

    def revision(self) -> str | None:
        """Identify the version of the scorer, without torch; None if unknown."""
        prefix, model = _split_prefix(self.source)
        if self._is_baseline:
            return self.source
        if prefix is None:
            revision = revision_of(model)
            return None if revision is None else f"model:{revision}"
        # Some scorers take a layer of a model.
        match = _LAYER.fullmatch(model)
        model, layer = match.groups() if match else (model, "")
        revision = revision_of(model)
        return None if revision is None else f"{prefix}{layer}:{revision}"

    def trained_on(self) -> tuple[str, ...]:
        """List the sets of criteria that the model's ``condsim.json`` says it was trained on."""
        prefix, model = _split_prefix(self.source)
        folder = model_folder(model)
        if prefix is not None or not (folder / FILE_NAME).is_file():
            return ()
        names = str(ModelSettings.load(folder).facts.get("criteria_sets", "")).split(",")
        return tuple(name.strip() for name in names if name.strip())

    @property
    def _is_baseline(self) -> bool:
        return self.source in UNFITTED_BASELINES and not Path(self.source).exists()


def named_scorer(name: str | None) -> NamedScorer:
    """Parse a name, without loading the model; None is the default model."""
    if name is None:
        return NamedScorer("default", "default")
    label = None
    if not Path(name).exists() and (labeled := _LABELED.fullmatch(name)):
        label, name = labeled[1].strip(), labeled[2]
    prefix, model = _split_prefix(name)
    if not model.strip() or label == "":
        choices = ", ".join(f"{prefix}:…" for prefix in PREFIXES)
        raise InputError(f"{name!r} must name a folder, a Hub model, or one of {choices}.")
    default = f"{prefix}:{Path(model).name}" if prefix else Path(model).name
    return NamedScorer(label or default or name, name)


def open_scorer(name: str | None) -> Scorer:
    """Load the scorer of a name; see the table of this module."""
    return named_scorer(name).open()


def _split_prefix(name: str) -> tuple[str | None, str]:
    """Split off a known prefix; a folder of that whole name takes precedence."""
    prefix, colon, model = name.partition(":")
    if colon and prefix in PREFIXES and not Path(name).exists():
        return prefix, model
    return None, name


def _transformer(model: str, pooling: Literal["mean", "cls"]) -> Scorer:
    from condsim.model.torch import transformer_scorer

    return transformer_scorer(model, pooling=pooling)


def _cross_encoder(model: str) -> Scorer:
    from condsim.model.torch import load_cross_encoder

    return load_cross_encoder(model)


PREFIXES: dict[str, Callable[[str], Scorer]] = {
    "mean": lambda model: _transformer(model, "mean"),
    "cls": lambda model: _transformer(model, "cls"),
    "cross-encoder": _cross_encoder,
}
"""Loaders of scorers by the prefix of their names."""
