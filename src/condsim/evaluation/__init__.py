"""Evaluation: what a scorer reaches on a task, with intervals, baselines and provenance.

```python
from condsim.evaluation import evaluate, to_markdown

report = evaluate(scorer, task, baselines=["word-overlap"])
report.model.metrics["spearman"].value
print(to_markdown(report))
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.evaluation.measuring import (
        FEWEST_ROWS as FEWEST_ROWS,
        Scores as Scores,
        evaluate as evaluate,
        labelled_rows as labelled_rows,
        measure as measure,
        score_rows as score_rows,
        triplet_accuracy as triplet_accuracy,
    )
    from condsim.evaluation.plots import (
        predicted_against_gold as predicted_against_gold,
        score_histogram as score_histogram,
    )
    from condsim.evaluation.prompt_report import (
        PromptReport as PromptReport,
        evaluate_prompt as evaluate_prompt,
    )
    from condsim.evaluation.report import (
        ModelResult as ModelResult,
        Report as Report,
        write_json as write_json,
    )
    from condsim.evaluation.rewording import (
        BAR as BAR,
        Robustness as Robustness,
        robustness as robustness,
    )
    from condsim.evaluation.statistics import (
        Aggregation as Aggregation,
        Difference as Difference,
        Metric as Metric,
        OverEstimation as OverEstimation,
        aggregate_spearman as aggregate_spearman,
        auroc as auroc,
        bootstrap as bootstrap,
        mean_squared_error as mean_squared_error,
        over_estimation as over_estimation,
        p_value as p_value,
        pair_accuracy as pair_accuracy,
        partial_spearman as partial_spearman,
        pearson as pearson,
        percentile_interval as percentile_interval,
        spearman as spearman,
    )
    from condsim.evaluation.suite import (
        Suite as Suite,
        SuiteTask as SuiteTask,
        default_cache as default_cache,
        evaluate_suite as evaluate_suite,
        heat_map as heat_map,
        load_suite as load_suite,
        suite_markdown as suite_markdown,
        suite_tables as suite_tables,
    )
    from condsim.evaluation.tables import (
        over_estimation_table as over_estimation_table,
        to_markdown as to_markdown,
        to_table as to_table,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "measuring": (
            "FEWEST_ROWS Scores evaluate labelled_rows measure score_rows triplet_accuracy"
        ),
        "plots": "predicted_against_gold score_histogram",
        "prompt_report": "PromptReport evaluate_prompt",
        "report": "ModelResult Report write_json",
        "rewording": "BAR Robustness robustness",
        "statistics": (
            "Aggregation Difference Metric OverEstimation aggregate_spearman auroc bootstrap "
            "mean_squared_error over_estimation p_value pair_accuracy partial_spearman pearson "
            "percentile_interval spearman"
        ),
        "suite": (
            "Suite SuiteTask default_cache evaluate_suite heat_map load_suite suite_markdown "
            "suite_tables"
        ),
        "tables": "over_estimation_table to_markdown to_table",
    },
    extra="train",
)
