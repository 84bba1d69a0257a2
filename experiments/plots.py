"""Plots of experiments, the paper's numbers beside ours. Needs the ``train`` extra (matplotlib)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.errors import require
from condsim.files import replacing
from experiments.pages import HEADS
from experiments.results import Line, OverSeeds, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 120
_GREY = "0.55"
_SUFFIXES = {"K": 1e3, "M": 1e6, "B": 1e9}
_COLOURS = (*(f"C{index}" for index in range(10)), "black", "gold", "navy", "darkgreen")


def plot_results(results: Results, path: Path) -> None:
    """Draws a table as dots or, where it has an axis, as curves; one panel for each metric."""
    experiment = results.experiment
    metrics = [metric for metric in experiment.metrics if results.shows(metric)]
    lines = [line for line in results.lines if line.paper or line.ours]
    height = 3.6 if experiment.x else 1.4 + 0.24 * len(_configurations(lines)) + 0.12 * len(lines)
    figure = _figure(len(metrics), height=height)
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    draw = _draw_curves if experiment.x else _draw_dots
    for panel, metric in zip(panels, metrics, strict=True):
        if experiment.log:
            panel.set_xscale("log")
        draw(panel, lines, metric, experiment.x or "")
        _draw_baseline(panel, results, metric, upright=not experiment.x)
        if not experiment.x:
            panel.set_xlabel(HEADS[metric])
        elif not experiment.log:
            panel.set_xticks(sorted({_place(line, experiment.x) for line in lines}))
        panel.spines[["top", "right"]].set_visible(False)
    if experiment.x:
        panels[0].set_ylabel(HEADS[metrics[0]])
    handles = {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    if handles:
        figure.legend(
            handles.values(),
            handles,
            loc="outside lower center",
            ncols=2,
            frameon=False,
            fontsize=8,
        )
    _save(figure, path)


def plot_histogram(shares: Mapping[str, float], path: Path, *, head: str) -> None:
    """Draws bars."""
    figure = _figure(1, height=3.0)
    panel = figure.subplots()
    bars = panel.bar(list(shares), list(shares.values()), color="C0")
    panel.bar_label(bars, fmt="%.1f", fontsize=8)
    panel.set_xlabel(head)
    panel.set_ylabel("% of rows")
    panel.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _configurations(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(line.cells.values()) for line in lines))


def _draw_dots(panel: Axes, lines: Sequence[Line], metric: str, _: str) -> None:
    """One row of the plot for each configuration; a colour for each backbone."""
    places = {cells: place for place, cells in enumerate(_configurations(lines))}
    backbones = list(dict.fromkeys(line.column.label for line in lines))
    for line in lines:
        index = backbones.index(line.column.label)
        place = places[tuple(line.cells.values())] + 0.6 * ((index + 0.5) / len(backbones) - 0.5)
        label = line.column.label
        if metric in line.paper:
            number = line.paper[metric]
            panel.errorbar(
                number.value,
                place,
                xerr=number.std,
                fmt="o",
                markerfacecolor="none",
                markersize=4.5,
                color=_COLOURS[index % len(_COLOURS)],
                label=f"{label}, paper",
                linewidth=0.9,
            )
        if metric in line.ours:
            value = line.ours[metric]
            panel.errorbar(
                value.mean,
                place,
                xerr=_error(value),
                fmt="o",
                markersize=4.5,
                color=_COLOURS[index % len(_COLOURS)],
                label=f"{label}, ours",
                linewidth=0.9,
            )
    panel.set_yticks(
        list(places.values()), [", ".join(filter(None, cells)) for cells in places], fontsize=8
    )
    panel.set_ylim(len(places) - 0.4, -0.6)
    panel.grid(axis="y", color="0.93")
    panel.set_axisbelow(True)


def _draw_curves(panel: Axes, lines: Sequence[Line], metric: str, head: str) -> None:
    """One curve for each backbone and everything else that differs, such as the encoder."""
    curves: dict[tuple[str, str], list[Line]] = {}
    level = [line for line in lines if not _has_place(line, head)]
    for line in sorted(
        (line for line in lines if _has_place(line, head)), key=lambda line: _place(line, head)
    ):
        others = ", ".join(cell for key, cell in line.cells.items() if key != head)
        curves.setdefault((others, line.column.label), []).append(line)
    for index, ((others, backbone), points) in enumerate(curves.items()):
        paper = [point for point in points if metric in point.paper]
        ours = [point for point in points if metric in point.ours]
        if paper:
            panel.plot(
                [_place(point, head) for point in paper],
                [point.paper[metric].value for point in paper],
                "o--",
                markerfacecolor="none",
                markersize=4.5,
                linewidth=0.9,
                color=f"C{index % 10}",
                label=f"{others}, {backbone}, paper",
            )
        if ours:
            errors = np.array([_error(point.ours[metric]) or [[0.0], [0.0]] for point in ours])
            panel.errorbar(
                [_place(point, head) for point in ours],
                [point.ours[metric].mean for point in ours],
                yerr=errors[:, :, 0].T,
                fmt="o-",
                markersize=4.5,
                linewidth=1.2,
                elinewidth=0.8,
                capsize=2,
                color=f"C{index % 10}",
                label=f"{others}, {backbone}, ours",
            )
    for index, line in enumerate(line for line in level if metric in line.ours):
        others = ", ".join(cell for key, cell in line.cells.items() if key != head)
        panel.axhline(
            line.ours[metric].mean,
            color=_GREY,
            linestyle=(":", "-.", "--")[index % 3],
            linewidth=1.2,
            label=f"{others}, {line.column.label}, ours",
        )
    panel.set_xlabel(head)


def _draw_baseline(panel: Axes, results: Results, metric: str, *, upright: bool) -> None:
    """A dotted line where the condition-only baseline is."""
    for measured in results.measured:
        found = measured.baseline.model.metrics.get(metric) if measured.baseline else None
        if found is not None:
            draw = panel.axvline if upright else panel.axhline
            draw(
                found.value, color=_GREY, linestyle=":", linewidth=1.2, label="condition only, ours"
            )


def _error(value: OverSeeds) -> list[list[float]] | None:
    """Error bars below and above, ``(2, 1)``: the deviation over seeds, or the interval of one."""
    if value.std is not None:
        return [[value.std], [value.std]]
    if value.low is not None and value.high is not None:
        return [[value.mean - value.low], [value.high - value.mean]]
    return None


def _place(line: Line, head: str) -> float:
    """Where a line stands on the axis, such as 7600000 for ``7.6M``; NaN if it has no place."""
    number = line.cells[head].partition(" ")[0]
    try:
        return float(number.rstrip("KMB")) * _SUFFIXES.get(number[-1:], 1.0)
    except ValueError:
        return math.nan


def _has_place(line: Line, head: str) -> bool:
    return not math.isnan(_place(line, head))


def _figure(panels: int, *, height: float) -> Figure:
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    return Figure(figsize=(4.2 + 2.9 * panels, height), layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=_DPI, metadata={"Software": None})
