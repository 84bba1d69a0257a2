from .measuring import (
    FEWEST_ROWS as FEWEST_ROWS,
    PromptReport as PromptReport,
    Scores as Scores,
    evaluate as evaluate,
    evaluate_prompt as evaluate_prompt,
    labelled_rows as labelled_rows,
    score_rows as score_rows,
    triplet_accuracy as triplet_accuracy,
)
from .report import (
    ModelResult as ModelResult,
    Report as Report,
    ResultFile as ResultFile,
    write_json as write_json,
)
from .rewording import BAR as BAR, Robustness as Robustness, robustness as robustness
from .statistics import (
    Aggregation as Aggregation,
    Difference as Difference,
    Metric as Metric,
    OverEstimation as OverEstimation,
    aggregate_spearman as aggregate_spearman,
    auroc as auroc,
    bootstrap as bootstrap,
    calibration_error as calibration_error,
    over_estimation as over_estimation,
    p_value as p_value,
    pair_accuracy as pair_accuracy,
    pearson as pearson,
    percentile_interval as percentile_interval,
    spearman as spearman,
    triplet_wins as triplet_wins,
)
from .suite import (
    BY_SET as BY_SET,
    Suite as Suite,
    SuiteReport as SuiteReport,
    SuiteTask as SuiteTask,
    default_cache as default_cache,
    evaluate_suite as evaluate_suite,
    heat_map as heat_map,
    load_suite as load_suite,
    mark_trained as mark_trained,
    suite_markdown as suite_markdown,
    suite_tables as suite_tables,
)
from .tables import (
    markdown_table as markdown_table,
    over_estimation_table as over_estimation_table,
    predicted_against_gold as predicted_against_gold,
    score_histogram as score_histogram,
    to_markdown as to_markdown,
    to_table as to_table,
)
