"""Results as a Markdown page and a CSV table: the paper's number and ours side by side."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from condsim.errors import InputError
from condsim.io import replacing
from papers.catalogue import Experiment
from papers.provenance import TASKS, facts, report_text
from papers.results import BASELINE, Difference, Line, OverSeeds, Results

MARKER = "<!-- notes -->"
HEADS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "over_estimated": "Over-estimated pairs",
    "invalid": "Invalid answers, %",
    "valid_spearman": "Spearman of the valid answers alone",
}
UNDEFINED = "undefined"
_COLUMNS = ("metric", "paper", "paper_std", "ours", "ours_std", "low", "high", "seeds", "status")


def results_page(results: Results, command: str, notes: str) -> str:
    """Lay results out as a page; ``notes`` is what a person wrote below the marker."""
    experiment = results.experiment
    lines = heading(experiment)
    for metric in experiment.metrics:
        if results.shows(metric):
            lines += [f"## {HEADS[metric]}", ""]
            lines += [*pipe_table(*_cells(results, metric)), ""]
    lines += [*(f"- {text}" for text in _differences(results)), ""] if results.differences else []
    lines += [*results.below, ""] if results.below else []
    lines += [f"- {text}" for text in [*_reading(results), *facts(results, command)]]
    return ending(experiment, lines, notes)


def heading(experiment: Experiment) -> list[str]:
    """Title, source and plot."""
    return [
        f"# {experiment.title}",
        "",
        f"{experiment.source}. The paper's numbers are measured on: {experiment.measured_on}.",
        "",
        f"![{experiment.title}]({experiment.name}.png)",
        "",
    ]


def ending(experiment: Experiment, lines: Sequence[str], notes: str) -> str:
    """Add what the paper claims and the notes."""
    closing = ["", f"**The paper says:** {experiment.claim}"]
    if experiment.remark:
        closing += ["", f"**On its numbers:** {experiment.remark}"]
    return "\n".join([*lines, *closing, "", MARKER]) + (notes or "\n")


def kept_notes(path: Path) -> str:
    """Return the text that a person wrote below the marker of an earlier page."""
    if not path.is_file():
        return ""
    _, marker, notes = path.read_text(encoding="utf-8").partition(MARKER)
    if not marker:
        raise InputError(
            f"{path} has no line {MARKER}: the text above that line is replaced. Put it "
            "above what is to be kept, or move the file away."
        )
    return notes


def pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay cells out as a pipe table; every column after the texts is set to the right."""
    marks = ["---:" if "paper" in head or "ours" in head else "---" for head in heads]
    table = [heads, marks, *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]


def _value(value: OverSeeds, metric: str) -> str:
    """A value of ours, ``65.1 ± 0.3 (3)`` or ``65.1 [62.0, 68.0]``."""
    many = len(value.values)
    one = _number(value.mean, metric, mean=many > 1)
    if value.std is not None:
        one += f" ± {_number(value.std, metric, mean=True)}"
    elif value.low is not None and value.high is not None:
        one += f" [{_number(value.low, metric)}, {_number(value.high, metric)}]"
    if many < value.planned:
        return f"{one} ({many} of {value.planned})"
    return f"{one} ({many})" if many > 1 else one


def write_csv(results: Results, path: Path) -> None:
    """Write results as CSV, one line for each row, column and metric.

    The columns of the experiment come first, then ``backbone`` (``test set`` for similarity from
    contexts), ``metric``, the paper's number and its standard deviation, ours with its own or with
    the ends of the one seed's 95 % interval, the finished seeds, why there is nothing of ours, and
    the counts of the row.
    """
    heads = list(dict.fromkeys(head for line in results.lines for head in line.cells))
    counts = list(dict.fromkeys(name for line in results.lines for name in line.counts))
    model = "test set" if results.experiment.from_contexts else "backbone"
    columns = [*heads, model, *_COLUMNS, *counts]
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n", restval="")
        writer.writeheader()
        for line in results.lines:
            for metric in results.experiment.metrics:
                if metric in line.paper or line.planned or line.status:
                    writer.writerow({model: line.column.label, **_record(line, metric)})
        for measured in results.measured:
            figures = measured.baseline.model.metrics if measured.baseline else {}
            for metric in results.experiment.metrics:
                if found := figures.get(metric):
                    writer.writerow(
                        {heads[0]: BASELINE, "metric": metric, "ours": _decimal(found.value)}
                        | {"low": _decimal(found.low), "high": _decimal(found.high)}
                    )


def _record(line: Line, metric: str) -> dict[str, str]:
    paper, ours = line.paper.get(metric), line.ours.get(metric)
    return {
        **line.cells,
        "metric": metric,
        "paper": paper.text.split()[0] if paper else "",
        "paper_std": _decimal(paper.std if paper else None),
        "ours": _decimal(ours.mean if ours else None),
        "ours_std": _decimal(ours.std if ours else None),
        "low": _decimal(ours.low if ours else None),
        "high": _decimal(ours.high if ours else None),
        "seeds": " ".join(map(str, line.seeds)),
        "status": line.status,
        **{name: f"{count:.10g}" for name, count in line.counts.items()},
    }


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _cells(results: Results, metric: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table of one metric, paper and ours side by side."""
    lines = [line for line in results.lines if line.paper or line.planned or line.status]
    papers = _distinct(line for line in lines if metric in line.paper)
    ours = _distinct(line for line in lines if line.planned or line.status)
    columns = dict.fromkeys([*(line[0] for line in papers), *(line[0] for line in ours)])
    shown = [
        (key, what)
        for key in columns
        for what, there in (("paper", papers), ("ours", ours))
        if key in dict(there)
    ]
    labels = {**dict(papers), **dict(ours)}
    heads = list(dict.fromkeys(head for line in lines for head in line.cells))
    by_row: dict[str, dict[str, Line]] = {}
    for line in lines:
        by_row.setdefault(line.row.key, {})[line.column.key] = line
    rows = []
    for by_column in by_row.values():
        cells = next(iter(by_column.values())).cells
        rows.append(
            [cells.get(head, "") for head in heads]
            + [_cell(by_column.get(key), what, metric) for key, what in shown]
        )
    rows += [
        [f"{BASELINE}, {TASKS[measured.task]}", *[""] * (len(heads) - 1)]
        + [report_text(measured.baseline, metric) if what == "ours" else "-" for _, what in shown]
        for measured in results.measured
        if measured.baseline is not None and metric in measured.baseline.model.metrics
    ]
    return [*heads, *(f"{labels[key]}, {what}" for key, what in shown)], rows


def _distinct(lines: Iterator[Line]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((line.column.key, line.column.label) for line in lines))


def _cell(line: Line | None, what: str, metric: str) -> str:
    if line is None:
        return "-"
    if what == "paper":
        return line.paper[metric].text if metric in line.paper else "-"
    if metric in line.ours:
        return _value(line.ours[metric], metric)
    return line.status or (UNDEFINED if line.seeds else "-")


def _differences(results: Results) -> Iterator[str]:
    for found in results.differences:
        pair = f"{_name(found.row.cells)} minus {_name(found.minus.cells)}"
        text = f"{found.column.label}, {pair}: {_difference(found)}"
        if found.metric == "over_estimated" and found.ratio is not None:
            text += f"; {100 * found.ratio:.0f} % of it"
        yield f"{text}."


def _difference(found: Difference) -> str:
    interval = found.interval
    text = f"{interval.mean:+.1f} {HEADS[found.metric]}"
    if math.isnan(interval.low):
        return f"{text} (one seed, so no interval)"
    if found.bootstrap:
        return (
            f"{text} [{interval.low:+.1f}, {interval.high:+.1f}] (95 % bootstrap interval over "
            "sentence pairs, both rows on the same pairs)"
        )
    return (
        f"{text} [{interval.low:+.1f}, {interval.high:+.1f}] (mean and 95 % t-interval over "
        f"{found.seeds} seeds, paired by seed)"
    )


def _name(cells: Mapping[str, str]) -> str:
    return " ".join(filter(None, cells.values()))


def _reading(results: Results) -> Iterator[str]:
    """Explain the cells."""
    lines = results.lines
    ours = [value for line in lines for value in line.ours.values()]
    if any(value.std is not None for value in ours):
        yield "Ours, `a ± s (n)`: mean and standard deviation over n seeds."
    if any(value.low is not None for value in ours):
        yield "Ours, `a [b, c]`: one seed, with the 95 % bootstrap interval over sentence pairs."
    if not any(line.paper for line in lines):
        yield "The paper does not give these as numbers."
    if any(line.seeds and len(line.ours) < len(results.experiment.metrics) for line in lines):
        yield f"Ours, `{UNDEFINED}`: one score for all rows, or too few valid answers."
    for row in results.experiment.rows.values():
        if row.does_not_apply:
            yield f"{_name(row.cells)}: does not apply; {row.does_not_apply}."


def _number(value: float, metric: str, *, mean: bool = False) -> str:
    if metric == "over_estimated" and not mean:
        return f"{value:.0f}"
    return f"{value:.2f}" if metric == "invalid" else f"{value:.1f}"
