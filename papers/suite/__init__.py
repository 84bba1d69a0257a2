"""The suite of STS tasks, as SSBC §4 and the papers before it measure a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from condsim.console import Progress, silent
from condsim.evaluation.suite import SuiteReport, SuiteSet, UnloadedScorer, evaluate_suite
from condsim.model.baselines import BASELINES
from condsim.model.torch import check_precision
from condsim.types import Scorer
from papers.suite.data import Aggregation, StsSet
from papers.suite.scoring import StsScoring

if TYPE_CHECKING:
    from condsim.model.torch import Precision


def measure_suite(
    scorers: Sequence[Scorer | UnloadedScorer],
    sets: Sequence[SuiteSet],
    *,
    against: str | None = None,
    condition: str | None = None,
    aggregation: Aggregation = "all",
    resamples: int = 0,
    seed: int = 0,
    precision: Precision = "auto",
    baselines: Sequence[str] = tuple(BASELINES),
    progress: Progress = silent,
) -> SuiteReport:
    """Measure scorers on data sets, next to all baselines.

    Arguments are as in `condsim.evaluation.suite.evaluate_suite`, and:

    Args:
        condition: The condition of pairs that have none; a tri-encoder needs one.
        aggregation: How the subsets of a year become one number.
        precision: Number format of sentence-transformers encoders; see
            `condsim.model.torch.Precision`. The default model is int8 in any case.
    """
    check_precision(precision)
    sets = [
        replace(item, aggregation=aggregation) if isinstance(item, StsSet) else item
        for item in sets
    ]
    scoring = StsScoring(
        sets, seed=seed, progress=progress, condition=condition, precision=precision
    )
    report = evaluate_suite(
        scorers,
        sets,
        against=against,
        resamples=resamples,
        seed=seed,
        baselines=baselines,
        progress=progress,
        scoring=scoring,
    )
    return report.replaced(aggregation=aggregation, condition=condition)
