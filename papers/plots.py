"""Plots of experiments: the paper's numbers and ours. Needs the ``train`` extra (matplotlib)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condsim.errors import require
from condsim.io import replacing
from papers.pages import HEADS
from papers.results import Line, OverSeeds, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 120
_GRAY = "0.55"
_SUFFIXES = {"K": 1e3, "M": 1e6, "B": 1e9}
_THIN: dict[str, Any] = {"markersize": 4.5, "linewidth": 0.9}
_HOLLOW: dict[str, Any] = {"markerfacecolor": "none"}
_COLORS = (*(f"C{index}" for index in range(10)), "black", "gold", "navy", "darkgreen")


def plot_results(results: Results, path: Path) -> None:
    """Draw a table as dots or, where it has an axis, as curves; one panel for each metric."""
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
            panel.set_xticks(sorted({_place(line, experiment.x) for line in lines} - {math.inf}))
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
    """Draw bars."""
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
    """One row of the plot for each configuration; a color for each backbone."""
    places = {cells: place for place, cells in enumerate(_configurations(lines))}
    backbones = list(dict.fromkeys(line.column.label for line in lines))
    for line in lines:
        label = line.column.label
        index = backbones.index(label)
        place = places[tuple(line.cells.values())] + 0.6 * ((index + 0.5) / len(backbones) - 0.5)
        dot = partial(panel.errorbar, fmt="o", color=_COLORS[index % len(_COLORS)], **_THIN)
        if number := line.paper.get(metric):
            dot(x=number.value, y=place, xerr=number.std, label=f"{label}, paper", **_HOLLOW)
        if value := line.ours.get(metric):
            dot(x=value.mean, y=place, xerr=_error(value), label=f"{label}, ours")
    panel.set_yticks(
        list(places.values()), [", ".join(filter(None, cells)) for cells in places], fontsize=8
    )
    panel.set_ylim(len(places) - 0.4, -0.6)
    panel.grid(axis="y", color="0.93")
    panel.set_axisbelow(True)


def _draw_curves(panel: Axes, lines: Sequence[Line], metric: str, head: str) -> None:
    """One curve for each backbone and everything else that differs, such as the encoder."""
    curves: dict[str, list[Line]] = {}
    level: list[tuple[str, float]] = []
    for line in sorted(lines, key=lambda line: _place(line, head)):
        cells = [cell for key, cell in line.cells.items() if key != head]
        label = ", ".join([*cells, line.column.label])
        if math.isfinite(_place(line, head)):
            curves.setdefault(label, []).append(line)
        elif metric in line.ours:
            level.append((f"{label}, ours", line.ours[metric].mean))
    for index, (label, points) in enumerate(curves.items()):
        style = {**_THIN, "color": f"C{index % 10}"}
        if paper := [(_place(p, head), p.paper[metric].value) for p in points if metric in p.paper]:
            places, values = zip(*paper, strict=True)
            panel.plot(places, values, "o--", label=f"{label}, paper", **style, **_HOLLOW)
        if ours := [(_place(p, head), p.ours[metric]) for p in points if metric in p.ours]:
            errors = np.array([_error(value) or [[0.0], [0.0]] for _, value in ours])
            panel.errorbar(
                [place for place, _ in ours],
                [value.mean for _, value in ours],
                yerr=errors[:, :, 0].T,
                fmt="o-",
                label=f"{label}, ours",
                **{**style, "linewidth": 1.2, "elinewidth": 0.8, "capsize": 2},
            )
    for (label, mean), linestyle in zip(level, cycle((":", "-.", "--")), strict=False):
        panel.axhline(mean, color=_GRAY, linestyle=linestyle, linewidth=1.2, label=label)
    panel.set_xlabel(head)


def _draw_baseline(panel: Axes, results: Results, metric: str, *, upright: bool) -> None:
    """A dotted line where the condition-only baseline is."""
    for measured in results.measured:
        found = measured.baseline.model.metrics.get(metric) if measured.baseline else None
        if found is not None:
            draw = panel.axvline if upright else panel.axhline
            draw(
                found.value, color=_GRAY, linestyle=":", linewidth=1.2, label="condition only, ours"
            )


def _error(value: OverSeeds) -> list[list[float]] | None:
    """Error bars below and above, ``(2, 1)``: the deviation over seeds, or the interval of one."""
    if value.std is not None:
        return [[value.std], [value.std]]
    if value.low is not None and value.high is not None:
        return [[value.mean - value.low], [value.high - value.mean]]
    return None


def _place(line: Line, head: str) -> float:
    """Position of a line on the axis, such as 7600000 for ``7.6M``; infinite if it has none."""
    number = line.cells[head].partition(" ")[0]
    try:
        return float(number.rstrip("KMB")) * _SUFFIXES.get(number[-1:], 1.0)
    except ValueError:
        return math.inf


def _figure(panels: int, *, height: float) -> Figure:
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    return Figure(figsize=(4.2 + 2.9 * panels, height), layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=_DPI, metadata={"Software": None})
