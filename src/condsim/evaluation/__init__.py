"""Evaluation: what a scorer reaches on a task, with intervals, baselines and provenance.

```python
from condsim.evaluation import evaluate, to_markdown

report = evaluate(scorer, task, baselines=["word-overlap"])
report.model.metrics["spearman"].value
print(to_markdown(report))
```
"""

from __future__ import annotations

from condsim.evaluation.aggregation import Aggregation, aggregate_spearman
from condsim.evaluation.bootstrap import bootstrap, p_value, percentile_interval
from condsim.evaluation.correlation import (
    mean_squared_error,
    partial_spearman,
    pearson,
    spearman,
)
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.over_estimation import OverEstimation, over_estimation
from condsim.evaluation.pair_accuracy import pair_accuracy
from condsim.evaluation.report import Difference, Metric, ModelResult, Report
from condsim.evaluation.tables import over_estimation_table, to_markdown, to_table
from condsim.evaluation.triplet_accuracy import triplet_accuracy

__all__ = [
    "Aggregation",
    "Difference",
    "Metric",
    "ModelResult",
    "OverEstimation",
    "Report",
    "aggregate_spearman",
    "bootstrap",
    "evaluate",
    "mean_squared_error",
    "over_estimation",
    "over_estimation_table",
    "p_value",
    "pair_accuracy",
    "partial_spearman",
    "pearson",
    "percentile_interval",
    "spearman",
    "to_markdown",
    "to_table",
    "triplet_accuracy",
]
