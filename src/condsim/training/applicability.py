"""Training of an applicability head, a logistic model of each text, on labeled pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from condsim.config import Settings
from condsim.data.csts import load_applicability
from condsim.data.tasks import draw_folds, join_tasks
from condsim.errors import InputError
from condsim.evaluation.metrics import auroc
from condsim.evaluation.statistics import Metric
from condsim.model.applicability import PROBE, ApplicabilityHead, head_features, logistic
from condsim.model.baselines import out_of_fold
from condsim.model.embedding import EmbeddingScorer
from condsim.types import BoolArray, Float64Array, Task

SAMPLE = 12_000
"""Maximum number of extra rows, unless asked otherwise."""

STRENGTH = 0.01
"""Inverse weight of the squared coefficients, scikit-learn's C."""

FOLDS = 10
# Weight of a row where an extra row has the weight 1.
OWN_WEIGHT = 3.0
MAX_STEPS = 150
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


def fit_head_weights(
    first: Float64Array,
    second: Float64Array,
    applies: BoolArray,
    weights: Float64Array,
    *,
    strength: float,
) -> tuple[Float64Array, float]:
    """Fit the logistic model of one text to pairs of texts, by maximum likelihood.

    A condition applies to a pair with the probability p q, where p and q are the logistic functions
    of ``features · w + b`` of its two texts. Minimizes::

        - sum_i weight_i (y_i log p_i q_i + (1 - y_i) log(1 - p_i q_i)) + |w|² / (2 strength)

    ``first`` and ``second`` are the features of the texts, ``(n, f)`` each; ``applies`` and
    ``weights`` are ``(n,)``. Returns the weights w, ``(f,)``, and the constant b.
    """
    from scipy.optimize import minimize

    center = first.mean(axis=0)
    sides = (first - center, second - center)

    def loss(parameters: Float64Array) -> tuple[float, Float64Array]:
        own, bias = parameters[:-1], parameters[-1]
        p, q = (logistic(values @ own + bias) for values in sides)
        both = np.clip(p * q, 1e-9, 1 - 1e-9)
        value = -(weights * np.where(applies, np.log(both), np.log1p(-both))).sum()
        # Derivative by log(p q), of which that by the logit of p is 1 - p.
        slope = weights * np.where(applies, -1.0, both / (1 - both))
        slopes = slope * (1 - p), slope * (1 - q)
        gradient = sum(values.T @ by_logit for values, by_logit in zip(sides, slopes, strict=True))
        constant = slopes[0].sum() + slopes[1].sum()
        penalty = own / strength
        return value + own @ penalty / 2, np.append(gradient + penalty, constant)

    start = np.zeros(first.shape[1] + 1)
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
    fitted: Float64Array = optimum.x[:-1]
    return fitted, float(optimum.x[-1] - center @ fitted)


class _HeadFit:
    """Fits of rows and, if asked, of extra rows after them; ``(all rows, f)`` features a side."""

    def __init__(
        self, scorer: EmbeddingScorer, rows: Task, extra: Task | None, *, strength: float
    ) -> None:
        if not 0 < strength < np.inf:
            raise InputError(f"The 'strength' must be a number above 0; got {strength}.")
        tasks = [rows] if extra is None else [rows, extra]
        self.rows, self.strength = rows, strength
        self.sides = (
            _text_features(scorer, [(task.sentences1, task.conditions) for task in tasks]),
            _text_features(scorer, [(task.sentences2, task.conditions) for task in tasks]),
        )
        self.applies: BoolArray = np.concatenate([task.labels > 0 for task in tasks])

    def fit(self, selected: BoolArray, *, extra: bool) -> tuple[Float64Array, float]:
        """Fit some of the rows, with the extra rows if asked."""
        number_of_extra = len(self.applies) - len(selected)
        chosen = np.append(selected, np.full(number_of_extra, extra))
        weights = np.ones(len(chosen))
        if extra and number_of_extra:
            weights[: len(selected)] = OWN_WEIGHT
        first, second = (values[chosen] for values in self.sides)
        return fit_head_weights(
            first, second, self.applies[chosen], weights[chosen], strength=self.strength
        )

    def chances(self, *, extra: bool, seed: int) -> Float64Array:
        """Compute the probability of each row by a fit without its sentence pair, ``(n,)``."""
        rows, applies = self.rows, self.applies[: len(self.rows)]
        pairs = list(zip(rows.sentences1, rows.sentences2, strict=True))
        enough = len(set(map(frozenset, pairs))) >= FOLDS
        fold = draw_folds(pairs, folds=FOLDS, seed=seed)
        chances = np.empty(len(rows))
        for number in range(FOLDS):
            rest = fold != number
            if not enough or applies[rest].all() or not applies[rest].any():
                raise InputError(
                    f"{rows.name}: {FOLDS} folds need as many sentence pairs, and rows of both "
                    f"kinds outside each; got {int(applies.sum())} rows whose condition applies "
                    f"and {int((~applies).sum())} whose does not."
                )
            weights, bias = self.fit(rest, extra=extra)
            first, second = (
                logistic(values[: len(rows)][~rest] @ weights + bias) for values in self.sides
            )
            chances[~rest] = first * second
        return chances


def _text_features(
    scorer: EmbeddingScorer, columns: Sequence[tuple[Sequence[str], Sequence[str] | None]]
) -> Float64Array:
    """Features of the texts of one side of several tasks under their conditions, ``(n, f)``."""
    blocks = [
        head_features(scorer.embedded(texts[start:stop], (conditions or ())[start:stop]))
        for texts, conditions in columns
        for start, stop in pairwise([*range(0, len(texts), ROWS_PER_BATCH), len(texts)])
    ]
    return np.concatenate(blocks)


def fit_head(
    scorer: EmbeddingScorer, rows: Task, *, extra: Task | None = None, strength: float = STRENGTH
) -> ApplicabilityHead:
    """Train a head for a model; see `fit_head_weights`.

    Rows have the label 1 where the condition applies and 0 where it does not, as
    `condsim.data.csts.load_applicability` reads them. One of ``extra``, which has another origin,
    has a third of the weight. The ``strength`` must be above 0.
    """
    fit = _HeadFit(scorer, rows, extra, strength=strength)
    applies = fit.applies[: len(rows)]
    weights, bias = fit.fit(np.ones(len(applies), bool), extra=True)
    facts: dict[str, str | int | float] = {
        "rows": f"{rows.name} {rows.revision}",
        "applies": int(applies.sum()),
        "does_not_apply": int((~applies).sum()),
    }
    if extra is not None:
        facts["extra_rows"] = f"{extra.name} {extra.revision}"
    return ApplicabilityHead(
        model=scorer.name, weights=weights, bias=bias, probe=scorer.encode(*PROBE), facts=facts
    )


class ApplicabilityReport(Settings):
    """Figures of heads: AUROC, 0 to 1, where 0.5 is chance, with 95 % intervals.

    Attributes:
        head: Head trained on the rows, each predicted by a fit without its sentence pair.
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

    Arguments and errors are as in `fit_head`; the bootstrap draws ``resamples`` samples. The
    sentences of ``extra`` must not be in ``rows``.
    """
    fit = _HeadFit(scorer, rows, extra, strength=strength)
    applies = fit.applies[: len(rows)]
    # Pairs are the same in either order.
    numbers: dict[frozenset[str], int] = {}
    texts = map(frozenset, zip(rows.sentences1, rows.sentences2, strict=True))
    pairs = np.array([numbers.setdefault(pair, len(numbers)) for pair in texts], np.int64)

    def area(scores: NDArray[np.floating]) -> Metric:
        return auroc(scores, applies, pairs, resamples=resamples, seed=seed)

    alone = fit.chances(extra=False, seed=seed)
    chances = alone if extra is None else fit.chances(extra=True, seed=seed)
    return ApplicabilityReport(
        model=scorer.name,
        data=rows.name,
        data_revision=rows.revision,
        rows=len(rows),
        does_not_apply=int((~applies).sum()),
        head=area(alone),
        both=None if extra is None else area(chances),
        condition_only=area(out_of_fold(rows, name="condition-only", seed=seed)),
        cosine=area(scorer.score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")),
        brier=float(np.mean((chances - applies) ** 2)),
        brier_constant=float(applies.mean() * (1 - applies.mean())),
        seed=seed,
        resamples=resamples,
    )
