"""Plots of scores. Needs the ``train`` extra (matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, require
from condsim.evaluation.statistics import MARGIN, over_estimation
from condsim.files import replacing
from condsim.tasks import pair_rows
from condsim.types import FloatArray, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 45


def score_histogram(scores: Mapping[str, FloatArray], path: Path, *, bins: int = 40) -> None:
    """Draws how scores spread over [0, 1], one panel for each model, on one scale.

    Args:
        scores: Scores in [0, 1] by the name of their model, ``(n,)`` each.
        bins: Number of bars.

    Raises:
        InputError: If there is no model, or the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    if not scores:
        raise InputError("A histogram needs the scores of one model or more. Got none.")
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 1.9 * len(scores) + 0.5), layout="constrained")
    panels = figure.subplots(len(scores), 1, sharex=True, squeeze=False)[:, 0]
    edges = np.linspace(0, 1, bins + 1)
    for panel, (name, values) in zip(panels, scores.items(), strict=True):
        panel.hist(values, bins=edges, weights=np.full(len(values), 100 / len(values)))
        panel.axvline(float(np.median(values)), color="black", linewidth=1, linestyle="--")
        panel.set_title(name, fontsize=10, loc="left")
        panel.set_ylabel("% of rows")
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("score (dashed: median)")
    panels[-1].set_xlim(0, 1)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)


def predicted_against_gold(
    scores: Mapping[str, FloatArray], task: Task, path: Path, *, margin: float = MARGIN
) -> None:
    """Draws raw similarity against gold for high and low rows, one panel for each model.

    Shown are the rows of the pairs whose labels differ, as points; the mean at each gold level, as
    a line; the diagonal on which a perfect model would lie, and the margin of over-estimation on
    both sides of it. The titles give the over-estimated pairs.

    Args:
        scores: Raw similarities of all rows by the name of their model, ``(n,)`` each, from left to
            right.
        margin: The margin of over-estimation, on the scale of gold, at least 0.

    Raises:
        InputError: If there is no model, the file cannot be written there, or
            `condsim.evaluation.statistics.metrics` refuses the scores.
        MissingExtraError: If matplotlib is not installed.
    """
    if not scores:
        raise InputError("A plot needs the scores of one model or more. Got none.")
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    found = {name: over_estimation(values, task, margin=margin) for name, values in scores.items()}
    pairing = pair_rows(task)
    figure = Figure(figsize=(4.6 * len(scores) + 0.4, 4.8), layout="constrained")
    panels = figure.subplots(1, len(scores), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, values) in zip(panels, scores.items(), strict=True):
        _draw_gold(panel, margin)
        for label, rows, colour, shift in (
            ("high row", pairing.high, "#0072B2", 0.028),  # blue and orange of Okabe and Ito
            ("low row", pairing.low, "#D55E00", -0.028),
        ):
            rows = np.unique(rows)
            gold = task.gold[rows].astype(np.float64)
            _draw_rows(panel, gold, values[rows], label=label, colour=colour, shift=shift)
        count = found[name]
        counts = f"{count.either} of {count.pairs} pairs over-estimated ({count.rate:.1%})"
        panel.set_title(f"{_short(name)}\n{counts}", fontsize=10, loc="left", parse_math=False)
        panel.set_xlabel("gold similarity")
        panel.set_xticks(np.linspace(0, 1, 5))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("raw similarity of the model")
    handles, labels = panels[0].get_legend_handles_labels()
    columns = 2 * min(len(scores), 2)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)


def _short(name: str) -> str:
    """The end of a name that is too long for the title of a panel."""
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"


def _draw_gold(panel: Axes, margin: float) -> None:
    """Draws the diagonal and the margin on both sides of it."""
    ends = np.array([0.0, 1.0])
    panel.plot(ends, ends, color="black", linewidth=1, linestyle="--", label="gold")
    for side in (margin, -margin):
        label = f"gold ± {margin:g}" if side == margin else None
        panel.plot(ends, ends + side, color="grey", linewidth=0.8, linestyle=":", label=label)


def _draw_rows(
    panel: Axes,
    gold: NDArray[np.float64],
    values: FloatArray,
    *,
    label: str,
    colour: str,
    shift: float,
) -> None:
    """Draws rows, ``(r,)``, a little aside of their gold, and the mean of each gold level."""
    jitter = np.random.default_rng(0).uniform(-0.018, 0.018, size=gold.size)
    panel.scatter(gold + shift + jitter, values, s=7, color=colour, alpha=0.3, linewidths=0)
    levels = np.round(gold * 4).astype(np.int64)  # the steps of a Likert scale
    shown = np.unique(levels)
    x, y = ([float(column[levels == level].mean()) for level in shown] for column in (gold, values))
    panel.plot(
        np.asarray(x) + shift,
        y,
        color=colour,
        marker="o",
        markersize=7,
        markeredgecolor="white",
        linewidth=1.8,
        label=f"{label} (line: mean)",
    )
