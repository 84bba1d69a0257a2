"""What an experiment asks language models: one line for each row and model, each with its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from condsim.prompting import PromptSettings
from experiments.backbones import Backbone
from experiments.experiment import Experiment, Prompting, Row
from experiments.language_models import PAPER_MODELS, hosted
from experiments.naming import prompt_folder
from experiments.plan import DataFiles, Options, data_files

_ANSWERS = "answers.sqlite"


@dataclass(frozen=True)
class PromptRun:
    """A language model asked in one way, finished or not.

    Attributes:
        folder: Where its report is, or will be.
        settings: What is asked of which model, without a budget.
        data: The file the examples are drawn from and the dev file.
    """

    folder: Path
    settings: PromptSettings
    data: DataFiles


@dataclass(frozen=True)
class PromptLine:
    """A row of the experiment and one language model.

    Attributes:
        row: The row.
        model: The model.
        run: Its run; None if the model was not asked for.
    """

    row: Row
    model: Backbone
    run: PromptRun | None


def plan_prompts(experiment: Experiment, options: Options) -> tuple[PromptLine, ...]:
    """Lists what an experiment asks; nothing is asked.

    A model that is asked for has a run in every row. The paper's other models are there without
    runs where it has a number for them.

    Args:
        experiment: An experiment of the kind ``prompting``.
        options: What was chosen.

    Returns:
        The lines, row by row.

    Raises:
        InputError: If a model is asked for and the data are not there.
    """
    asked = {model.key: model for model in options.prompts.models}
    tasks = dict.fromkeys(row.task for row in experiment.rows.values()) if asked else {}
    data = {task: data_files(task, options) for task in tasks}
    lines = []
    for row in experiment.rows.values():
        for model in {**PAPER_MODELS, **asked}.values():
            if model.key in asked and row.prompt is not None:
                run = _run(row.prompt, model, options, data[row.task])
                lines.append(PromptLine(row, model, run))
            elif experiment.has_number(row.key, model.key):
                lines.append(PromptLine(row, model, None))
    return tuple(lines)


def prompt_runs(lines: Sequence[PromptLine]) -> tuple[PromptRun, ...]:
    """All runs of some lines.

    Args:
        lines: What `plan_prompts` gave.

    Returns:
        The runs in the order of the lines.
    """
    return tuple(line.run for line in lines if line.run is not None)


def _run(how: Prompting, model: Backbone, options: Options, data: DataFiles) -> PromptRun:
    chosen = options.prompts
    behind: Literal["local", "server"] = (
        "server" if chosen.base_url is not None or hosted(model) else "local"
    )
    settings = PromptSettings(
        model=model.model,
        backend=behind,
        base_url=chosen.base_url,
        instruction=how.instruction,
        shots=how.shots,
        train=str(data.train),
        scoring=chosen.scoring,
        answers=str(options.runs / _ANSWERS),
        unlisted=chosen.unlisted,
    )
    folder = prompt_folder(
        options.runs,
        settings,
        train_revision=data.train_revision,
        dev_revision=data.dev_revision,
    )
    return PromptRun(folder, settings, data)
