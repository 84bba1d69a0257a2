"""From a name to a scorer.

| name | scorer |
|---|---|
| ``tfidf-cosine``, ``word-overlap`` | the baseline |
| ``glove:FILE`` | average of word vectors |
| ``mean:MODEL``, ``cls:MODEL`` | an encoder's token vectors, averaged, or its first one |
| ``bertscore:MODEL``, ``bertscore:MODEL@LAYER`` | BERTScore |
| ``cross-encoder:MODEL`` | a cross-encoder that brings no settings, such as one of the Hub |
| anything else | what `load_scorer` makes of it |

``LABEL=NAME`` gives any of them the name it has in tables. Nothing is loaded before it is needed:
`NamedScorer.revision` finds the version of a model without torch, so that kept scores are found.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from condsim.errors import InputError, ModelError, require, requires_extra
from condsim.io import packaged_folder
from condsim.model.base import PairScorer
from condsim.model.baselines import UNFITTED_BASELINES, baseline
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import MODEL_FILE, OnnxScorer
from condsim.model.settings import CONTEXTS_FILE, FILE_NAME, Settings, model_folder, revision_of
from condsim.types import Scorer

if TYPE_CHECKING:
    from condsim.contexts.scoring.origin import OriginScorer
    from condsim.model.torch import CrossEncoderScorer, EncoderScorer
    from condsim.prompting.scorer import PromptScorer

    AnyScorer = OnnxScorer | EncoderScorer | CrossEncoderScorer | PromptScorer | OriginScorer


_SETTINGS = (".yaml", ".yml")
_LONGEST = 4096  # characters of a path, on most systems
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


@overload
def load_scorer(model: None = None, *, device: str | None = None) -> OnnxScorer: ...


@overload
def load_scorer(model: str | Path | None, *, device: str | None = None) -> AnyScorer: ...


def load_scorer(model: str | Path | None = None, *, device: str | None = None) -> AnyScorer:
    """Loads a model as a scorer.

    The bundled model and exported folders need neither torch nor a network. A network is used only
    for the name of a model on the Hub, with the ``train`` extra installed.

    Args:
        model: None or ``"default"`` for the bundled model (a folder of that name is
            ``"./default"``); else a folder with ``model.onnx``, a folder that sentence-transformers
            can load, the folder of a run of ``condsim contexts`` (its origin model), a Hub name, or
            a YAML file of a prompted model. A folder goes before a Hub name that is the same.
        device: Where torch runs (``"cpu"``, ``"cuda"`` ...); it chooses if None. ONNX models run on
            the processor and ignore it.

    Raises:
        InputError: If the name begins with that of a user who is not there, as in ``~nobody``.
        ModelError: If there is no such model, or it is damaged or of the wrong kind.
        MissingExtraError: If the model needs torch and the ``train`` extra is not installed.
    """
    model = "default" if model is None else model
    if not isinstance(model, str | Path) or len(str(model)) > _LONGEST:
        raise ModelError(
            "A model must be named by a folder, the name of a model on the Hub (owner/name), or "
            f"nothing for the bundled model. Got {reprlib.repr(model)} instead."
        )
    folder = model_folder(model)
    if folder.is_dir():
        if (folder / MODEL_FILE).is_file():
            return OnnxScorer(folder)
        if (folder / CONTEXTS_FILE).is_file():
            from condsim.contexts.opened import open_pipeline

            return open_pipeline(folder).scorer
        with requires_extra("train"):
            from condsim.model.trained import load_trained
        return load_trained(folder, device=device)
    if folder.suffix in _SETTINGS and folder.is_file():
        from condsim.prompting.scorer import open_prompt_scorer
        from condsim.prompting.settings import load_settings

        return open_prompt_scorer(load_settings(folder))
    if folder.suffix in _SETTINGS and not folder.exists():
        raise ModelError(f"There is no file {str(model)!r} with the settings of a prompted model.")
    if folder.exists() or isinstance(model, Path) or not _HUB_NAME.fullmatch(model):
        raise ModelError(
            f"There is no model folder {str(model)!r}. Give a folder, the name of a model on the "
            "Hub (owner/name), or nothing for the bundled model."
        )
    with requires_extra("train"):
        from condsim.model.trained import load_hub_model
    return load_hub_model(model, device=device)


def load_encoder(model: str | Path | PairScorer | None = None) -> EmbeddingScorer:
    """Loads a model that gives embeddings.

    Args:
        model: As `load_scorer`; one that is loaded stays as it is.

    Returns:
        A bi- or tri-encoder.

    Raises:
        ModelError: If there is no such model, it cannot be loaded, or gives scores only.
        MissingExtraError: As `load_scorer`.
    """
    scorer = model if isinstance(model, PairScorer) else load_scorer(model)
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives scores only; embeddings need a bi- or tri-encoder.")
    return scorer


_LABELLED = re.compile(r"([^=/\\:]+)=(.+)")
_LAYER = re.compile(r"(.+)@(\d+)")


@dataclass(frozen=True)
class NamedScorer:
    """A scorer that is not loaded yet: its name in tables, and what was asked for."""

    name: str
    source: str

    def open(self) -> Scorer:
        """Loads the scorer; see `open_scorer`."""
        prefix, rest = _split(self.source)
        if prefix is not None:
            return PREFIXES[prefix](rest)
        if self._is_baseline:
            return baseline(self.source)
        return load_scorer(packaged_folder(self.source) or self.source)

    def revision(self) -> str | None:
        """Gives what changes when the scores may, without loading the model; None if unknown."""
        prefix, rest = _split(self.source)
        if self._is_baseline:
            return self.source
        if prefix == "bertscore" and (layered := _LAYER.fullmatch(rest)):
            prefix, rest = f"bertscore@{layered[2]}", layered[1]
        found = revision_of(rest)
        return None if found is None else f"{prefix or 'model'}:{found}"

    def trained_on(self) -> tuple[str, ...]:
        """Gives the sets of criteria that the model's settings say it was trained on.

        Returns:
            The names in the fact ``criteria_sets`` of its ``condsim.json``, separated by commas
            there; none where there is no such fact or file.
        """
        prefix, rest = _split(self.source)
        folder = model_folder(rest)
        if prefix is not None or not (folder / FILE_NAME).is_file():
            return ()
        named = str(Settings.load(folder).facts.get("criteria_sets", ""))
        return tuple(name.strip() for name in named.split(",") if name.strip())

    @property
    def _is_baseline(self) -> bool:
        return self.source in UNFITTED_BASELINES and not Path(self.source).exists()


def named_scorer(name: str | None) -> NamedScorer:
    """Reads a name, without loading anything.

    Args:
        name: See the table above; None for the model that ships.

    Raises:
        InputError: If nothing follows a prefix or a label.
    """
    if name is None:
        return NamedScorer("default", "default")
    label = None
    if not Path(name).exists() and (labelled := _LABELLED.fullmatch(name)):
        label, name = labelled[1].strip(), labelled[2]
    prefix, rest = _split(name)
    if not rest.strip() or label == "":
        raise InputError(
            f"{name!r} names no model. Give a folder, a Hub name, or one of "
            f"{', '.join(f'{known}:…' for known in PREFIXES)}."
        )
    own = f"{prefix}:{Path(rest).name}" if prefix else Path(rest).name
    return NamedScorer(label or own or name, name)


def open_scorer(name: str | None) -> Scorer:
    """Loads the scorer of a name.

    Args:
        name: See the table above, without a label; None for the model that ships.

    Raises:
        InputError: If nothing follows a prefix, or its file breaks a rule.
        ModelError: If there is no such model or it cannot be loaded.
        MissingExtraError: If an optional library is needed that is not installed.
    """
    return named_scorer(name).open()


def _split(name: str) -> tuple[str | None, str]:
    """Takes a known prefix off; a folder of that whole name goes first."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in PREFIXES and not Path(name).exists():
        return prefix, rest
    return None, name


def _glove(path: str) -> Scorer:
    with requires_extra("train"):
        from condsim.model.pretrained import GloveScorer
    return GloveScorer(path)


def _transformer(model: str, pooling: Literal["mean", "cls"]) -> Scorer:
    with requires_extra("train"):
        from condsim.model.torch import transformer_scorer
    return transformer_scorer(model, pooling=pooling)


def _bertscore(model: str) -> Scorer:
    with requires_extra("train"):
        from condsim.model.pretrained import BertScoreScorer
    if layered := _LAYER.fullmatch(model):
        return BertScoreScorer(layered[1], layer=int(layered[2]))
    return BertScoreScorer(model)


def _cross_encoder(model: str) -> Scorer:
    library = require("sentence_transformers", extra="train")
    from condsim.model.backbone import check_hub, quiet_loading
    from condsim.model.torch import CrossEncoderScorer
    from condsim.model.trained import loading_reason

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
            f"The cross-encoder {model!r} must have one output, a similarity. It has "
            f"{loaded.num_labels}; a classifier, such as an NLI model, is not one."
        )
    return CrossEncoderScorer(loaded, name=Path(model).name, order="sentence-first")


PREFIXES: dict[str, Callable[[str], Scorer]] = {
    "glove": _glove,
    "mean": lambda model: _transformer(model, "mean"),
    "cls": lambda model: _transformer(model, "cls"),
    "bertscore": _bertscore,
    "cross-encoder": _cross_encoder,
}
"""Kinds of scorers by the prefix of their names."""
