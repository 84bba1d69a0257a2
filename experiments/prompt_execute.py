"""Asks language models what is not finished, within one budget, and reads what is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from condsim.errors import BudgetError, InputError
from condsim.evaluation import PromptReport, evaluate_prompt
from condsim.prompting import Backend, Budget, PromptScorer, Shots, Usage, scorer as open_prompt
from condsim.scorers import ConditionOnlyScorer
from condsim.tasks import load_task
from condsim.types import Task
from experiments.naming import deciding
from experiments.plan import DataFiles, PromptOptions
from experiments.prompt_plan import PromptRun

Progress = Callable[[], AbstractContextManager[Callable[[int, int], None]]]
"""Makes what shows the progress of one run: it is called with rows answered and rows in all."""

_LOGGER = logging.getLogger("condsim")
_REPORT = "report.json"


def finished_prompt(run: PromptRun) -> PromptReport | None:
    """Reads the report of a run.

    Args:
        run: The run.

    Returns:
        Its report, or None if there is none that can be read.

    Raises:
        InputError: If its folder holds the report of other settings or other data.
    """
    try:
        report = PromptReport.from_json(run.folder / _REPORT)
    except InputError:
        return None
    expected = {**deciding(run.settings), "data": run.data.dev_revision}
    there = {**report.settings, "data": report.report.task_revision}
    for key, value in expected.items():
        if there.get(key) != value:
            raise InputError(
                f"{run.folder} holds another run: its '{key}' is {there.get(key)!r}, and {value!r} "
                "is expected. Move it away."
            )
    return report


@dataclass(frozen=True)
class _Data:
    """The two files of a task, read."""

    train: Task
    dev: Task
    baseline: ConditionOnlyScorer | None


class Asking:
    """The runs that are still to be finished, with all they need.

    Attributes:
        runs: The runs, those of one model together.
        spent: What was asked so far, over all runs.
    """

    def __init__(self, runs: Sequence[PromptRun], options: PromptOptions) -> None:
        """Opens models and draws examples, so that mistakes show before anything is asked.

        Args:
            runs: Runs, finished or not.
            options: The budget.

        Raises:
            InputError: If the data have too few examples, or a model's name or address is none.
            ModelError: If there is no such model on this machine.
            MissingExtraError: If the ``llm`` extra is not installed.
        """
        missing = [run for run in runs if finished_prompt(run) is None]
        models = dict.fromkeys(run.settings.model for run in missing)
        self.runs = tuple(run for model in models for run in missing if run.settings.model == model)
        self.spent = Usage()
        self._options = options
        self._planned = len(runs)
        self._data = {run.data: _read(run) for run in {run.data: run for run in missing}.values()}
        self._shots: dict[tuple[DataFiles, int], Shots] = {}
        self._backends: dict[str, Backend] = {}
        for run in self.runs:
            settings, data = run.settings, run.data
            if (data, settings.shots) not in self._shots:
                shots = Shots(self._data[data].train, settings.shots, seed=settings.seed)
                self._shots[data, settings.shots] = shots
        for run in self.runs:
            if run.settings.model not in self._backends:
                self._backends[run.settings.model] = open_prompt.open_backend(run.settings)

    def requests_left(self) -> dict[Path, int]:
        """Counts the requests that are still to be sent; nothing is asked.

        Returns:
            Requests by folder of the run; 0 where all answers are stored.
        """
        left = {}
        for run in self.runs:
            dev = self._data[run.data].dev
            scorer = self._scorer(run, lambda done, rows: None)
            prompts = scorer.prompts(dev.sentences1, dev.sentences2, dev.conditions)
            left[run.folder] = len(scorer.asker.missing(prompts, len(dev)))
        return left

    def finish(self, progress: Progress | None = None) -> None:
        """Asks until all runs are finished; each leaves its report in its folder.

        Args:
            progress: Shows the progress of each run.

        Raises:
            BudgetError: If the budget is used up. What was answered is stored, and the same call
                goes on from there; this holds for all errors.
            BackendError: If a model does not answer.
            ModelError: If its weights cannot be loaded.
            InputError: If the server has no such model, a prompt is too long or another process
                is asking; the runs after it were tried all the same.
        """
        refused: InputError | None = None
        for number, run in enumerate(self.runs):
            _LOGGER.info("%s", run.folder.name)
            with progress() if progress else nullcontext(lambda done, rows: None) as show:
                scorer = self._scorer(run, show)
                try:
                    self._finish(run, scorer)
                except BudgetError as error:
                    raise self._used_up(number) from error
                except InputError as error:  # a prompt too long, say: other rows may be shorter
                    refused = refused or error
            if all(later.settings.model != run.settings.model for later in self.runs[number + 1 :]):
                del self._backends[run.settings.model]  # frees the memory of a local model
        if refused is not None:
            raise refused

    def _finish(self, run: PromptRun, scorer: PromptScorer) -> None:
        data = self._data[run.data]
        settings = {**deciding(run.settings), "train": run.data.train.name}
        try:
            report = evaluate_prompt(
                scorer, data.dev, settings=settings, condition_only=data.baseline
            )
        finally:
            usage = scorer.asker.usage
            self.spent.stored += usage.stored
            self.spent.requests += usage.requests
            self.spent.prompt_tokens += usage.prompt_tokens
            self.spent.new_tokens += usage.new_tokens
        run.folder.mkdir(parents=True, exist_ok=True)
        report.to_json(run.folder / _REPORT)

    def _scorer(self, run: PromptRun, show: Callable[[int, int], None]) -> PromptScorer:
        settings = run.settings
        return open_prompt.assembled(
            settings,
            self._backends[settings.model],
            shots=self._shots[run.data, settings.shots],
            budget=self._budget(),
            progress=show,
        )

    def _budget(self) -> Budget:
        """What may still be asked for."""
        requests, tokens = self._options.max_requests, self._options.max_tokens
        return Budget(
            None if requests is None else max(0, requests - self.spent.requests),
            None if tokens is None else max(0, tokens - self.spent.tokens),
        )

    def _used_up(self, done: int) -> BudgetError:
        finished = self._planned - len(self.runs) + done
        return BudgetError(
            f"The budget is used up: {self.spent.requests} requests and {self.spent.tokens} "
            f"tokens. {finished} of {self._planned} runs are finished and all answers are kept; "
            "allow more and run the same again for the rest."
        )


def _read(run: PromptRun) -> _Data:
    train = load_task(run.data.train, require_labels=True)
    dev = load_task(run.data.dev, require_labels=True).labelled()
    conditional = dev.conditions is not None
    return _Data(train, dev, ConditionOnlyScorer().fit_task(train) if conditional else None)
