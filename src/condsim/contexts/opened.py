"""A finished run as an origin model: its stages are opened, nothing is made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from condsim import __version__
from condsim.cache import KeptScores, digest
from condsim.console import Progress, silent
from condsim.contexts.coherence.model import CoherenceScorer
from condsim.contexts.corpus.stored import Corpus, document_starts, held_out_documents
from condsim.contexts.generator.scorer import GeneratorScorer
from condsim.contexts.harvest.harvesting import open_single_index
from condsim.contexts.harvest.stored import FORMAT
from condsim.contexts.index.retrieval import TfidfIndex
from condsim.contexts.models import MODEL, REPORT
from condsim.contexts.recipe import ContextsRecipe, load_contexts_recipe
from condsim.contexts.scoring.equations import ContextTerms
from condsim.contexts.scoring.origin import OriginScorer
from condsim.contexts.scoring.weighing import FittedWeights, fit_weights
from condsim.contexts.settings import CoherenceSettings, GeneratorSettings
from condsim.errors import InputError, ModelError
from condsim.io import sha256_of
from condsim.model.precision import uses_bfloat16
from condsim.model.settings import CONTEXTS_FILE

# Files and folders of a run; each stage has one.
RECIPE = CONTEXTS_FILE
CORPUS = "corpus"
VOCABULARY = "vocabulary"
INDEX = "index"
COHERENCE = "coherence"
GENERATORS = "generators"
HARVEST = "harvest"
SURROGATE = "surrogate"
SCORED = "scored"


class OpenedRun:
    """Corpus, index and origin model of a run.

    The input files are no longer needed, so the folder may be moved or shared by machines.

    Attributes:
        folder: Folder of the run.
        recipe: What it is made of.
    """

    def __init__(
        self, folder: Path, recipe: ContextsRecipe, *, progress: Progress = silent
    ) -> None:
        """Opens nothing yet.

        Args:
            recipe: Its recipe; may differ from the one in the folder in what decides scores only.
            progress: Called while the sentence vectors are computed, which happens once.
        """
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
        """The origin model (§3.3).

        Raises:
            ModelError: If a model it needs is not trained to the end.
        """
        scoring = self.recipe.scoring
        used = scoring.weights.used
        coherence = generators = None
        if "coherence" in used:
            self._check_finished(COHERENCE)
            coherence = CoherenceScorer.open(
                self.folder / COHERENCE,
                self.corpus,
                progress=partial(self._progress, "sentence vectors"),
            )
        if set(used) - {"coherence"}:
            self._check_finished(GENERATORS)
            generators = GeneratorScorer.open(
                self.folder / GENERATORS,
                self.corpus,
                kind=self.recipe.generators.kind,
                tasks=used,
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
            kept=KeptScores(self.folder / SCORED, self._revision),
        )

    def fit_weights(self, *, sentences: int = 640) -> FittedWeights:
        """Fits λ of Eq. 3 to held-out text, without labels; see `FittedWeights`.

        Args:
            sentences: Sentences to take of the documents that no model was trained on, half to fit
                to and half to measure on.

        Returns:
            λ for the terms whose weight in the recipe is not 0. Nothing is changed.

        Raises:
            InputError: If there are fewer than 64 such sentences with a sentence on both sides, or
                no term tells contexts apart.
        """
        starts = document_starts(self.corpus)
        used = set(self.recipe.scoring.weights.used)
        models: list[CoherenceSettings | GeneratorSettings] = []
        models += [self.recipe.coherence] if "coherence" in used else []
        models += [self.recipe.generators] if used - {"coherence"} else []
        held_out = np.all(
            [held_out_documents(starts, share=one.held_out, seed=one.seed) for one in models],
            axis=0,
        )
        rows = np.flatnonzero(np.repeat(held_out, np.diff(starts)))
        return fit_weights(self.scorer, self.corpus, rows, sentences=sentences)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """All that decides a score, as plain values: the corpus, the weights and the recipe.

        Raises:
            OSError: If a model it needs is missing.
        """
        used = self.recipe.scoring.weights.used
        folders = [self.folder / COHERENCE] if "coherence" in used else []
        if generated := set(used) - {"coherence"}:
            models = self.recipe.generators.models_for(generated)
            folders += [self.folder / GENERATORS / name for name in models]
        weights = [sha256_of(folder / MODEL) for folder in folders]
        return {"corpus": self.corpus.revision, "models": weights, **self.recipe.scored_by}

    @property
    def _revision(self) -> str:
        """A hash of the identity, of the version of condsim and of the number format here."""
        here = {"condsim": __version__, "format": FORMAT, "bfloat16": uses_bfloat16("auto")}
        return digest({**self.identity, **here})[:12]

    def _check_finished(self, stage: str) -> None:
        if not (self.folder / stage / REPORT).is_file():
            raise ModelError(
                f"The run in {self.folder} is unfinished: stage '{stage}' is not done. "
                "Run 'condsim contexts run' with the same recipe and folder again; it goes on."
            )


def open_pipeline(folder: Path, *, progress: Progress = silent) -> OpenedRun:
    """Opens a run.

    Raises:
        InputError: If there is none.
    """
    if not (folder / RECIPE).is_file():
        raise InputError(
            f"{folder} holds no run of contexts: there is no {RECIPE}. Give the folder that "
            "'condsim contexts run' wrote."
        )
    return OpenedRun(folder, load_contexts_recipe(folder / RECIPE), progress=progress)
