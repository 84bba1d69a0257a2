"""Training of an applicability head: logistic regression on features of embeddings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from condsim.config import Settings
from condsim.data.csts import load_applicability
from condsim.data.pairs import join_tasks
from condsim.data.statistics import draw_folds
from condsim.errors import InputError
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.metrics import auroc
from condsim.model.applicability import PROBE, ApplicabilityHead, features
from condsim.model.baselines import out_of_fold
from condsim.model.embedding import EmbeddingScorer
from condsim.types import BoolArray, Float64Array, Task

SAMPLE = 12_000
"""Maximum number of extra rows, unless asked otherwise."""

STRENGTH = 0.01
"""Inverse weight of the squared coefficients, scikit-learn's C."""

FOLDS = 10
EXTRA_STRENGTH = 0.003
# Standard deviation of the extra fit's logit as a feature.
EXTRA_SCALE = 5.0
CALIBRATION_STRENGTH = 1e4
ROWS_PER_BATCH = 1024


def load_extra(
    paths: Sequence[Path | str], *, sample: int = SAMPLE, seed: int = 0, exclude: Task | None = None
) -> Task:
    """Load extra rows, at most ``sample``: of each condition as many that it applies to as not.

    One of the files may contain the rows that apply and another those that do not. Rows with a
    sentence of ``exclude``, which are measured on, are left out.
    """
    tasks = [load_applicability(path, require_both=False) for path in paths]
    joined = join_tasks(tasks, name=" + ".join(task.name for task in tasks))
    joined = replace(joined, revision=" + ".join(task.revision for task in tasks))
    excluded = set() if exclude is None else {*exclude.sentences1, *exclude.sentences2}
    rows_of: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    conditions = joined.conditions or ()
    random = np.random.default_rng(seed)
    for row in random.permutation(len(joined)).tolist():
        if excluded.isdisjoint((joined.sentences1[row], joined.sentences2[row])):
            rows_of[conditions[row].casefold()][int(joined.labels[row])].append(row)
    pairs: list[tuple[int, ...]] = []
    for condition in sorted(rows_of):
        pairs += zip(*rows_of[condition], strict=False)
    if not pairs:
        raise InputError(
            f"{joined.name}: a condition must have a row that it applies to (label 1 to 5) and one "
            "that it does not (label -1). Give both files of 'condsim build weak --absent'."
        )
    drawn = random.permutation(len(pairs))[: sample // 2]
    return joined.take(np.sort(np.array([pairs[number] for number in drawn]).ravel()))


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function of features, with weights ``(f,)``."""

    weights: Float64Array
    bias: float

    def __call__(self, values: Float64Array) -> Float64Array:
        """Compute the logit of each row of features, ``(n,)``."""
        return np.asarray(values @ self.weights + self.bias, np.float64)


def fit_linear(
    values: Float64Array, applies: BoolArray, *, extra: Linear | None, strength: float
) -> Linear:
    """Fit a logistic regression on features ``(n, f)``.

    The logit of the fit on extra rows, if there is one, is one more feature. As it is linear in the
    others, the result is too.
    """
    center = values.mean(axis=0)
    centered = values - center
    if extra is None:
        model = _logistic(centered, applies, strength=strength)
        return Linear(model.weights, model.bias - float(center @ model.weights))
    logits = extra(values)
    offset, scale = float(logits.mean()), EXTRA_SCALE / max(float(logits.std()), 1e-9)
    columns = np.column_stack([centered, (logits - offset) * scale])
    model = _logistic(columns, applies, strength=strength)
    own_weights, share = model.weights[:-1], float(model.weights[-1]) * scale
    bias = model.bias - float(center @ own_weights) + share * (extra.bias - offset)
    return Linear(own_weights + share * extra.weights, bias)


def _logistic(values: Float64Array, applies: BoolArray, *, strength: float) -> Linear:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, max_iter=1000, tol=1e-3)
    model.fit(values, applies)
    return Linear(np.asarray(model.coef_[0], np.float64), float(model.intercept_[0]))


class _HeadFit:
    """Fits on the features of rows, with and without extra rows."""

    def __init__(
        self, scorer: EmbeddingScorer, rows: Task, extra: Task | None, *, strength: float, seed: int
    ) -> None:
        if not 0 < strength < np.inf:
            raise InputError(f"The 'strength' must be a number above 0; got {strength}.")
        self.rows, self.strength, self.seed = rows, strength, seed
        self.applies = rows.labels > 0
        self.values = _features(scorer, rows)
        self.extra = None
        if extra is not None:
            values = _features(scorer, extra)
            self.extra = fit_linear(values, extra.labels > 0, extra=None, strength=EXTRA_STRENGTH)

    def logits(self, extra: Linear | None) -> Float64Array:
        """Compute the logit of each row by a fit without its sentence pair, ``(n,)``."""
        rows, applies = self.rows, self.applies
        pairs = list(zip(rows.sentences1, rows.sentences2, strict=True))
        enough = len(set(map(frozenset, pairs))) >= FOLDS
        fold = draw_folds(pairs, folds=FOLDS, seed=self.seed)
        logits = np.empty(len(rows))
        for number in range(FOLDS):
            rest = fold != number
            if not enough or applies[rest].all() or not applies[rest].any():
                raise InputError(
                    f"{rows.name}: {FOLDS} folds need as many sentence pairs, and rows of both "
                    f"kinds outside each; got {int(applies.sum())} rows whose condition applies "
                    f"and {int((~applies).sum())} whose does not."
                )
            fitted = fit_linear(
                self.values[rest], applies[rest], extra=extra, strength=self.strength
            )
            logits[~rest] = fitted(self.values[~rest])
        return logits

    def calibrated(self, logits: Float64Array) -> Linear:
        """Fit slope and constant that calibrate the logits of unseen rows (Platt, 1999)."""
        return _logistic(logits[:, None], self.applies, strength=CALIBRATION_STRENGTH)


def _features(scorer: EmbeddingScorer, rows: Task) -> Float64Array:
    """Embed rows and turn them into features, ``(n, f)``."""
    columns = rows.sentences1, rows.sentences2, rows.conditions or ()
    batches = []
    for start in range(0, len(rows), ROWS_PER_BATCH):
        batch = [column[start : start + ROWS_PER_BATCH] for column in columns]
        batches.append(features(scorer.embedded(*batch)))
    return np.concatenate(batches)


def fit_head(
    scorer: EmbeddingScorer,
    rows: Task,
    *,
    extra: Task | None = None,
    strength: float = STRENGTH,
    seed: int = 0,
) -> ApplicabilityHead:
    """Train a head for a model.

    Its probabilities are calibrated on logits from 10-fold cross-validation over sentence pairs,
    for data in which as many conditions apply as in ``rows``.

    Args:
        scorer: The model.
        rows: Rows with the label 1 where the condition applies and 0 where it does not, as
            `condsim.data.csts.load_applicability` reads them.
        extra: More such rows of another origin, such as weak ones; the logit of their fit is one
            feature of the fit on ``rows``.
        strength: Inverse weight of the squared coefficients, above 0.
        seed: Seed of the folds.

    Raises:
        InputError: If rows are too few or all of one kind, or ``strength`` is not above 0.
    """
    fit = _HeadFit(scorer, rows, extra, strength=strength, seed=seed)
    scale = fit.calibrated(fit.logits(fit.extra))
    slope = float(scale.weights[0])
    fitted = fit_linear(fit.values, fit.applies, extra=fit.extra, strength=strength)
    facts: dict[str, str | int | float] = {
        "rows": f"{rows.name} {rows.revision}",
        "applies": int(fit.applies.sum()),
        "does_not_apply": int((~fit.applies).sum()),
    }
    if extra is not None:
        facts["extra_rows"] = f"{extra.name} {extra.revision}"
    return ApplicabilityHead(
        model=scorer.name,
        weights=slope * fitted.weights,
        bias=slope * fitted.bias + scale.bias,
        probe=scorer.encode(*PROBE),
        facts=facts,
    )


class ApplicabilityReport(Settings):
    """Figures of heads: AUROC, 0 to 1, where 0.5 is chance, with 95 % intervals.

    Attributes:
        head: Head trained on the rows, each predicted by a fit without its sentence pair.
        extra_only: Head trained on the extra rows alone; None if there are none.
        both: Head trained on the rows and the extra ones, by the same folds; None without extra.
        condition_only: Ridge regression on the TF-IDF of the condition, by as many folds.
        cosine: The model's similarity taken for applicability.
        brier: Mean squared error of the probabilities of the head in use, 0 to 1.
        brier_constant: The same of a constant probability, for comparison.
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
    """Measure heads by 10-fold cross-validation over sentence pairs, next to baselines.

    Arguments and errors are those of `fit_head`; the bootstrap draws ``resamples`` samples. The
    sentences of ``extra`` must not be in ``rows``.
    """
    fit = _HeadFit(scorer, rows, extra, strength=strength, seed=seed)
    applies = fit.applies
    # Pairs are the same in either order.
    numbers: dict[frozenset[str], int] = {}
    texts = map(frozenset, zip(rows.sentences1, rows.sentences2, strict=True))
    pairs = np.array([numbers.setdefault(pair, len(numbers)) for pair in texts], np.int64)

    def area(scores: NDArray[np.floating]) -> Metric:
        return auroc(scores, applies, pairs, resamples=resamples, seed=seed)

    logits = fit.logits(None)
    final_logits = logits if fit.extra is None else fit.logits(fit.extra)
    chances = 1 / (1 + np.exp(-fit.calibrated(final_logits)(final_logits[:, None])))
    return ApplicabilityReport(
        model=scorer.name,
        data=rows.name,
        data_revision=rows.revision,
        rows=len(rows),
        does_not_apply=int((~applies).sum()),
        head=area(logits),
        extra_only=None if fit.extra is None else area(fit.extra(fit.values)),
        both=None if fit.extra is None else area(final_logits),
        condition_only=area(out_of_fold(rows, name="condition-only", seed=seed)),
        cosine=area(scorer.score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")),
        brier=float(np.mean((chances - applies) ** 2)),
        brier_constant=float(applies.mean() * (1 - applies.mean())),
        seed=seed,
        resamples=resamples,
    )
