"""A report as a table, for the terminal and as Markdown, and plots of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from condsim.data.statistics import pair_rows
from condsim.errors import InputError, require
from condsim.evaluation.bootstrap import Difference, Metric
from condsim.evaluation.metrics import MARGIN, METRICS, over_estimation
from condsim.evaluation.report import ModelResult, Report
from condsim.io import replacing
from condsim.types import FloatArray, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OVER_ESTIMATION_HEADS = ("Eq. 16", "Eq. 17", "Either", "% of pairs", "High error", "Low error")


def to_table(report: Report) -> Table:
    """Lays a report out for the terminal, 80 columns wide or less for short names.

    Returns:
        A rich table: the model, the model it is compared with, the baselines, and the comparison;
        each value with its 95 % interval below it.
    """
    table = _table(f"{report.task} ({report.task_revision})", METRICS.values(), _notes(report))
    for result in _results(report):
        is_model = result is report.model
        table.add_row(
            Text(result.name, style="bold" if is_model else ""),
            *(_cell(name, result.metrics[name]) for name in METRICS),
        )
    if report.against is not None:
        table.add_section()
        table.add_row(
            Text(f"difference from {report.against.name}"),
            *(_cell(name, report.comparison[name]) for name in METRICS),
        )
    return table


def over_estimation_table(report: Report) -> Table | None:
    """Lays the over-estimation of a report out for the terminal.

    Returns:
        A rich table of the model, the one it is compared with and the baselines; None if it was not
        counted.
    """
    if report.model.over_estimation is None:
        return None
    table = _table("Over-estimation", OVER_ESTIMATION_HEADS, _over_estimation_notes(report))
    for result in _results(report):
        style = "bold" if result is report.model else ""
        table.add_row(Text(result.name, style=style), *_over_estimation_cells(result))
    return table


def to_markdown(report: Report) -> str:
    """Lays a report out as Markdown.

    Returns:
        A pipe table and the notes below it, then the same for over-estimation if it was counted,
        ending in a newline.
    """
    rows = [
        [_bold(report, result), *(_markdown_cell(name, result.metrics[name]) for name in METRICS)]
        for result in _results(report)
    ]
    if report.against is not None:
        cells = [_markdown_cell(name, report.comparison[name]) for name in METRICS]
        rows.append([f"difference from {report.against.name}", *cells])
    lines = markdown_table(["", *METRICS.values()], rows)
    lines += ["", f"{_escape(report.task)} ({report.task_revision}).", ""]
    lines += [f"- {_escape(note)}" for note in _notes(report)]
    if report.model.over_estimation is not None:
        rows = [[_bold(report, one), *_over_estimation_cells(one)] for one in _results(report)]
        lines += ["", *markdown_table(["Over-estimation", *OVER_ESTIMATION_HEADS], rows)]
        lines += ["", *(f"- {_escape(note)}" for note in _over_estimation_notes(report))]
    return "\n".join(lines) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lays texts out as the lines of a pipe table; figures stand to the right.

    Args:
        head: Heads of the columns, the first of which has names.
        rows: As many texts each.
    """
    marks = "|---|" + "---:|" * (len(head) - 1)
    first, *others = (
        "".join(f"| {_escape(cell)} " if cell else "| " for cell in row) + "|"
        for row in (head, *rows)
    )
    return [first, marks, *others]


def _table(title: str, heads: Iterable[str], notes: Iterable[str]) -> Table:
    table = Table(
        title=Text(title),
        caption=Text("\n".join(notes)),
        caption_justify="left",
        title_justify="left",
        box=box.SIMPLE,
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _results(report: Report) -> Iterator[ModelResult]:
    yield report.model
    if report.against is not None:
        yield report.against
    yield from report.baselines


def _notes(report: Report) -> Iterator[str]:
    yield (
        f"{report.valid_rows} rows with a label in {report.pairs} sentence pairs, "
        f"{report.invalid_rows} without one left out"
    )
    metrics = "Spearman, Pearson and Partial x 100; MSE of similarity in 0..1, lower is better"
    if report.contrasting_pairs:
        metrics += f"; Pair acc. in % of the {report.contrasting_pairs} pairs whose labels differ"
    yield metrics
    if not all(math.isnan(one.metrics["partial_spearman"].value) for one in _results(report)):
        yield "Partial: Spearman once the condition-only prediction is held fixed"
    for result in report.baselines:
        if result.fitted_on is not None:
            yield f"{result.name} is fitted on {result.fitted_on}"
    yield (
        f"95 % intervals{' and p-values' if report.comparison else ''}: bootstrap of sentence "
        f"pairs, {report.resamples} resamples, seed {report.seed}"
    )


def _cell(name: str, metric: Metric | Difference) -> Text:
    """A value, its interval and the p-value of a difference on a line each."""
    value, low, high, *p_value = _numbers(name, metric)
    if value == "-":
        return Text(value)
    return Text.assemble(value, (f"\n{low}…{high}", "dim"), *(f"\np = {one}" for one in p_value))


def _markdown_cell(name: str, metric: Metric | Difference) -> str:
    """The same on one line."""
    value, low, high, *p_value = _numbers(name, metric)
    if value == "-":
        return value
    return f"{value} [{low}, {high}]" + "".join(f", p = {one}" for one in p_value)


def _numbers(name: str, metric: Metric | Difference) -> list[str]:
    """The numbers of a metric in their order, "-" for NaN."""
    form = ".3f" if name == "mse" else ".1f"
    forms = [form] * 3 if isinstance(metric, Metric) else [f"+{form}", form, form, ".3f"]
    return [
        "-" if math.isnan(value) else format(value, form)
        for value, form in zip(astuple(metric), forms, strict=True)
    ]


def _over_estimation_cells(result: ModelResult) -> list[str]:
    found = result.over_estimation
    if found is None:
        return ["-"] * len(OVER_ESTIMATION_HEADS)
    counts = [str(count) for count in (found.equation_16, found.equation_17, found.either)]
    errors = [f"{error:+.3f}" for error in (found.high_error, found.low_error)]
    return [*counts, f"{100 * found.rate:.1f}", *errors]


def _over_estimation_notes(report: Report) -> Iterator[str]:
    found = report.model.over_estimation
    if found is None:
        return
    yield f"{found.pairs} pairs of rows with the same two sentences and different labels"
    yield (
        f"Eq. 16: the high row more than {found.margin:g} above gold, the low row below gold; "
        "Eq. 17: the mirror"
    )
    yield "Of raw similarities, not calibrated ones; error: mean of raw similarity minus gold"


def _bold(report: Report, result: ModelResult) -> str:
    return f"**{result.name}**" if result is report.model else result.name


def _escape(text: str) -> str:
    """Text that cannot break out of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


LONGEST_NAME = 45


def score_histogram(scores: Mapping[str, FloatArray], path: Path) -> None:
    """Draws how scores spread over [0, 1], one panel for each model, on one scale.

    Args:
        scores: Scores in [0, 1] by the name of their model, ``(n,)`` each.

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
    edges = np.linspace(0, 1, 41)
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


def predicted_against_gold(scores: Mapping[str, FloatArray], task: Task, path: Path) -> None:
    """Draws raw similarity against gold for high and low rows, one panel for each model.

    Shown are the rows of the pairs whose labels differ, as points; the mean at each gold level, as
    a line; the diagonal on which a perfect model would lie, and the margin of over-estimation on
    both sides of it. The titles give the over-estimated pairs.

    Args:
        scores: Raw similarities of all rows by the name of their model, ``(n,)`` each, from left to
            right.

    Raises:
        InputError: If there is no model, the file cannot be written there, or
            `condsim.evaluation.metrics` refuses the scores.
        MissingExtraError: If matplotlib is not installed.
    """
    if not scores:
        raise InputError("A plot needs the scores of one model or more. Got none.")
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    found = {name: over_estimation(values, task) for name, values in scores.items()}
    pairing = pair_rows(task)
    figure = Figure(figsize=(4.6 * len(scores) + 0.4, 4.8), layout="constrained")
    panels = figure.subplots(1, len(scores), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, values) in zip(panels, scores.items(), strict=True):
        _draw_gold(panel)
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


def _draw_gold(panel: Axes) -> None:
    """Draws the diagonal and the margin of over-estimation on both sides of it."""
    ends = np.array([0.0, 1.0])
    panel.plot(ends, ends, color="black", linewidth=1, linestyle="--", label="gold")
    for side in (MARGIN, -MARGIN):
        label = f"gold ± {MARGIN:g}" if side == MARGIN else None
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
