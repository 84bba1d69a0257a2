"""What an adaptation was worth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from condsim.evaluation.report import ModelResult, Report
from condsim.types import FloatArray

_SHOWN = {"spearman": "Spearman", "pair_accuracy": "pair accuracy"}


@dataclass(frozen=True)
class Adaptation:
    """What an adaptation was worth, on rows that were not trained on.

    Attributes:
        output: The folder of the adapted model; None if it did not help and was not forced.
        report: The int8 model on the rows to measure on, with the model before as ``against``.
            Epochs were chosen on these rows, so they flatter it a little.
        train_rows: Labelled rows that were trained on.
        rehearsal_rows: Pairs of other domains on which the scores should stay.
        moved: By how much their scores changed on average, in [0, 1].
        moved_most: What 95 % of them changed less than, in [0, 1].
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
        """Whether the mean of Spearman and pair accuracy is above that of the model before."""
        before = self.report.against
        return before is not None and _value(self.report.model) > _value(before)

    def to_text(self) -> str:
        """Gives the figures before and after as lines of text."""
        report, before = self.report, self.report.against or self.report.model
        lines = [f"{'':14}{'before':>22}{'after':>22}"]
        for name, shown in _SHOWN.items():
            cells = [_cell(one, name) for one in (before, report.model)]
            lines.append(f"{shown:14}{cells[0]:>22}{cells[1]:>22}")
        lines.append(
            f"on {report.valid_rows} of your rows ({report.pairs} pairs of texts) that were not "
            f"trained on; trained on {self.train_rows}"
        )
        lines.append(
            f"scores of {self.rehearsal_rows} rows of other domains moved by {self.moved:.3f} on "
            f"average, 95 % of them by less than {self.moved_most:.3f}"
        )
        return "\n".join(lines)

    def facts(self) -> dict[str, Any]:
        """Gives the figures as plain values, NaN as None."""
        content = self.report.to_dict()
        figures = {
            when: {name: content[key]["metrics"][name] for name in _SHOWN}
            for when, key in (("before", "against"), ("after", "model"))
        }
        return {
            "train_rows": self.train_rows,
            "dev_rows": self.report.valid_rows,
            "dev": figures,
            "rehearsal": {
                "rows": self.rehearsal_rows,
                "moved": round(self.moved, 4),
                "moved_most": round(self.moved_most, 4),
            },
        }


def movement(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    """The mean and the 95th percentile of the changes of scores."""
    change = np.abs(after - before)
    return float(change.mean()), float(np.quantile(change, 0.95))


def _value(result: ModelResult) -> float:
    """Mean of Spearman and pair accuracy; what does not exist is left out."""
    values = [result.metrics[name].value for name in _SHOWN]
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else 0.0


def _cell(result: ModelResult, name: str) -> str:
    metric = result.metrics[name]
    if np.isnan(metric.value):
        return "-"
    return f"{metric.value:.1f} [{metric.low:.1f}, {metric.high:.1f}]"
