"""Correlations, accuracies, intervals and p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.evaluation.statistics.accuracy import (
        auroc as auroc,
        pair_accuracy as pair_accuracy,
        pair_wins as pair_wins,
        triplet_wins as triplet_wins,
    )
    from condsim.evaluation.statistics.correlation import (
        Aggregation as Aggregation,
        aggregate_spearman as aggregate_spearman,
        average_ranks as average_ranks,
        mean_squared_error as mean_squared_error,
        partial_spearman as partial_spearman,
        pearson as pearson,
        spearman as spearman,
    )
    from condsim.evaluation.statistics.metrics import METRICS as METRICS, Metrics as Metrics
    from condsim.evaluation.statistics.overestimates import (
        MARGIN as MARGIN,
        OverEstimation as OverEstimation,
        check_pairs as check_pairs,
        count_over_estimation as count_over_estimation,
        over_estimation as over_estimation,
    )
    from condsim.evaluation.statistics.resampling import (
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

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "accuracy": "auroc pair_accuracy pair_wins triplet_wins",
        "correlation": (
            "Aggregation aggregate_spearman average_ranks mean_squared_error partial_spearman "
            "pearson spearman"
        ),
        "metrics": "METRICS Metrics",
        "overestimates": "MARGIN OverEstimation check_pairs count_over_estimation over_estimation",
        "resampling": (
            "BLOCK Difference Metric ResampledRanks bootstrap p_value percentile_interval "
            "resample_weights weighted_correlation weighted_mean"
        ),
    },
    extra="train",
)
