"""The origin model: two sentences are alike when the same contexts fit both (SSBC §3.3, Eq. 4).

The folder of a run is such a model: `ContextsRun` opens its stages and makes nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condsim import __version__
from condsim.cache import digest
from condsim.console import Progress, silent
from condsim.errors import InputError, ModelError
from condsim.model.base import SCORER_LOG, PairScorer, Rows, Scale, rescaled
from condsim.model.calibration import Calibration
from condsim.paths import sha256_of
from condsim.types import FloatArray, IntArray
from condsim_contexts.corpus import Corpus
from condsim_contexts.equations import (
    SENTENCE_TERMS,
    ContextMeans,
    ContextSelector,
    ContextSet,
    ContextTerms,
    FittedWeights,
    PairTerms,
    are_far,
    fit_weights,
    similarity,
)
from condsim_contexts.harvest import HARVEST_FORMAT, open_single_index
from condsim_contexts.index import TfidfIndex
from condsim_contexts.recipe import (
    COHERENCE,
    CORPUS,
    GENERATORS,
    INDEX,
    MODEL,
    RECIPE,
    REPORT,
    ContextsRecipe,
    ScoringSettings,
    Selection,
    load_contexts_recipe,
)

_SECONDS_PER_REPORT = 30.0
_TOKENS_PER_TARGET = 25.0
_LINEAR = Calibration(raw=(-1.0, 1.0), score=(0.0, 1.0))
_LOGGER = logging.getLogger(SCORER_LOG)


class ScoreCache:
    """Scores of pairs in a file that grows; its name must stand for all that decides a score."""

    # Digits enough for a float32; a line that was cut off does not match.
    _LINE = re.compile(rb"([0-9a-f]{32}) ([+-]\d\.\d{8}e[+-]\d\d)\n")

    def __init__(self, path: Path) -> None:
        self._path, self._warned = path, False

    def find(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Look up the scores of pairs, ``(n,)``; NaN where there is none."""
        content = self._path.read_bytes() if self._path.is_file() else b""
        scores = {key.decode(): float(value) for key, value in self._LINE.findall(content)}
        keys = map(self._key, sentences1, sentences2)
        return np.array([scores.get(key, np.nan) for key in keys], np.float32)

    def add(
        self, sentences1: Sequence[str], sentences2: Sequence[str], scores: Sequence[float]
    ) -> None:
        """Store scores, each of length n; warn once if the file cannot be written."""
        # A blank line keeps what was cut off before apart from the first line.
        lines = ["\n"]
        for sentence1, sentence2, score in zip(sentences1, sentences2, scores, strict=True):
            lines.append(f"{self._key(sentence1, sentence2)} {np.float32(score):+.8e}\n")
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab", buffering=0) as stream:
                stream.write("".join(lines).encode())
        except OSError as error:
            if not self._warned:
                _LOGGER.warning("Cannot cache scores in %s: %s", self._path.parent, error)
            self._warned = True

    @staticmethod
    def _key(sentence1: str, sentence2: str) -> str:
        return hashlib.sha256(json.dumps([sentence1, sentence2]).encode()).hexdigest()[:32]


class _PreparedSentence(NamedTuple):
    """The contexts of a sentence, and its mean terms over the reference contexts."""

    contexts: ContextSet
    alone: Mapping[str, float]


class OriginScorer(PairScorer):
    """Scores pairs of sentences by the contexts of a corpus, without labels.

    The raw score is the cosine of Eq. 4, in [-1, 1]. Conditions are not supported. The logger
    ``condsim_contexts`` reports the cost of scoring in advance, and its progress every half minute.

    ``revision`` is the version of all that decides a score: corpus, models and settings;
    ``scored_by`` are the settings among these. ``without_contexts`` counts sentences so far that
    shared no word with the corpus and were given random contexts.
    """

    def __init__(
        self,
        corpus: Corpus,
        index: TfidfIndex,
        terms: ContextTerms,
        *,
        scoring: ScoringSettings | None = None,
        selection: Selection | None = None,
        name: str = "origin",
        revision: str | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        """Prepare to score by the terms of Eq. 3; nothing is computed.

        ``cache`` holds the scores of :meth:`score` when there is more than a batch of pairs, so
        that a long run that is stopped can continue.
        """
        self.name, self.revision = name, revision
        self.calibration = _LINEAR
        self.without_contexts = 0
        self._corpus, self._terms, self._cache = corpus, terms, cache
        self._selection, self._scoring = selection or Selection(), scoring or ScoringSettings()
        self.weights, center = self._scoring.weights, self._scoring.center
        self._selector = ContextSelector(corpus, index, terms, self._selection, self.weights)
        self._batch_size = self._scoring.batch_size
        self.scored_by: dict[str, object] = {
            **self._scoring.model_dump(include={"weights", "center", "references"}),
            "selection": self._selection.model_dump(),
        }
        self._means = ContextMeans(
            corpus, terms, self._scoring.references, seed=self._selection.seed
        )
        # Terms from which the means of sentences, and of contexts, are subtracted.
        names = self.weights.used if center != "none" else ()
        self._sentence_terms = [
            name for name in names if center == "pmi" and name in SENTENCE_TERMS
        ]
        self._context_terms = [name for name in names if name not in self._sentence_terms]

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        if rows.conditions is not None:
            raise InputError(
                "The origin model compares whole sentences and takes no condition. Give data "
                "without conditions, such as STS-B, or fine-tune its surrogate on C-STS."
            )
        return rescaled(self._cached_cosines(*rows.sentences), self.calibration, scale)

    def _cached_cosines(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Look up or compute cosines; logs the cost and the progress of those to compute."""
        cache = self._cache if len(sentences1) > self._batch_size else None
        scores: FloatArray = np.full(len(sentences1), np.nan, np.float32)
        if cache is not None:
            scores = cache.find(sentences1, sentences2)
        missing: list[int] = np.flatnonzero(np.isnan(scores)).tolist()
        if cached := len(scores) - len(missing):
            _LOGGER.info("%s: %s pairs were scored before", self.name, f"{cached:,}")
        if not missing:
            return scores
        first, second = ([side[row] for row in missing] for side in (sentences1, sentences2))
        total, random_before, logged = len(missing), self.without_contexts, time.monotonic()
        cost = self.cost(sentences=len({*first, *second}), pairs=total)
        _LOGGER.info("%s: %s", self.name, cost)
        pair_terms = self.pair_terms(first, second)
        for start in range(0, total, self._batch_size):
            part = slice(start, start + self._batch_size)
            cosines = [self._cosine(pair) for pair in islice(pair_terms, self._batch_size)]
            scores[missing[part]] = cosines
            if cache is not None:
                cache.add(first[part], second[part], cosines)
            if time.monotonic() - logged > _SECONDS_PER_REPORT:
                logged = time.monotonic()
                done = start + len(cosines)
                _LOGGER.info("%s: %s of %s pairs", self.name, f"{done:,}", f"{total:,}")
        if count := self.without_contexts - random_before:
            _LOGGER.warning(
                "%s: %s sentences had no context but random ones", self.name, f"{count:,}"
            )
        return scores

    def cosines(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> FloatArray:
        """Compute the cosines of n pairs, ``(n,)``, without logging the expected cost."""
        pairs = self.pair_terms(sentences1, sentences2)
        return np.array([self._cosine(pair) for pair in pairs], np.float32)

    def _cosine(self, pair: PairTerms) -> float:
        return similarity(pair, weights=self.weights, center=self._scoring.center)

    def cost(self, *, sentences: int, pairs: int) -> Cost:
        """Count the work of scoring pairs of so many distinct sentences."""
        selection, scoring, corpus = self._selection, self._scoring, len(self._corpus)
        generated = set(self.weights.used) - {"coherence"}
        models, sides = len(generated), len(generated - {"center"})
        candidates = selection.size
        if selection.strategy != "random":
            candidates = round(selection.candidates * selection.size)
        size = min(selection.size, corpus)
        of_contexts = scoring.references * min(sentences * selection.size, corpus)
        means = {
            "none": 0,
            "context": models * of_contexts,
            "pmi": sides * of_contexts + (models - sides) * scoring.references * sentences,
        }
        sequences = models * (sentences * min(candidates, corpus) + 2 * pairs * size)
        return Cost(pairs, 2 * size, models, sequences + means[scoring.center])

    def pair_terms(
        self, sentences1: Sequence[str], sentences2: Sequence[str]
    ) -> Iterator[PairTerms]:
        """Compute the parts of the scores of n pairs, to try other λ or terms without a new run.

        Terms of weight 0 are missing.
        """
        prepared: dict[str, _PreparedSentence] = {}
        pairs = iter(zip(sentences1, sentences2, strict=True))
        while block := list(islice(pairs, self._batch_size)):
            distinct = dict.fromkeys(sentence for pair in block for sentence in pair)
            new = [sentence for sentence in distinct if sentence not in prepared]
            prepared |= zip(new, self._prepare(new), strict=True)
            yield from self._block_terms(block, prepared)

    def _prepare(self, sentences: list[str]) -> list[_PreparedSentence]:
        """Choose the contexts of sentences, and compute their means over reference contexts."""
        if not sentences:
            return []
        sets = self._selector.select(sentences)
        self.without_contexts += sum(contexts.random for contexts in sets)
        terms: list[dict[str, FloatArray]] = [{} for _ in sentences]
        if self._sentence_terms:
            centers = [self._reference_centers] * len(sentences)
            terms = self._terms.terms(sentences, centers, self._sentence_terms)
        return [
            _PreparedSentence(contexts, {name: float(by.mean()) for name, by in values.items()})
            for contexts, values in zip(sets, terms, strict=True)
        ]

    def terms_less_means(
        self, sentences: Sequence[str], centers: Sequence[IntArray]
    ) -> list[dict[str, FloatArray]]:
        """Compute terms, minus the means of contexts where the centering subtracts those.

        The mean of a sentence is not subtracted: it is the same in all contexts. Takes m sentences
        and the contexts of each; returns the terms by name, each of the length of its contexts.
        """
        results = self._terms.terms(sentences, centers, self.weights.used)
        context_means = self._means.of(centers, self._context_terms)
        for terms, means in zip(results, context_means, strict=True):
            for name, values in means.items():
                terms[name] = terms[name] - values
        return results

    @cached_property
    def _reference_centers(self) -> IntArray:
        centers = np.flatnonzero(self._corpus.has_context)
        random = np.random.default_rng(self._selection.seed)
        size = min(self._scoring.references, len(centers))
        return np.sort(random.choice(centers, size=size, replace=False)).astype(np.int64)

    def _block_terms(
        self, block: Sequence[tuple[str, str]], prepared: Mapping[str, _PreparedSentence]
    ) -> Iterator[PairTerms]:
        cross, names = self._cross_terms(block, prepared), self.weights.used
        sets = [[prepared[text].contexts for text in pair] for pair in block]
        centers = [np.concatenate([first.centers, second.centers]) for first, second in sets]
        context_means = self._means.of(centers, self._context_terms)
        for (first, second), (own1, own2), means in zip(block, sets, context_means, strict=True):
            # A sentence was scored in its own contexts when they were chosen.
            cross1, cross2 = cross[first, second], cross[second, first]
            yield PairTerms(
                first={name: np.concatenate([own1.terms[name], cross1[name]]) for name in names},
                second={name: np.concatenate([cross2[name], own2.terms[name]]) for name in names},
                means=means,
                alone={
                    name: np.array([prepared[text].alone[name] for text in (first, second)])
                    for name in self._sentence_terms
                },
            )

    def _cross_terms(
        self, block: Sequence[tuple[str, str]], prepared: Mapping[str, _PreparedSentence]
    ) -> dict[tuple[str, str], dict[str, FloatArray]]:
        """Compute the terms of each sentence of a pair in the contexts of the other."""
        pairs = list(dict.fromkeys(pair for both in block for pair in (both, both[::-1])))
        centers = [prepared[second].contexts.centers for _, second in pairs]
        results = self._terms.terms([first for first, _ in pairs], centers, self.weights.used)
        cross = {}
        for pair, contexts, terms in zip(pairs, centers, results, strict=True):
            # NaN, which no cosine counts, for contexts near the sentence's own rows.
            far = are_far(prepared[pair[0]].contexts.own, contexts)
            cross[pair] = {name: np.where(far, values, np.nan) for name, values in terms.items()}
        return cross


@dataclass(frozen=True)
class Cost:
    """The work of scoring pairs: contexts of both sentences, and terms that generators compute.

    ``sequences`` are targets that generators score: for the choice of contexts, for each sentence
    in the other's contexts, and for the means that centering subtracts.
    """

    pairs: int
    contexts: int
    models: int
    sequences: int

    def __str__(self) -> str:
        tokens = round(self.sequences * _TOKENS_PER_TARGET)
        return (
            f"{self.pairs:,} pairs x {self.contexts:,} contexts x {self.models} generators: about "
            f"{self.sequences:,} sequences of {tokens:,} tokens in all"
        )


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
        from condsim_contexts.coherence import CoherenceScorer
        from condsim_contexts.generators import GeneratorScorer

        scoring, coherence, generators = self.recipe.scoring, None, None
        if self.recipe.uses_coherence:
            coherence = CoherenceScorer(
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
        build["bfloat16"] = uses_bfloat16(self.recipe.generators.precision)
        return digest({**self.identity, **build})[:12]

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


def open_scorer(folder: Path) -> OriginScorer:
    """Open the origin model in the folder of a run; `condsim.loading` calls it."""
    return open_pipeline(folder).scorer
