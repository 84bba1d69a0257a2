from .correlation import (
    Aggregation as Aggregation,
    aggregate_spearman as aggregate_spearman,
    average_ranks as average_ranks,
    pearson as pearson,
    spearman as spearman,
)
from .metrics import (
    MARGIN as MARGIN,
    METRICS as METRICS,
    Metrics as Metrics,
    OverEstimation as OverEstimation,
    auroc as auroc,
    calibration_error as calibration_error,
    check_pairs as check_pairs,
    count_over_estimation as count_over_estimation,
    over_estimation as over_estimation,
    pair_accuracy as pair_accuracy,
    pair_wins as pair_wins,
    triplet_wins as triplet_wins,
)
from .resampling import (
    BLOCK as BLOCK,
    Difference as Difference,
    Metric as Metric,
    ResampledRanks as ResampledRanks,
    bootstrap as bootstrap,
    p_value as p_value,
    percentile_interval as percentile_interval,
    resample_weights as resample_weights,
    weighted_correlation as weighted_correlation,
    weighted_mean as weighted_mean,
)
