"""A report as a table: for the terminal and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from condsim.evaluation.report import ModelResult, Report
from condsim.evaluation.statistics import METRICS, Difference, Metric

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
    lines = _head("", METRICS.values())
    for result in _results(report):
        cells = [_with_interval(name, result.metrics[name]) for name in METRICS]
        name = _escape(result.name)
        lines.append(_row(f"**{name}**" if result is report.model else name, cells))
    if report.against is not None:
        cells = [
            f"{_with_interval(name, report.comparison[name], sign='+')}, "
            f"p = {_number(report.comparison[name].p_value, '.3f')}"
            for name in METRICS
        ]
        lines.append(_row(f"difference from {_escape(report.against.name)}", cells))
    lines += ["", f"{_escape(report.task)} ({report.task_revision}).", ""]
    lines += [f"- {_escape(note)}" for note in _notes(report)]
    if report.model.over_estimation is not None:
        lines += ["", *_head(" Over-estimation", OVER_ESTIMATION_HEADS)]
        for result in _results(report):
            name = _escape(result.name)
            head = f"**{name}**" if result is report.model else name
            lines.append(_row(head, _over_estimation_cells(result)))
        lines += ["", *(f"- {_escape(note)}" for note in _over_estimation_notes(report))]
    return "\n".join(lines) + "\n"


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
    """A value with its interval, and the p-value of a difference, on the next lines."""
    if math.isnan(metric.value):
        return Text("-")
    sign = "+" if isinstance(metric, Difference) else ""
    ends = (_number(end, _format(name)) for end in (metric.low, metric.high))
    cell = Text(_number(metric.value, sign + _format(name)))
    cell.append(f"\n{'…'.join(ends)}", style="dim")
    if isinstance(metric, Difference):
        cell.append(f"\np = {_number(metric.p_value, '.3f')}")
    return cell


def _with_interval(name: str, metric: Metric | Difference, *, sign: str = "") -> str:
    """A value and its interval on one line."""
    if math.isnan(metric.value):
        return "-"
    low, high = (_number(end, _format(name)) for end in (metric.low, metric.high))
    return f"{_number(metric.value, sign + _format(name))} [{low}, {high}]"


def _format(name: str) -> str:
    """How a metric is written: one decimal, three for the error."""
    return ".3f" if name == "mse" else ".1f"


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


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


def _head(corner: str, heads: Iterable[str]) -> list[str]:
    columns = list(heads)
    return [f"|{corner} | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]


def _row(head: str, cells: list[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Text that cannot break out of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")
