"""Measures how well a head separates rows whose condition applies from the others."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from condsim.applicability.fitting import (
    STRENGTH,
    calibrated,
    check_strength,
    decisions_out_of_fold,
    features_of,
    fit_extra,
)
from condsim.evaluation import Metric, auroc
from condsim.scorers import EmbeddingScorer, out_of_fold
from condsim.settings import Settings
from condsim.types import Task


class ApplicabilityReport(Settings):
    """What heads reach: AUROC, 0 to 1, where 0.5 is chance, with 95 % intervals.

    Attributes:
        model: Name of the model.
        data: Name of the rows.
        data_revision: First 12 hex digits of the SHA-256 of their file.
        rows: Number of rows.
        does_not_apply: Rows whose condition does not apply.
        head: Head trained on the rows, each predicted by a fit without its sentence pair.
        extra_only: Head trained on the extra rows alone; None if there are none.
        both: Head trained on the rows and the extra ones, by the same folds; None likewise.
        condition_only: Ridge regression on the TF-IDF of the condition, by as many folds.
        cosine: The model's similarity taken for applicability.
        brier: Mean squared error of the probabilities of the head in use, 0 to 1.
        brier_constant: Of a constant probability, for comparison.
        seed: Seed of folds and resamples.
        resamples: Number of bootstrap resamples.
    """

    format: Literal[1] = 1
    model: str
    data: str
    data_revision: str
    rows: int
    does_not_apply: int
    head: Metric
    extra_only: Metric | None
    both: Metric | None
    condition_only: Metric
    cosine: Metric
    brier: float
    brier_constant: float
    seed: int
    resamples: int


def measure_applicability(
    scorer: EmbeddingScorer,
    rows: Task,
    *,
    extra: Task | None = None,
    strength: float = STRENGTH,
    seed: int = 0,
    resamples: int = 1000,
) -> ApplicabilityReport:
    """Measures heads by 10-fold cross-validation over sentence pairs, beside baselines.

    Args:
        rows: Rows with the label 1 where the condition applies and 0 where it does not.
        extra: More such rows to fit on, never to measure on; their sentences must not be in
            ``rows``.
        strength: See `condsim.applicability.fit_head`.
        seed: Seed of folds and resamples.
        resamples: How many bootstrap resamples to draw.

    Raises:
        InputError: If rows are too few or all of one kind, or an option is out of range.
        MissingExtraError: If scikit-learn is not installed.
    """
    check_strength(strength)
    applies = rows.labels > 0
    numbers: dict[tuple[str, str], int] = {}
    texts = zip(rows.sentences1, rows.sentences2, strict=True)
    pairs = np.array([numbers.setdefault(pair, len(numbers)) for pair in texts], np.int64)

    def area(scores: NDArray[np.floating]) -> Metric:
        return auroc(scores, applies, pairs, resamples=resamples, seed=seed)

    values = features_of(scorer, rows)
    logits = decisions_out_of_fold(values, rows, extra=None, strength=strength, seed=seed)
    used, only, both = logits, None, None
    if extra is not None:
        prior = fit_extra(scorer, extra)
        used = decisions_out_of_fold(values, rows, extra=prior, strength=strength, seed=seed)
        only, both = area(prior(values)), area(used)
    chances = 1 / (1 + np.exp(-calibrated(used, applies)(used[:, None])))
    return ApplicabilityReport(
        model=scorer.name,
        data=rows.name,
        data_revision=rows.revision,
        rows=len(rows),
        does_not_apply=int((~applies).sum()),
        head=area(logits),
        extra_only=only,
        both=both,
        condition_only=area(out_of_fold(rows, name="condition-only", seed=seed)),
        cosine=area(scorer.score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")),
        brier=float(np.mean((chances - applies) ** 2)),
        brier_constant=float(applies.mean() * (1 - applies.mean())),
        seed=seed,
        resamples=resamples,
    )
