"""Evaluation: what a scorer reaches on a task, with intervals, baselines and provenance.

```python
from condsim.evaluation import evaluate, to_markdown

report = evaluate(scorer, task, baselines=["word-overlap"])
report.model.metrics["spearman"].value
print(to_markdown(report))
```
"""

from __future__ import annotations

from condsim.evaluation.bootstrap import bootstrap, p_value, percentile_interval
from condsim.evaluation.correlation import (
    mean_squared_error,
    partial_spearman,
    pearson,
    spearman,
)
from condsim.evaluation.evaluate import evaluate
from condsim.evaluation.pair_accuracy import pair_accuracy
from condsim.evaluation.report import Difference, Metric, ModelResult, Report
from condsim.evaluation.tables import to_markdown, to_table

__all__ = [
    "Difference",
    "Metric",
    "ModelResult",
    "Report",
    "bootstrap",
    "evaluate",
    "mean_squared_error",
    "p_value",
    "pair_accuracy",
    "partial_spearman",
    "pearson",
    "percentile_interval",
    "spearman",
    "to_markdown",
    "to_table",
]
