"""``condsim prompt``: what a language model reaches when it is asked for the similarity."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.outputs import check_output
from condsim.prompting.settings import ANSWERS, PromptSettings, save_settings

if TYPE_CHECKING:
    from condsim.scorers.prompt import PromptScorer
    from condsim.types import Task

__all__ = ["prompt"]


class Instruction(StrEnum):
    """How much the model is told about the task."""

    NONE = "none"
    SHORT = "short"
    LONG = "long"


class Scoring(StrEnum):
    """How an answer becomes a score."""

    TEXT = "text"
    EXPECTED = "expected"


class Parsing(StrEnum):
    """How strictly a number is read out of a text."""

    STRICT = "strict"
    FIRST_NUMBER = "first-number"


class Backend(StrEnum):
    """Where the model runs."""

    LOCAL = "local"
    SERVER = "server"


def prompt(
    model: Annotated[
        str,
        typer.Option(
            help="Hub name or folder of a generative model, or the server's name for it.",
            show_default=False,
        ),
    ],
    data: Annotated[Path, typer.Option(help="Labelled file: C-STS or STS-B.", show_default=False)],
    train: Annotated[
        Path | None,
        typer.Option(help="Labelled file the examples are drawn from.", show_default=False),
    ] = None,
    instruction: Annotated[
        Instruction, typer.Option(help="What the model is told about the task.")
    ] = Instruction.LONG,
    shots: Annotated[int, typer.Option(min=0, help="Examples in each prompt.")] = 0,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Address of an OpenAI-compatible server, such as http://localhost:8000/v1. The "
            "key is read from OPENAI_API_KEY.",
            show_default=False,
        ),
    ] = None,
    backend: Annotated[
        Backend | None,
        typer.Option(
            help="Where the model runs; 'server' without --base-url is OpenAI.",
            show_default="server with --base-url, else local",
        ),
    ] = None,
    scoring: Annotated[
        Scoring,
        typer.Option(
            help="text: the number in the answer. expected: the mean over the numbers the model "
            "might have said, which has fewer ties."
        ),
    ] = Scoring.TEXT,
    parsing: Annotated[
        Parsing,
        typer.Option(help="strict: one number and no other. first-number: the first of several."),
    ] = Parsing.STRICT,
    seed: Annotated[int, typer.Option(min=0, help="Seed of examples and random values.")] = 0,
    answers: Annotated[
        Path, typer.Option(help="SQLite file of answers; none is asked for twice.")
    ] = Path(ANSWERS),
    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Send this many prompts at most.", show_default=False)
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=0, help="Use this many tokens at most, prompts and answers.", show_default=False
        ),
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest answer in tokens.")] = 20,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests to a server under way at a time.")
    ] = 32,
    timeout: Annotated[float, typer.Option(help="Seconds until a request counts as lost.")] = 60.0,
    retries: Annotated[int, typer.Option(min=0, help="Times a failed request is repeated.")] = 5,
    unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Use a model that the server does not list.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(help="Where a local model runs.", show_default="chosen")
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=1, help="Bootstrap resamples of the sentence pairs.")
    ] = 1000,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print prompts, requests and tokens; ask nothing."),
    ] = False,
    show: Annotated[int, typer.Option(min=0, help="Prompts that --dry-run prints; 0 for all.")] = 3,
    examples: Annotated[
        int, typer.Option(min=0, help="Print this many answers, the best to the worst.")
    ] = 0,
    json: Annotated[
        Path | None, typer.Option(help="Write the report to this file.", show_default=False)
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Write rows, answers and scores to this CSV file.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the settings to this YAML file, a model for 'condsim evaluate'.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Ask a language model how similar the sentences are, and measure its answers.

    Prints what `condsim evaluate` prints, and how many answers were no number or not on the
    scale. Answers are stored as they arrive: a run that stops goes on with the same command.

    **Examples**

    `condsim prompt --model google/flan-t5-large --data dev.csv --instruction short`

    `condsim prompt --model gpt-4.1-mini --backend server --data dev.csv --train train.csv
    --shots 4 --dry-run`

    `condsim prompt --model my-model --base-url http://localhost:8000/v1 --data dev.csv
    --scoring expected --max-requests 500 --json report.json`
    """
    for option, path in (("--json", json), ("--predictions", predictions), ("--save", save)):
        check_output(option, path)
    settings = PromptSettings(
        model=model,
        backend=(backend or Backend.SERVER if base_url else backend or Backend.LOCAL).value,
        base_url=base_url,
        instruction=instruction.value,
        shots=shots,
        train=None if train is None else str(train),
        seed=seed,
        scoring=scoring.value,
        parsing=parsing.value,
        answers=str(answers),
        max_new_tokens=max_new_tokens,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        max_requests=max_requests,
        max_tokens=max_tokens,
        unlisted=unlisted,
        device=device,
    )
    from condsim.cli.prompt_output import (
        Progress,
        print_report,
        resumable,
        show_examples,
        write_predictions,
    )
    from condsim.evaluation.prompt_report import evaluate_prompt
    from condsim.scorers.open_prompt import open_prompt_scorer
    from condsim.tasks import load_task

    task = load_task(data, require_labels=True).labelled()
    with Progress() as progress:
        scorer = open_prompt_scorer(settings, progress=progress)
        if save is not None:
            save_settings(settings, save)
        if dry_run:
            _dry_run(scorer, task, show=show)
            return
        with resumable(scorer):
            report = evaluate_prompt(
                scorer, task, settings=settings.to_dict(), resamples=resamples, seed=seed
            )
    print_report(report)
    if json is not None:
        report.to_json(json)
    if predictions is not None:
        write_predictions(scorer, task, predictions)
    if examples:
        show_examples(scorer, task, examples)


def _dry_run(scorer: PromptScorer, task: Task, *, show: int) -> None:
    """Prints the first prompts that would be sent, and what all of them come to."""
    prompt_of = scorer.prompts(task.sentences1, task.sentences2, task.conditions)
    rows = scorer.asker.missing(prompt_of, len(task))
    scorer.asker.check_lengths(prompt_of, rows)
    shown = rows[:show] if show else rows
    for row in shown:
        typer.echo(f"--- row {row + 1} ---\n{prompt_of(row)}")
    if len(shown) < len(rows):
        typer.echo(f"--- {len(rows) - len(shown)} more; --show 0 prints all ---")
    tokens = scorer.asker.count_tokens(prompt_of, rows)
    typer.echo(
        f"{len(task)} rows, {len(task) - len(rows)} answered or equal to another, "
        f"{len(rows)} requests, about {tokens} tokens in prompts and at most "
        f"{len(rows) * scorer.asker.max_new_tokens} in answers"
    )
