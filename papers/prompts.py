"""Language models that are asked for the similarity: one run for each row and model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from condsim.console import Progress
from condsim.data.load import load_task
from condsim.evaluation.statistics import Metric
from condsim.model.baselines import ConditionOnlyScorer
from condsim.types import Task
from condsim_llm import scorer as open_prompt
from condsim_llm.backend import Backend, PromptSettings, Scoring
from condsim_llm.errors import BudgetError
from condsim_llm.prompt import Shots
from condsim_llm.scorer import PromptReport, PromptScorer, evaluate_prompt
from papers.catalogue import Experiment, Prompting, Row
from papers.columns import PAPER_MODELS, Column
from papers.naming import deciding, prompt_folder
from papers.options import DataFiles, Options, data_files
from papers.plots import plot_results
from papers.results import Line, Results, line_of, measured_on

_ANSWERS = "answers.sqlite"
_REPORT = "report.json"


@dataclass(frozen=True)
class PromptRun:
    """A language model asked in one way, finished or not."""

    folder: Path
    settings: PromptSettings
    data: DataFiles

    def report(self) -> PromptReport | None:
        """Read its report; None if there is none."""
        path = self.folder / _REPORT
        return PromptReport.from_json(path) if path.is_file() else None


@dataclass(frozen=True)
class PromptLine:
    """A row of the experiment and one language model; no run if it was not asked for."""

    row: Row
    column: Column
    run: PromptRun | None = None


@dataclass(frozen=True)
class _Data:
    """The two files of a task, read."""

    train: Task
    dev: Task
    baseline: ConditionOnlyScorer | None


class Prompts:
    """The work of experiments that ask language models, within one budget."""

    def __init__(self, experiment: Experiment, options: Options, progress: Progress) -> None:
        self._experiment, self._options, self._progress = experiment, options, progress
        self.lines = plan_prompts(experiment, options)
        runs = [line.run for line in self.lines if line.run is not None]
        models = dict.fromkeys(run.settings.model for run in runs)
        # Answers that were asked for with probabilities serve the scoring by text too.
        runs.sort(key=lambda run: run.settings.scoring != "expected")
        self.runs = tuple(run for name in models for run in runs if run.settings.model == name)
        self._requests, self._tokens = 0, 0
        self._data: dict[DataFiles, _Data] = {}
        self._shots: dict[tuple[DataFiles, int], Shots] = {}
        # Of one model at a time, as a local one takes memory.
        self._backend: tuple[str, Backend] | None = None

    def finished(self, run: PromptRun) -> bool:
        """True if its report exists."""
        return run.report() is not None

    def prepare(self, missing: Sequence[PromptRun]) -> Sequence[PromptRun]:
        """Draw examples, so that mistakes show before anything is asked."""
        for run in missing:
            if run.data not in self._data:
                self._data[run.data] = _read(run.data)
            train, shots = self._data[run.data].train, run.settings.shots
            self._shots[run.data, shots] = Shots(train, shots, seed=run.settings.seed)
        return missing

    def make(self, run: PromptRun) -> None:
        """Ask until all rows are answered; what was answered is stored, whatever happens."""
        scorer, data = self._scorer(run), self._data[run.data]
        settings = {**deciding(run.settings), "train": run.data.train.name}
        try:
            report = evaluate_prompt(
                scorer, data.dev, settings=settings, condition_only=data.baseline
            )
        except BudgetError as error:
            self._spend(scorer)
            done = sum(self.finished(run) for run in self.runs)
            raise BudgetError(
                f"The budget is used up: {self._requests} requests and {self._tokens} tokens. "
                f"{done} of {len(self.runs)} runs are finished and all answers are kept; allow "
                "more and run the same again for the rest."
            ) from error
        self._spend(scorer)
        run.folder.mkdir(parents=True, exist_ok=True)
        report.to_json(run.folder / _REPORT)

    def plot(self, results: Results, path: Path) -> None:
        """Draw dots or curves."""
        plot_results(results, path)

    def results(self) -> Results:
        """The lines of the table and what all are measured on."""
        reports = {run.folder: run.report() for run in self.runs}
        lines = tuple(self._line(line, reports) for line in self.lines)
        tasks = {line.row.task: line.run for line in self.lines if line.run is not None}
        found = [report.report for report in reports.values() if report is not None]
        measured = tuple(
            measured_on(task, run.data, found, self._options) for task, run in tasks.items()
        )
        return Results(self._experiment, self._options, lines, measured=measured)

    def _line(self, line: PromptLine, reports: Mapping[Path, PromptReport | None]) -> Line:
        found = {}
        if line.run is not None:
            report = reports[line.run.folder]
            found[line.run.settings.seed] = None if report is None else _metrics(report)
        return line_of(self._experiment, line.row, line.column, found)

    def _scorer(self, run: PromptRun) -> PromptScorer:
        allowed = self._options.prompts
        requests, tokens = allowed.max_requests, allowed.max_tokens
        left = run.settings.replaced(
            max_requests=None if requests is None else max(0, requests - self._requests),
            max_tokens=None if tokens is None else max(0, tokens - self._tokens),
        )
        model = run.settings.model
        if self._backend is None or self._backend[0] != model:
            self._backend = None
            self._backend = (model, open_prompt.open_backend(run.settings))
        return PromptScorer(
            left,
            self._backend[1],
            shots=self._shots[run.data, run.settings.shots],
            progress=partial(self._progress, run.folder.name),
        )

    def _spend(self, scorer: PromptScorer) -> None:
        self._requests += scorer.asker.usage.requests
        self._tokens += scorer.asker.usage.tokens


def plan_prompts(experiment: Experiment, options: Options) -> tuple[PromptLine, ...]:
    """List what an experiment asks; nothing is asked.

    A model that is asked for has a run in every row. The paper's other models are there without
    runs where it has a number for them.
    """
    asked = {model.key: model for model in options.prompts.models}
    tasks = dict.fromkeys(row.task for row in experiment.rows.values()) if asked else {}
    data = {task: data_files(task, options) for task in tasks}
    lines = []
    for row in experiment.rows.values():
        for model in {**PAPER_MODELS, **asked}.values():
            if model.key in asked and row.prompt is not None:
                for number, scoring in enumerate(options.prompts.scoring):
                    run = _run(row.prompt, model, scoring, options, data[row.task])
                    named = f"{model.label}, {scoring} value"
                    own = replace(model, key=f"{model.key}, {scoring}", label=named)
                    lines.append(PromptLine(row, own if number else model, run))
            elif experiment.has_number(row.key, model.key):
                lines.append(PromptLine(row, model))
    return tuple(lines)


def _run(
    how: Prompting, model: Column, scoring: Scoring, options: Options, data: DataFiles
) -> PromptRun:
    chosen = options.prompts
    behind: Literal["local", "server"] = (
        "server" if chosen.base_url is not None or model.hosted else "local"
    )
    settings = PromptSettings(
        model=model.model,
        backend=behind,
        base_url=chosen.base_url,
        instruction=how.instruction,
        shots=how.shots,
        train=str(data.train),
        scoring=scoring,
        answers=str(options.runs / _ANSWERS),
    )
    folder = prompt_folder(
        options.runs,
        settings,
        train_revision=data.train_revision,
        dev_revision=data.dev_revision,
        rows=data.rows,
    )
    return PromptRun(folder, settings, data)


def _read(data: DataFiles) -> _Data:
    train = load_task(data.train, require_labels=True)
    dev = data.dev_task()
    conditional = dev.conditions is not None
    return _Data(train, dev, ConditionOnlyScorer().fit_task(train) if conditional else None)


def _metrics(report: PromptReport) -> dict[str, Metric]:
    undefined = Metric(math.nan, math.nan, math.nan)
    alone = report.valid_only
    return {
        **report.report.model.metrics,
        "invalid": Metric(report.invalid, math.nan, math.nan),
        "valid_spearman": undefined if alone is None else alone.model.metrics["spearman"],
    }
