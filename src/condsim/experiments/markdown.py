"""Results as Markdown: the paper's number and ours side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from condsim.errors import InputError
from condsim.experiments.catalogue import Experiment
from condsim.experiments.plan import Options
from condsim.experiments.results import Difference, Line, Measured, Results
from condsim.experiments.seeds import OverSeeds

__all__ = ["HEADS", "MARKER", "command", "facts", "figure", "kept_notes", "page", "pipe_table"]

MARKER = "<!-- notes -->"
HEADS = {"spearman": "Spearman", "pearson": "Pearson", "over_estimated": "Over-estimated pairs"}
BASELINE = "condition-only baseline"
_NAMES = {"c-sts": "C-STS", "sts-b": "STS-B"}


def page(results: Results, options_text: str, notes: str) -> str:
    """Lays results out as a page.

    Args:
        results: The results.
        options_text: The command that makes the page.
        notes: What a person wrote below the marker, kept as it is.

    Returns:
        Markdown, ending in a newline.
    """
    experiment = results.experiment
    lines = heading(experiment)
    for metric in experiment.metrics:
        lines += [f"## {HEADS[metric]}", ""]
        lines += [*pipe_table(*_cells(results, metric)), ""]
    lines += [*(f"- {text}" for text in _differences(results)), ""] if results.differences else []
    lines += [f"- {text}" for text in [*_reading(results), *facts(results, options_text)]]
    return ending(experiment, lines, notes)


def heading(experiment: Experiment) -> list[str]:
    """Title, source and plot.

    Args:
        experiment: The experiment.

    Returns:
        The first lines of its page.
    """
    return [
        f"# {experiment.title}",
        "",
        f"{experiment.source}. The paper's numbers are measured on: {experiment.measured_on}.",
        "",
        f"![{experiment.title}]({experiment.name}.png)",
        "",
    ]


def ending(experiment: Experiment, lines: Sequence[str], notes: str) -> str:
    """Adds what the paper claims and the notes.

    Args:
        experiment: The experiment.
        lines: The page so far.
        notes: What a person wrote below the marker.

    Returns:
        The whole page.
    """
    closing = ["", f"**The paper says:** {experiment.claim}"]
    if experiment.remark:
        closing += ["", f"**On its numbers:** {experiment.remark}"]
    return "\n".join([*lines, *closing, "", MARKER]) + (notes or "\n")


def kept_notes(path: Path) -> str:
    """What a person wrote below the marker of an earlier page.

    Args:
        path: The page; it need not exist.

    Returns:
        All that follows the marker, as it is; empty without an earlier page.

    Raises:
        InputError: If there is a page and it has no marker, so that notes might be lost.
    """
    if not path.is_file():
        return ""
    _, marker, notes = path.read_text(encoding="utf-8").partition(MARKER)
    if not marker:
        raise InputError(
            f"{path} has no line {MARKER}: what stands above that line is written anew. Put it "
            "above what is to be kept, or move the file away."
        )
    return notes


def pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lays cells out as a pipe table; every column after the texts is set to the right.

    Args:
        heads: Heads of the columns.
        rows: The cells, as many in each row.

    Returns:
        The lines of the table.
    """
    marks = ["---:" if "paper" in head or "ours" in head else "---" for head in heads]
    table = [heads, marks, *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]


def figure(value: OverSeeds, metric: str) -> str:
    """A figure of ours, ``65.1 ± 0.3 (3)`` or ``65.1 [62.0, 68.0]``.

    Args:
        value: The figure over its seeds.
        metric: What it is.

    Returns:
        The text; ``(2 of 3)`` where seeds are still to be run.
    """
    many = len(value.values)
    one = _number(value.mean, metric, mean=many > 1)
    if value.std is not None:
        one += f" ± {_number(value.std, metric, mean=True)}"
    elif value.low is not None and value.high is not None:
        one += f" [{_number(value.low, metric)}, {_number(value.high, metric)}]"
    if many < value.planned:
        return f"{one} ({many} of {value.planned})"
    return f"{one} ({many})" if many > 1 else one


def facts(results: Results, options_text: str) -> Iterator[str]:
    """Where the figures come from.

    Args:
        results: The results.
        options_text: The command that makes the page.

    Yields:
        One text for each fact.
    """
    if results.experiment.kind in ("runs", "over-estimation") and results.measured:
        yield "Ours is measured on the dev file, which also chose the best epoch of each run."
    for measured in results.measured:
        rows = "?" if measured.valid_rows is None else f"{measured.valid_rows:,}"
        yield (
            f"{_NAMES[measured.task]}: fitted on {measured.data.train.name} (revision "
            f"{measured.data.train_revision}), measured on {rows} labelled rows of "
            f"{measured.data.dev.name} (revision {measured.data.dev_revision})."
        )
        if measured.report is None:
            yield f"{_NAMES[measured.task]} has no conditions, so no {BASELINE}."
        elif not {"spearman", "pearson"} & set(results.experiment.metrics):
            yield f"{BASELINE}: Spearman {_baseline(measured, 'spearman')}."
        if "over_estimated" in results.experiment.metrics and measured.report is not None:
            yield f"Counted among the {measured.report.contrasting_pairs} pairs with unlike labels."
    ran = {line.backbone.key: line.backbone for line in results.lines if line.planned}
    for backbone in ran.values():
        seeds = sorted(
            {s for line in results.lines if line.backbone == backbone for s in line.seeds}
        )
        said = f"seeds {', '.join(map(str, seeds)) or 'none yet'}"
        if results.experiment.kind == "zero-shot":
            said = "as it is, nothing trained"
        yield f"Backbone {backbone.label}: `{backbone.model}`; {said}."
    if results.options.overrides and ran:
        changed = ", ".join(f"`{text}`" for text in results.options.overrides)
        yield f"Changed in every recipe: {changed}."
    yield f"Made by `{options_text}`."


def command(name: str, options: Options, defaults: Options) -> str:
    """The command that makes a page, without what is the default.

    Args:
        name: Name of the experiment.
        options: What was chosen.
        defaults: What would have been chosen.

    Returns:
        Such as ``condsim reproduce ccl-table4 --set epochs=2``; an absolute path is left out.
    """
    words = ["condsim reproduce", name]
    if options.backbones != defaults.backbones:
        for backbone in options.backbones:
            words.append(f"--backbone {_path_or_word(backbone.model)}")
    for flag in ("data", "stsb", "runs"):
        path = getattr(options, flag)
        if path != getattr(defaults, flag):
            words.append(f"--{flag} {_path_or_word(str(path))}")
    words += [f"--set '{text}'" if " " in text else f"--set {text}" for text in options.overrides]
    if options.seeds is not None:
        words.append(f"--seeds {options.seeds}")
    if options.full:
        words.append("--full")
    return " ".join(words)


def _path_or_word(text: str) -> str:
    return "FOLDER" if Path(text).is_absolute() else text


def _cells(results: Results, metric: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table of one metric, the backbones side by side."""
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
        by_row.setdefault(line.row.key, {})[line.backbone.key] = line
    rows = []
    for by_backbone in by_row.values():
        cells = next(iter(by_backbone.values())).cells
        rows.append(
            [cells.get(head, "") for head in heads]
            + [_cell(by_backbone.get(key), what, metric) for key, what in shown]
        )
    rows += [
        [f"{BASELINE}, {_NAMES[measured.task]}", *[""] * (len(heads) - 1)]
        + [_baseline(measured, metric) if what == "ours" else "-" for _, what in shown]
        for measured in results.measured
        if measured.report is not None and metric in measured.report.model.metrics
    ]
    return [*heads, *(f"{labels[key]}, {what}" for key, what in shown)], rows


def _distinct(lines: Iterator[Line]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((line.backbone.key, line.backbone.label) for line in lines))


def _cell(line: Line | None, what: str, metric: str) -> str:
    if line is None:
        return "-"
    if what == "paper":
        return line.paper[metric].text if metric in line.paper else "-"
    return figure(line.ours[metric], metric) if metric in line.ours else line.status or "-"


def _baseline(measured: Measured, metric: str) -> str:
    found = measured.report.model.metrics.get(metric) if measured.report else None
    if found is None:
        return "-"
    return f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"


def _differences(results: Results) -> Iterator[str]:
    for found in results.differences:
        pair = f"{_name(found.row.cells)} minus {_name(found.minus.cells)}"
        text = f"{found.backbone.label}, {pair}: {_difference(found)}"
        if found.metric == "over_estimated" and found.ratio is not None:
            text += f"; {100 * found.ratio:.0f} % of it"
        yield f"{text}."


def _difference(found: Difference) -> str:
    interval = found.interval
    text = f"{interval.mean:+.1f} {HEADS[found.metric]}"
    if math.isnan(interval.low):
        return f"{text} (one seed, so no interval)"
    return (
        f"{text} [{interval.low:+.1f}, {interval.high:+.1f}] (mean and 95 % t-interval over "
        f"{found.seeds} seeds, paired by seed)"
    )


def _name(cells: Mapping[str, str]) -> str:
    return " ".join(cells.values())


def _reading(results: Results) -> Iterator[str]:
    """How to read the cells that are there."""
    ours = [value for line in results.lines for value in line.ours.values()]
    if any(value.std is not None for value in ours):
        yield "Ours, `a ± s (n)`: mean and standard deviation over n seeds."
    if any(value.low is not None for value in ours):
        yield "Ours, `a [b, c]`: one seed, with the 95 % bootstrap interval over sentence pairs."
    if not any(line.paper for line in results.lines):
        yield "The paper does not give these as numbers."
    for row in results.experiment.rows.values():
        if row.does_not_apply:
            yield f"{_name(row.cells)}: does not apply; {row.does_not_apply}."


def _number(value: float, metric: str, *, mean: bool = False) -> str:
    if metric == "over_estimated" and not mean:
        return f"{value:.0f}"
    return f"{value:.1f}"
