"""Results of finished runs, row by row, next to the paper's numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from condsim.errors import require
from condsim.evaluation.report import Report
from condsim.evaluation.statistics import Metric
from papers.catalogue import Experiment, Published, Row
from papers.columns import Column
from papers.naming import digest
from papers.options import DataFiles, Options

BASELINE = "condition-only baseline"
NOT_RUN = "not run"
DOES_NOT_APPLY = "does not apply"


@dataclass(frozen=True)
class OverSeeds:
    """A metric over the seeds that are finished."""

    mean: float
    # Standard deviation over the seeds; None with one seed.
    std: float | None
    # Ends of the one seed's 95 % bootstrap interval; None with more seeds.
    low: float | None
    high: float | None
    # Value of each seed.
    values: tuple[float, ...]
    # Number of seeds of the row.
    planned: int


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; the ends are NaN with one value."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """A row of the experiment in one column, with the paper's numbers and ours by metric."""

    row: Row
    # Cells of the table, by the head of the column.
    cells: Mapping[str, str]
    column: Column
    paper: Mapping[str, Published]
    ours: Mapping[str, OverSeeds]
    # Reason why our number is missing; empty if it is there, or was not asked for.
    status: str
    # Number of finished seeds.
    seeds: tuple[int, ...]
    planned: tuple[int, ...]
    # Cost of scores from contexts.
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """A row minus another, over the seeds that both have."""

    row: Row
    minus: Row
    column: Column
    metric: str
    interval: Interval
    # Ratio of the two means; None if the second is 0.
    ratio: float | None
    seeds: int
    # Whether the interval is a paired bootstrap's instead of a t-interval.
    bootstrap: bool = False


@dataclass(frozen=True)
class Measured:
    """The dev file that the rows of one task are measured on."""

    task: str
    data: DataFiles
    # Report of the condition-only baseline; None where there are no conditions.
    baseline: Report | None
    # Number of rows with a label; None without a report.
    valid_rows: int | None


@dataclass(frozen=True)
class Results:
    """Everything a page shows."""

    experiment: Experiment
    options: Options
    lines: tuple[Line, ...] = ()
    differences: tuple[Difference, ...] = ()
    measured: tuple[Measured, ...] = ()
    # Where the numbers come from, where nothing is ``measured``.
    notes: tuple[str, ...] = ()
    # Markdown below the tables.
    below: tuple[str, ...] = ()

    def shows(self, metric: str) -> bool:
        """True if a metric has a number, or was to have one."""
        return any(metric in line.paper or line.planned or line.status for line in self.lines)


def line_of(
    experiment: Experiment,
    row: Row,
    column: Column,
    found: Mapping[int, Mapping[str, Metric] | None],
    *,
    status: str | None = None,
) -> Line:
    """Make a line of the metrics by seed, None for a seed that is not finished.

    ``status`` says why nothing is finished; None that it was not run, if there is anything to run.
    """
    if status is None:
        status = NOT_RUN if found else ""
    done = {seed: metrics for seed, metrics in found.items() if metrics is not None}
    ours: dict[str, OverSeeds] = {}
    for metric in experiment.metrics:
        values = [metrics[metric] for metrics in done.values()]
        if (summary := over_seeds(values, planned=len(found))) is not None:
            ours[metric] = summary
    published = {name: experiment.paper(row.key, name, column.key) for name in experiment.metrics}
    return Line(
        row=row,
        cells=row.cells,
        column=column,
        paper={name: number for name, number in published.items() if number is not None},
        ours=ours,
        status="" if done else status,
        seeds=tuple(done),
        planned=tuple(found),
    )


def differences(
    experiment: Experiment,
    lines: Sequence[Line],
    compare: Callable[[Line, Line], Iterable[Difference]],
) -> tuple[Difference, ...]:
    """The differences that an experiment states, of lines in the same column."""
    by_row = {(line.row.key, line.column.key): line for line in lines}
    found: list[Difference] = []
    for comparison in experiment.comparisons:
        for (key, column), first in by_row.items():
            second = by_row.get((comparison.minus, column))
            if key == comparison.row and second is not None:
                found += compare(first, second)
    return tuple(found)


def over_shared_seeds(first: Line, second: Line) -> Iterator[Difference]:
    """The difference of two lines, paired by seed, in each metric."""
    for metric in first.ours:
        if metric not in second.ours:
            continue
        ones = dict(zip(first.seeds, first.ours[metric].values, strict=True))
        others = dict(zip(second.seeds, second.ours[metric].values, strict=True))
        shared = sorted(ones.keys() & others.keys())
        if not shared:
            continue
        total = sum(others[seed] for seed in shared)
        yield Difference(
            row=first.row,
            minus=second.row,
            column=first.column,
            metric=metric,
            interval=mean_interval([ones[seed] - others[seed] for seed in shared]),
            ratio=sum(ones[seed] for seed in shared) / total if total else None,
            seeds=len(shared),
        )


def measured_on(
    task: str, data: DataFiles, reports: Sequence[Report], options: Options
) -> Measured:
    """The dev file of a task, with the condition-only baseline on it."""
    baseline = condition_only(data, options) if task == "c-sts" else None
    rows = [report.valid_rows for report in (*reports, baseline) if report is not None]
    return Measured(task, data, baseline, rows[0] if rows else None)


def condition_only(data: DataFiles, options: Options) -> Report:
    """Measure the condition-only baseline, fitted on the training file, or read its report."""
    rows = {"rows": data.rows} if data.rows else {}
    code = digest({"train": data.train_revision, "dev": data.dev_revision, **rows})
    path = options.runs / f"condition-only-{code}" / "report.json"
    if path.is_file():
        return Report.from_json(path)
    from condsim.data.csts import load_csts
    from condsim.evaluation.evaluate import evaluate
    from condsim.model.baselines import ConditionOnlyScorer

    scorer = ConditionOnlyScorer().fit_task(load_csts(data.train, require_labels=True))
    report = evaluate(scorer, data.dev_task(), condition_only=scorer)
    path.parent.mkdir(parents=True, exist_ok=True)
    report.to_json(path)
    return report


def over_seeds(metrics: Sequence[Metric], *, planned: int) -> OverSeeds | None:
    """Sum up a metric over seeds; None without a finished seed, or where it is undefined (NaN)."""
    values = tuple(metric.value for metric in metrics)
    if not values or any(math.isnan(value) for value in values):
        return None
    alone = metrics[0] if len(metrics) == 1 and not math.isnan(metrics[0].low) else None
    return OverSeeds(
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 else None,
        low=alone.low if alone else None,
        high=alone.high if alone else None,
        values=values,
        planned=planned,
    )


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of independent values with its 95 % t-interval, ``mean ± t * s / sqrt(n)``."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, math.nan, math.nan)
    quantile = float(require("scipy.stats", extra="train").t.ppf(0.975, len(values) - 1))
    margin = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - margin, mean + margin)
