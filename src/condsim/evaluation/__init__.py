"""Measure scorers: metrics, intervals, reports, tables and thresholds."""

from condsim.evaluation.evaluate import evaluate, triplet_accuracy
from condsim.evaluation.metrics import over_estimation
from condsim.evaluation.report import Report, to_markdown
from condsim.evaluation.rewording import robustness
from condsim.evaluation.suite import evaluate_suite
from condsim.evaluation.suite_data import load_suite
from condsim.evaluation.suite_tables import suite_markdown
from condsim.evaluation.threshold import find_threshold

__all__ = [
    "Report",
    "evaluate",
    "evaluate_suite",
    "find_threshold",
    "load_suite",
    "over_estimation",
    "robustness",
    "suite_markdown",
    "to_markdown",
    "triplet_accuracy",
]
