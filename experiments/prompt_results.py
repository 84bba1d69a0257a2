"""What the language models of an experiment answered, row by row, beside the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from condsim.evaluation import Metric, PromptReport
from experiments.execute import condition_only
from experiments.experiment import Experiment
from experiments.plan import Options
from experiments.prompt_execute import finished_prompt
from experiments.prompt_plan import PromptLine, PromptRun, prompt_runs
from experiments.results import NOT_RUN, Line, Measured, Results
from experiments.seeds import over_seeds


def collect_prompts(
    experiment: Experiment, planned: Sequence[PromptLine], options: Options
) -> Results:
    """Reads what is finished.

    Args:
        experiment: An experiment of the kind ``prompting``.
        planned: What it asks.
        options: What was chosen.

    Returns:
        The results; imports no torch.

    Raises:
        InputError: If a folder holds another run, or the data break a rule.
    """
    reports = {run.folder: finished_prompt(run) for run in prompt_runs(planned)}
    found = {folder: report for folder, report in reports.items() if report is not None}
    lines = tuple(_line(experiment, line, found) for line in planned)
    tasks = {line.row.task: line.run for line in planned if line.run is not None}
    measured = tuple(_measured(task, run, found, options) for task, run in tasks.items())
    return Results(experiment, options, lines, (), measured)


def _line(experiment: Experiment, planned: PromptLine, found: Mapping[Path, PromptReport]) -> Line:
    row, model, run = planned.row, planned.model, planned.run
    report = found.get(run.folder) if run is not None else None
    figures = {} if report is None else _figures(report)
    ours = {
        metric: figure
        for metric in experiment.metrics
        if metric in figures and (figure := over_seeds([figures[metric]], planned=1)) is not None
    }
    published = {
        metric: number
        for metric in experiment.metrics
        if (number := experiment.paper(row.key, metric, model.key)) is not None
    }
    seeds = () if run is None else (run.settings.seed,)
    return Line(
        row=row,
        cells=row.cells,
        backbone=model,
        paper=published,
        ours=ours,
        status=NOT_RUN if run is not None and report is None else "",
        seeds=seeds if report is not None else (),
        planned=seeds,
    )


def _figures(report: PromptReport) -> dict[str, Metric]:
    nothing = Metric(math.nan, math.nan, math.nan)
    alone = report.valid_only
    return {
        **report.report.model.metrics,
        "invalid": Metric(report.invalid, math.nan, math.nan),
        "valid_spearman": nothing if alone is None else alone.model.metrics["spearman"],
    }


def _measured(
    task: str, run: PromptRun, found: Mapping[Path, PromptReport], options: Options
) -> Measured:
    baseline = condition_only(run.data, options) if task == "c-sts" else None
    rows = [report.report.valid_rows for report in found.values()]
    if baseline is not None:
        rows.append(baseline.valid_rows)
    return Measured(task, run.data, baseline, rows[0] if rows else None)
