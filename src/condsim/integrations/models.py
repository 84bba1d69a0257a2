"""Models by name or loaded, rows with nulls, and ranked texts, for all integrations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.loading import load_scorer
from condsim.model.base import PairScorer, Scale, Texts, check_rows
from condsim.types import FloatArray

Model = str | Path | PairScorer | None
"""A model: what `condsim.load` takes, or what it returned; None is the default model."""

Column = Sequence[str | None]


def scorer_of(model: Model) -> PairScorer:
    """Load a model unless it is loaded."""
    return model if isinstance(model, PairScorer) else load_scorer(model)


def score_present(
    scorer: PairScorer,
    first: Column,
    second: Column,
    condition: Column | str | None,
    *,
    scale: Scale,
) -> FloatArray:
    """Score the rows in which nothing is None; others are NaN, ``(n,)``. Errors count all rows."""
    columns = [first, second]
    if condition is not None and not isinstance(condition, str):
        columns.append(condition)
    filled = [["none" if text is None else text for text in column] for column in columns]
    check_rows(filled[2] if len(filled) > 2 else None, sentences1=filled[0], sentences2=filled[1])
    present = [None not in texts for texts in zip(*columns, strict=True)]
    complete = [list(compress(column, present)) for column in filled]
    scores = np.full(len(present), np.nan, dtype=np.float32)
    conditions = complete[2] if len(complete) > 2 else condition
    scores[present] = scorer.score(complete[0], complete[1], conditions, scale=scale)
    return scores


def ranked(
    scorer: PairScorer,
    query: str,
    texts: Texts,
    condition: str | None,
    *,
    top: int | None,
    at_least: float | None,
) -> list[tuple[int, float]]:
    """Return index and score of the ``top`` texts with a score of ``at_least``, the best first."""
    if top is not None and top < 1:
        raise InputError(f"A re-ranker must keep 1 text or more; got {top}.")
    scores = scorer.score(query, texts, condition)
    best = np.argsort(-scores, kind="stable")[:top]
    return [
        (int(index), float(scores[index]))
        for index in best
        if at_least is None or scores[index] >= at_least
    ]
