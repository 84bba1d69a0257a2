"""A finished run as an origin model: its stages are opened, nothing is made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condsim import __version__
from condsim.cache import digest
from condsim.console import Progress, silent
from condsim.contexts.corpus import Corpus
from condsim.contexts.equations import ContextTerms
from condsim.contexts.harvest import HARVEST_FORMAT, open_single_index
from condsim.contexts.index import TfidfIndex
from condsim.contexts.origin import OriginScorer, ScoreCache
from condsim.contexts.recipe import (
    COHERENCE,
    CORPUS,
    GENERATORS,
    INDEX,
    MODEL,
    RECIPE,
    REPORT,
    ContextsRecipe,
    load_contexts_recipe,
)
from condsim.errors import InputError, ModelError
from condsim.io import sha256_of

if TYPE_CHECKING:
    from condsim.contexts.weights import FittedWeights


class ContextsRun:
    """Corpus, index and origin model of a run.

    The input files are no longer needed, so the folder may be moved or shared by machines. The
    recipe may differ from the one in the folder in scoring and selection.
    """

    def __init__(
        self, folder: Path, recipe: ContextsRecipe, *, progress: Progress = silent
    ) -> None:
        """Open nothing yet; ``progress`` is called while sentence vectors are computed, once."""
        self.folder, self.recipe = folder, recipe
        self._progress = progress

    @cached_property
    def corpus(self) -> Corpus:
        """The sentences."""
        return Corpus(self.folder / CORPUS)

    @cached_property
    def index(self) -> TfidfIndex:
        """The TF-IDF index of their chunks."""
        return TfidfIndex(self.folder / INDEX)

    @cached_property
    def single_index(self) -> TfidfIndex | None:
        """The index of the single-sentence documents; None if there are fewer than two."""
        return open_single_index(self.corpus, self.folder / INDEX)

    @cached_property
    def scorer(self) -> OriginScorer:
        """The origin model (§3.3); ModelError if a model it needs is not finished."""
        from condsim.contexts.coherence import CoherenceScorer
        from condsim.contexts.generator_scorer import GeneratorScorer

        scoring = self.recipe.scoring
        coherence = generators = None
        if self.recipe.uses_coherence:
            coherence = CoherenceScorer.open(
                self._finished(COHERENCE),
                self.corpus,
                progress=partial(self._progress, "sentence vectors"),
            )
        if self.recipe.uses_generators:
            generators = GeneratorScorer.open(
                self._finished(GENERATORS),
                self.corpus,
                kind=self.recipe.generators.kind,
                tasks=scoring.weights.used,
                memory_gb=scoring.memory_gb,
            )
        return OriginScorer(
            self.corpus,
            self.index,
            ContextTerms(coherence, generators),
            scoring=scoring,
            selection=self.recipe.selection,
            name=f"{self.recipe.name} origin",
            revision=self._revision,
            cache=ScoreCache(self.folder / "scored" / f"{self._revision}.txt"),
        )

    def fit_weights(self, *, sentences: int = 640) -> FittedWeights:
        """Fit λ of Eq. 3 to sentences of documents that no model was trained on, without labels."""
        from condsim.contexts.weights import fit_weights

        recipe, corpus = self.recipe, self.corpus
        held_out = np.ones(len(corpus.document_starts) - 1, np.bool_)
        for settings, is_used in (
            (recipe.coherence, recipe.uses_coherence),
            (recipe.generators, recipe.uses_generators),
        ):
            if is_used:
                held_out &= corpus.held_out_documents(share=settings.held_out, seed=settings.seed)
        rows = np.flatnonzero(np.repeat(held_out, np.diff(corpus.document_starts)))
        return fit_weights(self.scorer, corpus, rows, sentences=sentences)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """All that decides a score, as plain values: the corpus, the weights and the recipe."""
        folders = [self.folder / COHERENCE] if self.recipe.uses_coherence else []
        if self.recipe.uses_generators:
            models = self.recipe.generators.models_for(self.recipe.scoring.weights.used)
            folders += [self.folder / GENERATORS / name for name in models]
        weights = [sha256_of(folder / MODEL) for folder in folders]
        return {"corpus": self.corpus.revision, "models": weights, **self.recipe.scored_by}

    @property
    def _revision(self) -> str:
        """A hash of the identity, the version of condsim and the number format."""
        from condsim.model.precision import uses_bfloat16

        build = {"condsim": __version__, "format": HARVEST_FORMAT}
        return digest({**self.identity, **build, "bfloat16": uses_bfloat16("auto")})[:12]

    def _finished(self, stage: str) -> Path:
        if not (self.folder / stage / REPORT).is_file():
            raise ModelError(
                f"The run in {self.folder} is unfinished: stage '{stage}' is not done. "
                "Run 'condsim contexts run' with the same recipe and folder to continue."
            )
        return self.folder / stage


def open_pipeline(folder: Path, *, progress: Progress = silent) -> ContextsRun:
    """Open the run in a folder; InputError if there is none."""
    if not (folder / RECIPE).is_file():
        raise InputError(
            f"{folder} is not a run of contexts: there is no {RECIPE}. Give the folder that "
            "'condsim contexts run' wrote."
        )
    return ContextsRun(folder, load_contexts_recipe(folder / RECIPE), progress=progress)
