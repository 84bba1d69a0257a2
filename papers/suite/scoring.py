"""Scores of a suite, each distinct sentence encoded once over all data sets.

STS-B is made of STS 2012-2017 and captions return from year to year, so sentences are in several
pairs; sorted by length over all sets, they leave hardly any padding in a batch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from condsim.console import Progress
from condsim.errors import InputError
from condsim.evaluation.evaluate import check_scores, score_rows
from condsim.evaluation.report import loaded_versions
from condsim.evaluation.suite import (
    LIBRARIES,
    ScoredModel,
    SuiteScoring,
    SuiteSet,
    UnloadedScorer,
    scorer_revision,
)
from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray, IntArray, Scorer, Task

if TYPE_CHECKING:
    from condsim.model.torch import Precision

# Sentences encoded between two reports of progress.
_SENTENCES_PER_BLOCK = 2048


class StsScoring(SuiteScoring):
    """Scores with a condition for pairs that have none, and a number format."""

    def __init__(
        self,
        sets: Sequence[SuiteSet],
        *,
        seed: int,
        progress: Progress,
        condition: str | None,
        precision: Precision,
    ) -> None:
        """Take the data sets; see `papers.suite.measure_suite`."""
        super().__init__(sets, seed=seed, progress=progress)
        self._condition = condition
        self._precision = precision

    def score(self, scorer: UnloadedScorer | Scorer, *, revision: str | None = None) -> ScoredModel:
        """Load a scorer and score every data set."""
        started = time.monotonic()
        self.progress(f"{scorer.name}: loading", 0, 0)
        opened = scorer.open() if isinstance(scorer, UnloadedScorer) else scorer
        if (with_precision := getattr(opened, "with_precision", None)) is not None:
            opened = with_precision(self._precision)
        tasks = {key: self._conditional(item.task) for key, item in self.sets.items()}
        if isinstance(opened, EmbeddingScorer):
            scores = self._score_by_embedding(opened, tasks)
        else:
            scores = self._score_by_row(opened, tasks)
        for key, values in scores.items():
            check_scores(f"{scorer.name} on {tasks[key].name}", values, len(tasks[key]))
        versions = loaded_versions(*LIBRARIES)
        return ScoredModel(
            scorer.name,
            scores,
            revision=revision or scorer_revision(scorer),
            seconds=time.monotonic() - started,
            facts={"versions": versions, "numbers": getattr(opened, "numbers", None)},
        )

    def _conditional(self, task: Task) -> Task:
        if self._condition is None or task.conditions is not None:
            return task
        return replace(task, conditions=(self._condition,) * len(task))

    def _score_by_row(self, scorer: Scorer, tasks: Mapping[str, Task]) -> dict[str, FloatArray]:
        """Score task by task: the score of a row may depend on the others (TF-IDF)."""
        scores: dict[str, FloatArray] = {}
        for done, (key, task) in enumerate(tasks.items()):
            self.progress(scorer.name, done, len(tasks))
            try:
                raw = score_rows(scorer, task).raw
            except InputError as error:
                raise InputError(f"{scorer.name} on {task.name}: {error}") from error
            scores[key] = np.asarray(raw, dtype=np.float32)
        return scores

    def _score_by_embedding(
        self, scorer: EmbeddingScorer, tasks: Mapping[str, Task]
    ) -> dict[str, FloatArray]:
        """Encode each distinct conditional sentence once; scores are cosines."""
        numbers: dict[tuple[str, str | None], int] = {}
        indices = {key: _number_sentences(task, numbers) for key, task in tasks.items()}
        texts = list(numbers)
        vectors = np.empty((len(texts), scorer.dimension), dtype=np.float32)
        done = 0
        for rows in _blocks(texts):
            self.progress(scorer.name, done, len(texts))
            conditions = [texts[row][1] for row in rows]
            row_conditions = None if conditions[0] is None else [text or "" for text in conditions]
            try:
                vectors[rows] = scorer.encode([texts[row][0] for row in rows], row_conditions)
            except InputError as error:
                hint = "" if row_conditions else " Give it a condition with --condition."
                raise InputError(f"{scorer.name}: {error}{hint}") from error
            done += len(rows)
        return {
            key: np.clip(np.einsum("nd,nd->n", vectors[first], vectors[second]), -1, 1)
            for key, (first, second) in indices.items()
        }


def _number_sentences(task: Task, numbers: dict[tuple[str, str | None], int]) -> IntArray:
    """Number the distinct sentences; return the numbers of both columns, ``(2, n)``."""
    conditions = task.conditions or [None] * len(task)
    columns = []
    for column in (task.sentences1, task.sentences2):
        texts = zip(column, conditions, strict=True)
        columns.append([numbers.setdefault(text, len(numbers)) for text in texts])
    return np.array(columns, dtype=np.int64)


def _blocks(texts: Sequence[tuple[str, str | None]]) -> list[IntArray]:
    """Cut texts into blocks of similar length, those with a condition apart, longest first."""
    lengths = np.array([len(text) + len(condition or "") for text, condition in texts])
    without_condition = np.array([condition is None for _, condition in texts], dtype=bool)
    blocks = []
    for group in (np.flatnonzero(without_condition), np.flatnonzero(~without_condition)):
        order = group[np.argsort(-lengths[group], kind="stable")]
        for start in range(0, len(order), _SENTENCES_PER_BLOCK):
            blocks.append(order[start : start + _SENTENCES_PER_BLOCK])
    return blocks
