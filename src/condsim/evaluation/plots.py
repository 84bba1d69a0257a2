"""Plots of scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condsim.data.tasks import pair_rows
from condsim.errors import require
from condsim.evaluation.metrics import MARGIN, over_estimation
from condsim.io import replacing
from condsim.types import FloatArray, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_TITLE_CHARACTERS = 45
_DOTS_PER_INCH = 120
# Blue and orange of Okabe and Ito.
_HIGH_COLOR, _LOW_COLOR = "#0072B2", "#D55E00"
# Points of high and low rows are drawn on either side of their gold similarity.
_SHIFT = 0.028
_MAX_JITTER = 0.018
_LIKERT_STEPS = 4


def predicted_against_gold(scores: Mapping[str, FloatArray], task: Task, path: Path) -> None:
    """Draw raw similarity against gold for high and low rows, one panel for each model.

    Each panel shows the rows of the pairs whose labels differ, as points; the mean at each gold
    level, as a line; the diagonal of a perfect model, and the margin of over-estimation on both
    sides of it. ``scores`` are of all rows, ``(n,)``, by the name of their model.
    """
    figure = _new_figure(width=4.6 * len(scores) + 0.4, height=4.8)
    pairing = pair_rows(task)
    panels = figure.subplots(1, len(scores), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, values) in zip(panels, scores.items(), strict=True):
        ends = np.array([0.0, 1.0])
        panel.plot(ends, ends, color="black", linewidth=1, linestyle="--", label="gold")
        for margin, margin_label in ((MARGIN, f"gold ± {MARGIN:g}"), (-MARGIN, None)):
            style = {"color": "gray", "linewidth": 0.8, "linestyle": ":", "label": margin_label}
            panel.plot(ends, ends + margin, **style)
        for label, pair_side, color, shift in (
            ("high row", pairing.high, _HIGH_COLOR, _SHIFT),
            ("low row", pairing.low, _LOW_COLOR, -_SHIFT),
        ):
            rows = np.unique(pair_side)
            gold = task.gold[rows].astype(np.float64)
            _draw_rows(panel, gold, values[rows], label=label, color=color, shift=shift)
        count = over_estimation(values, task)
        counts = f"{count.either} of {count.pairs} pairs over-estimated ({count.rate:.1%})"
        too_long = len(name) > MAX_TITLE_CHARACTERS
        title = f"…{name[1 - MAX_TITLE_CHARACTERS :]}" if too_long else name
        panel.set_title(f"{title}\n{counts}", fontsize=10, loc="left", parse_math=False)
        panel.set_xlabel("gold similarity")
        panel.set_xticks(np.linspace(0, 1, _LIKERT_STEPS + 1))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("raw similarity of the model")
    handles, labels = panels[0].get_legend_handles_labels()
    columns = 2 * min(len(scores), 2)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    save_figure(figure, path)


def _new_figure(*, width: float, height: float) -> Figure:
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, in one step."""
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=_DOTS_PER_INCH)


def _draw_rows(
    panel: Axes,
    gold: NDArray[np.float64],
    values: FloatArray,
    *,
    label: str,
    color: str,
    shift: float,
) -> None:
    """Draw rows, ``(r,)``, shifted from their gold, and the mean of each gold level."""
    jitter = np.random.default_rng(0).uniform(-_MAX_JITTER, _MAX_JITTER, size=gold.size)
    panel.scatter(gold + shift + jitter, values, s=7, color=color, alpha=0.3, linewidths=0)
    levels = np.round(gold * _LIKERT_STEPS).astype(np.int64)
    level_rows = [levels == level for level in np.unique(levels)]
    panel.plot(
        np.array([gold[rows].mean() for rows in level_rows]) + shift,
        [float(values[rows].mean()) for rows in level_rows],
        color=color,
        marker="o",
        markersize=7,
        markeredgecolor="white",
        linewidth=1.8,
        label=f"{label} (line: mean)",
    )
