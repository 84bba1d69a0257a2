"""Figures of an adaptation: the model before and after, on rows that were not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.evaluation.report import ModelResult, Report

FIGURES = {"spearman": "Spearman", "pair_accuracy": "pair accuracy"}


@dataclass(frozen=True)
class Adaptation:
    """Figures of an adaptation, on rows that were not trained on.

    Attributes:
        output: The folder of the adapted model; None if it did not help and was not forced.
        report: The int8 model on the rows to measure on, with the model before as ``against``.
            Epochs were chosen on these rows, so they flatter it a little.
        train_rows: Labeled rows that were trained on.
        rehearsal_rows: Pairs of other domains on which the scores should stay.
        moved: Mean change of their scores, in [0, 1].
        moved_most: 95th percentile of the change, in [0, 1].
        seconds: Wall-clock time of the call.
    """

    output: Path | None
    report: Report
    train_rows: int
    rehearsal_rows: int
    moved: float
    moved_most: float
    seconds: float

    @property
    def helped(self) -> bool:
        """True if the mean of Spearman and pair accuracy is above the earlier model's."""
        before = self.report.against
        return before is not None and _mean_figure(self.report.model) > _mean_figure(before)

    def to_text(self) -> str:
        """Lay out the figures before and after as lines of text."""
        report, before = self.report, self.report.against or self.report.model
        lines = [f"{'':14}{'before':>22}{'after':>22}"]
        for name, title in FIGURES.items():
            cells = [f"{_interval_text(result, name):>22}" for result in (before, report.model)]
            lines.append(f"{title:14}{''.join(cells)}")
        lines.append(
            f"on {report.valid_rows} of your rows ({report.pairs} pairs of texts) that were not "
            f"trained on; trained on {self.train_rows}"
        )
        lines.append(
            f"scores of {self.rehearsal_rows} rows of other domains moved by {self.moved:.3f} on "
            f"average, 95 % of them by less than {self.moved_most:.3f}"
        )
        return "\n".join(lines)


def _mean_figure(result: ModelResult) -> float:
    """Mean of Spearman and pair accuracy; a missing one is left out."""
    values = [result.metrics[name].value for name in FIGURES]
    present = [value for value in values if not np.isnan(value)]
    return float(np.mean(present)) if present else 0.0


def _interval_text(result: ModelResult, name: str) -> str:
    metric = result.metrics[name]
    if np.isnan(metric.value):
        return "-"
    return f"{metric.value:.1f} [{metric.low:.1f}, {metric.high:.1f}]"
