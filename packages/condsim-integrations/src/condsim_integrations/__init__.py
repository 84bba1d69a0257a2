"""condsim in other libraries, one module for each; here is what several of them share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.loading import load_scorer
from condsim.model.base import Condition, PairScorer, Scale
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray

_LOGGER = logging.getLogger(__name__)

Model = str | Path | PairScorer | None
"""A model: what `condsim.load` takes, or what it returned; None is the default model."""

Column = Sequence[str | None]


def scorer_of(model: Model) -> PairScorer:
    """Load a model unless it is loaded."""
    return model if isinstance(model, PairScorer) else load_scorer(model)


def named(scorer: PairScorer, condition: Condition | None) -> str | None:
    """Return a condition by name, as other libraries store it; a learned one is registered."""
    return None if condition is None else scorer.named(condition)


def is_blank(text: str | None) -> bool:
    """Check for a missing text, or one of spaces only."""
    return text is None or (isinstance(text, str) and not text.strip())


def score_present(
    scorer: PairScorer,
    first: Column,
    second: Column,
    condition: Column | Condition | None,
    *,
    scale: Scale,
) -> FloatArray:
    """Score the rows in which nothing is blank; others are NaN, ``(n,)``."""
    columns = [first, second]
    if condition is not None and not isinstance(condition, str | Criterion):
        columns.append(condition)
    blank = np.array([any(map(is_blank, texts)) for texts in zip(*columns, strict=True)], np.bool_)
    # A filler in these rows, so that an error has the index among all rows.
    filled = [np.where(blank, "none", np.array(column, np.object_)).tolist() for column in columns]
    names = filled[2] if len(filled) > 2 else condition
    scores = scorer.score(filled[0], filled[1], names, scale=scale)
    scores[blank] = np.nan
    return scores


def encode_present(
    encoder: EmbeddingScorer, texts: Column, condition: str | None, *, log: str | None = None
) -> FloatArray:
    """Encode texts, ``(n, dimension)``; the vectors of blank ones are 0.

    With ``log``, a line counts the blank ones, and says what they get.
    """
    vectors = np.zeros((len(texts), encoder.dimension_of(condition)), dtype=np.float32)
    rows = _rows_with_text(texts, log)
    vectors[rows] = encoder.encode([texts[row] for row in rows], condition)
    return vectors


def ranked(
    scorer: PairScorer,
    query: str,
    texts: Column,
    condition: str | None,
    *,
    top: int | None,
    at_least: float | None,
) -> list[tuple[int, float | None]]:
    """Return index and score of the ``top`` texts with a score of ``at_least``, the best first.

    Blank texts have no score, and are the last.
    """
    if top is not None and top < 1:
        raise InputError(f"A re-ranker must keep 1 text or more; got {top}.")
    rows = _rows_with_text(texts, "no score, and are the last")
    scores = scorer.score(query, [texts[row] for row in rows], condition)
    best: list[tuple[int, float | None]] = [
        (rows[index], float(scores[index]))
        for index in np.argsort(-scores, kind="stable")
        if at_least is None or scores[index] >= at_least
    ]
    if at_least is None:
        best += [(row, None) for row, text in enumerate(texts) if is_blank(text)]
    return best[:top]


def _rows_with_text(texts: Column, log: str | None) -> list[int]:
    rows = [row for row, text in enumerate(texts) if not is_blank(text)]
    if log and len(rows) < len(texts):
        _LOGGER.warning(
            "%d of %d texts are blank; they get %s.", len(texts) - len(rows), len(texts), log
        )
    return rows
