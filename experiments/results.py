"""The finished runs of an experiment, row by row, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from condsim.evaluation import Metric, Report
from condsim.tasks import load_task
from experiments.backbones import Backbone
from experiments.cosines import counted
from experiments.execute import condition_only, finished_report
from experiments.experiment import Experiment, Published, Row
from experiments.plan import DataFiles, Options, PlannedLine, PlannedRun, unique_runs
from experiments.seeds import Interval, OverSeeds, mean_interval, over_seeds

NOT_RUN = "not run"
NO_WEIGHTS = "not run: no weights"
NO_COSINES = "not run: no weights in the run's folder"
DOES_NOT_APPLY = "does not apply"


@dataclass(frozen=True)
class Line:
    """A row of the experiment on one backbone, with what was found.

    Attributes:
        row: The row.
        cells: What the table shows, by the head of the column.
        backbone: The backbone.
        paper: The paper's number by metric; only the metrics it has.
        ours: Ours by metric; only the metrics there are.
        status: Why there is nothing of ours; empty if there is, or if it was not asked for.
        seeds: The seeds that are finished.
        planned: The seeds there are to be.
        counts: What the row's scores are made of, by name (similarity from contexts).
    """

    row: Row
    cells: Mapping[str, str]
    backbone: Backbone
    paper: Mapping[str, Published]
    ours: Mapping[str, OverSeeds]
    status: str
    seeds: tuple[int, ...]
    planned: tuple[int, ...]
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """A row minus another, paired by seed.

    Attributes:
        row: The first row.
        minus: The row that is taken from it.
        backbone: The backbone of both.
        metric: The figure.
        interval: The mean difference over the seeds that both have, with its t-interval; or that
            of the one seed, with a paired bootstrap interval.
        ratio: Mean of the first over the mean of the second; None if that is 0.
        seeds: How many seeds both have.
        bootstrap: Whether the interval is that of the bootstrap.
    """

    row: Row
    minus: Row
    backbone: Backbone
    metric: str
    interval: Interval
    ratio: float | None
    seeds: int
    bootstrap: bool = False


@dataclass(frozen=True)
class Measured:
    """The dev file that the rows of one task are measured on.

    Attributes:
        task: ``c-sts`` or ``sts-b``.
        data: Its files.
        report: The condition-only baseline on it; None where there are no conditions.
        valid_rows: Rows with a label; None if nothing is finished that tells.
    """

    task: str
    data: DataFiles
    report: Report | None
    valid_rows: int | None


@dataclass(frozen=True)
class Results:
    """Everything a table shows.

    Attributes:
        experiment: The experiment.
        options: What was chosen.
        lines: Its rows by backbone.
        differences: The differences it states, where both rows have a seed in common.
        measured: What the rows are measured on, by task.
        notes: Where the figures come from, where there is no ``measured``.
    """

    experiment: Experiment
    options: Options
    lines: tuple[Line, ...]
    differences: tuple[Difference, ...]
    measured: tuple[Measured, ...]
    notes: tuple[str, ...] = ()


def collect(
    experiment: Experiment,
    planned: Sequence[PlannedLine],
    options: Options,
    *,
    absent: frozenset[str] = frozenset(),
) -> Results:
    """Reads what is finished.

    Args:
        experiment: The experiment.
        planned: What it has to run.
        options: What was chosen.
        absent: Backbones whose weights cannot be had.

    Returns:
        The results; imports no torch, unless cosines are still to be computed.

    Raises:
        InputError: If a folder holds another run, or the data break a rule.
    """
    reports = {run.folder: finished_report(run) for run in unique_runs(planned)}
    found = {folder: report for folder, report in reports.items() if report is not None}
    figures = _figures(experiment, planned, found)
    lines = tuple(_line(experiment, line, found, figures, absent) for line in planned)
    lines = _with_all_rows(experiment, lines, planned)
    tasks = {line.row.task: line.runs[0].data for line in planned if line.runs}
    measured = tuple(_measured(task, data, found, planned, options) for task, data in tasks.items())
    return Results(experiment, options, lines, _differences(experiment, lines), measured)


def _figures(
    experiment: Experiment, planned: Sequence[PlannedLine], found: Mapping[Path, Report]
) -> dict[Path, Mapping[str, Metric]]:
    """The figures of every finished run, by folder."""
    figures: dict[Path, Mapping[str, Metric]] = {
        folder: report.model.metrics for folder, report in found.items()
    }
    if experiment.kind == "over-estimation":
        counts = counted([run for run in unique_runs(planned) if run.folder in found])
        return {folder: {"over_estimated": metric} for folder, metric in counts.items()}
    return figures


def _line(
    experiment: Experiment,
    planned: PlannedLine,
    found: Mapping[Path, Report],
    figures: Mapping[Path, Mapping[str, Metric]],
    absent: frozenset[str],
) -> Line:
    row = planned.row
    done = [run for run in planned.runs if run.folder in figures]
    ours = {}
    for metric in experiment.metrics:
        values = [figures[run.folder][metric] for run in done]
        if (summary := over_seeds(values, planned=len(planned.runs))) is not None:
            ours[metric] = summary
    published = {
        metric: number
        for metric in experiment.metrics
        if (number := experiment.paper(row.key, metric, planned.backbone.key)) is not None
    }
    return Line(
        row=row,
        cells=row.cells,
        backbone=planned.backbone,
        paper=published,
        ours=ours,
        status="" if ours else _status(planned, found, absent),
        seeds=tuple(run.recipe.seed for run in done),
        planned=tuple(run.recipe.seed for run in planned.runs),
    )


def _with_all_rows(
    experiment: Experiment, lines: Sequence[Line], planned: Sequence[PlannedLine]
) -> tuple[Line, ...]:
    """Says how many rows ``all`` training rows are, where that is a place on the axis."""
    head = experiment.x
    runs = unique_runs(planned)
    if head is None or not runs or all(line.cells[head] != "all" for line in lines):
        return tuple(lines)
    rows = f"{int(load_task(runs[0].data.train).valid.sum())} (all)"
    return tuple(
        replace(line, cells={**line.cells, head: rows}) if line.cells[head] == "all" else line
        for line in lines
    )


def _status(line: PlannedLine, found: Mapping[Path, Report], absent: frozenset[str]) -> str:
    if line.row.does_not_apply is not None:
        return DOES_NOT_APPLY
    if not line.runs:
        return ""
    if line.runs[0].recipe.backbone in absent:
        return NO_WEIGHTS
    return NO_COSINES if any(run.folder in found for run in line.runs) else NOT_RUN


def _measured(
    task: str,
    data: DataFiles,
    found: Mapping[Path, Report],
    planned: Sequence[PlannedLine],
    options: Options,
) -> Measured:
    baseline = condition_only(data, options) if task == "c-sts" else None
    of_task: list[PlannedRun] = [
        run for line in planned if line.row.task == task for run in line.runs
    ]
    rows = [found[run.folder].valid_rows for run in of_task if run.folder in found]
    if baseline is not None:
        rows.append(baseline.valid_rows)
    return Measured(task, data, baseline, rows[0] if rows else None)


def _differences(experiment: Experiment, lines: Sequence[Line]) -> tuple[Difference, ...]:
    by_row = {(line.row.key, line.backbone.key): line for line in lines}
    found = []
    for comparison in experiment.comparisons:
        for (key, backbone), first in by_row.items():
            second = by_row.get((comparison.minus, backbone))
            if key != comparison.row or second is None:
                continue
            for metric in experiment.metrics:
                if (difference := _difference(first, second, metric)) is not None:
                    found.append(difference)
    return tuple(found)


def _difference(first: Line, second: Line, metric: str) -> Difference | None:
    if metric not in first.ours or metric not in second.ours:
        return None
    ones = dict(zip(first.seeds, first.ours[metric].values, strict=True))
    others = dict(zip(second.seeds, second.ours[metric].values, strict=True))
    shared = sorted(ones.keys() & others.keys())
    if not shared:
        return None
    total = sum(others[seed] for seed in shared)
    return Difference(
        row=first.row,
        minus=second.row,
        backbone=first.backbone,
        metric=metric,
        interval=mean_interval([ones[seed] - others[seed] for seed in shared]),
        ratio=sum(ones[seed] for seed in shared) / total if total else None,
        seeds=len(shared),
    )
