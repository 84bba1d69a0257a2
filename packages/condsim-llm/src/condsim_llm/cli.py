"""``condsim prompt``: measure a language model that is asked for the similarity."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli.command import OptionGroup
from condsim.cli.files import Output
from condsim.cli.options import (
    JsonFile,
    Resamples,
    Seed,
    given,
    show_table,
)
from condsim.cli.pairs import LabeledPairs, load_pairs_as_task
from condsim.cli.process import long_work, print_note
from condsim.config import write_mapping
from condsim.io import replacing

if TYPE_CHECKING:
    from condsim.types import Task
    from condsim_llm.backend import PromptSettings
    from condsim_llm.scorer import PromptReport, PromptScorer


class _AnsweredRow(NamedTuple):
    """A row with its answer; ``texts`` are two sentences and the condition, if there is one."""

    texts: tuple[str, ...]
    label: float
    answer: str
    score: float
    valid: bool


def _print_report(report: PromptReport) -> None:
    """Print the metrics, also for the valid answers alone, and the requests."""
    from condsim.evaluation.report import to_table
    from condsim.terminal import Terminal

    Terminal().print(to_table(report.report))
    metrics = {} if report.valid_only is None else report.valid_only.model.metrics
    values = [metrics[name].value if metrics else math.nan for name in ("spearman", "pearson")]
    figures = ["-" if math.isnan(value) else f"{value:.1f}" for value in values]
    shares = (report.invalid, report.out_of_range, report.expected)
    show_table(
        ("invalid", "out of range", "expected value", "Spearman", "Pearson"),
        [[*(f"{percent:.2f} %" for percent in shares), *figures]],
        title="Answers",
        caption="Spearman and Pearson of the valid answers alone.",
    )
    for note in report.notes:
        print_note(f"note: the model was {note}")
    if report.settings.get("scoring") == "expected" and report.expected == 0:
        print_note(
            "note: no answer came with probabilities, so every score is the text's number. If the "
            "server returns them now, name another file for the answers (--answers)"
        )
    usage = report.usage
    print_note(
        f"{usage['requests']} requests, {usage['prompt_tokens']} tokens in prompts and "
        f"{usage['new_tokens']} in answers; {usage['stored']} rows were answered before"
    )


def _write_predictions(rows: list[_AnsweredRow], path: Path) -> None:
    names = ("sentence1", "sentence2", "condition")[: len(rows[0].texts)]
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*names, "label", "answer", "prediction", "valid"])
        for texts, label, answer, score, valid in rows:
            writer.writerow([*texts, f"{label:g}", answer, f"{score:.6g}", int(valid)])


def _show_examples(rows: list[_AnsweredRow], count: int) -> None:
    """Print rows at equal steps of the error, the best first, as Table 5 of the C-STS paper."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from condsim.terminal import Terminal

    rows = sorted(rows, key=lambda row: abs(row.score - row.label))
    indices = np.linspace(0, len(rows) - 1, num=min(count, len(rows))).round().astype(int)
    table = Table(title="Predictions", title_justify="left", box=box.SIMPLE_HEAD, show_lines=True)
    for head in ("Sentence 1", "Sentence 2", "Condition", "Answer", "Score", "Label"):
        table.add_column(head)
    for index in indices:
        texts, label, answer, score, valid = rows[index]
        score_text = f"{score:.2f}" + ("" if valid else " (random)")
        cells = [*[*texts, ""][:3], repr(answer), score_text, f"{label:g}"]
        # Rich would read brackets in a text as markup.
        table.add_row(*(Text(cell) for cell in cells))
    Terminal().print(table)


def _answered_rows(scorer: PromptScorer, task: Task) -> list[_AnsweredRow]:
    """Read the stored answers of all rows, in order."""
    columns = (task.sentences1, task.sentences2, task.conditions)
    predictions = scorer.predict(*columns)
    texts = zip(*(column for column in columns if column is not None), strict=True)
    scores = zip(predictions.answers, predictions.values, predictions.valid, strict=True)
    return [
        _AnsweredRow(row_texts, float(label), answer, float(value), bool(valid))
        for row_texts, label, (answer, value, valid) in zip(texts, task.labels, scores, strict=True)
    ]


@dataclass(frozen=True)
class PromptOptions(OptionGroup):
    """Options that decide the prompts and the model; the fields are as in its settings."""

    train: Annotated[Path | None, Option(help="Labeled file of examples.")] = None
    instruction: Annotated[
        Literal["none", "short", "long"], Option(help="Instruction in the prompt.")
    ] = "long"
    shots: Annotated[int, Option(min=0, help="Examples in each prompt.")] = 0
    base_url: Annotated[
        str | None,
        Option(help="Address of an OpenAI-compatible server; its key is in OPENAI_API_KEY."),
    ] = None
    backend: Annotated[
        Literal["local", "server"] | None,
        Option(
            help="Location of the model; without --base-url, 'server' is OpenAI.",
            show_default="server with --base-url, else local",
        ),
    ] = None
    scoring: Annotated[
        Literal["text", "expected"],
        Option(
            help="text: the number in the answer. expected: the mean weighted by probabilities."
        ),
    ] = "text"
    parsing: Annotated[
        Literal["strict", "first-number"],
        Option(help="strict: exactly one number. first-number: the first of several."),
    ] = "strict"
    answers: Annotated[Path, Option(help="Answers (SQLite).")] = Path("runs/answers.sqlite")
    max_requests: Annotated[
        int | None, Option(min=0, help="Maximum number of prompts to send.")
    ] = None
    max_tokens: Annotated[int | None, Option(min=0, help="Maximum number of tokens in all.")] = None
    max_new_tokens: Annotated[int, Option(min=1, help="Maximum tokens of an answer.")] = 20
    concurrency: Annotated[int, Option(min=1, help="Requests at a time.")] = 32
    timeout: Annotated[float, Option(help="Seconds until a request counts as lost.")] = 60.0
    retries: Annotated[int, Option(min=0, help="Retries of a request.")] = 5
    device: Annotated[
        str | None,
        Option(help="Device of a local model, such as cpu or cuda.", show_default="chosen"),
    ] = None

    def settings(self, model: str, *, seed: int) -> PromptSettings:
        """Make the settings of a model."""
        from condsim_llm.backend import PromptSettings

        backend = self.backend or ("server" if self.base_url else "local")
        return PromptSettings(**given(**{**vars(self), "backend": backend}), model=model, seed=seed)


def prompt(
    model: Annotated[
        str, Option(help="Hub name, folder or GGUF file, or a server's name of a model.")
    ],
    data: Annotated[Path, Argument(metavar="FILE", help="Labeled file: C-STS or STS-B.")],
    pairs: LabeledPairs,
    prompts: PromptOptions,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print prompts and counts; send nothing.")
    ] = False,
    show: Annotated[int, Option(min=0, help="Prompts of --dry-run; 0 for all.")] = 3,
    examples: Annotated[int, Option(min=0, help="Answers to print, best to worst.")] = 0,
    json: JsonFile = None,
    predictions: Annotated[
        Path | None, Option(help="CSV file of rows and answers."), Output(".csv")
    ] = None,
    save: Annotated[
        Path | None,
        Option(help="YAML file of the settings, a model for 'condsim evaluate'."),
        Output(".yaml"),
    ] = None,
) -> None:
    """Ask a language model how similar the sentences are, and measure its answers.

    Prints the report of `condsim evaluate`, and the share of answers that are not a number or not
    on the scale. Answers are stored as they arrive: repeat the command to resume a run.

    **Examples**

    `condsim prompt --model google/flan-t5-large dev.csv --instruction short`

    `condsim prompt --model gpt-4.1-mini --backend server dev.csv --train train.csv
    --shots 4 --dry-run`

    `condsim prompt --model my-model --base-url http://localhost:8000/v1 dev.csv
    --scoring expected --max-requests 500 --json report.json`
    """
    from condsim_llm.scorer import evaluate_prompt, open_prompt_scorer

    settings = prompts.settings(model, seed=seed)
    task = load_pairs_as_task(data, pairs=pairs, consequence="no answer").labeled()
    scorer = open_prompt_scorer(
        settings,
        load=partial(load_pairs_as_task, pairs=pairs, consequence="no part in the prompts"),
        progress=lambda done, rows: progress("answers", done, rows),
    )
    if save is not None:
        write_mapping(settings.model_dump(exclude_defaults=True), save)
    if dry_run:
        _dry_run(scorer, task, show=show)
        return

    def resume() -> str:
        requests = scorer.asker.usage.requests
        stored = f"The answers of {requests} requests are stored"
        return f"{stored}; the same command continues from here."

    with long_work(log=None, resume=resume) as progress:
        report = evaluate_prompt(
            scorer, task, settings=settings.model_dump(), resamples=resamples, seed=seed
        )
        rows = _answered_rows(scorer, task) if examples or predictions else []
        if predictions is not None:
            _write_predictions(rows, predictions)
    _print_report(report)
    if json is not None:
        report.to_json(json)
    if examples:
        _show_examples(rows, examples)


def _dry_run(scorer: PromptScorer, task: Task, *, show: int) -> None:
    """Print the first prompts to send, and the number of requests and tokens of all."""
    prompt_of = scorer.prompts(task.sentences1, task.sentences2, task.conditions)
    rows = scorer.asker.missing(prompt_of, len(task))
    scorer.asker.check_lengths(prompt_of, rows)
    first_rows = rows[:show] if show else rows
    for row in first_rows:
        typer.echo(f"--- row {row + 1} ---\n{prompt_of(row)}")
    if len(first_rows) < len(rows):
        typer.echo(f"--- {len(rows) - len(first_rows)} more; --show 0 prints all ---")
    tokens = sum(scorer.asker.backend.count_tokens(prompt_of(row)) for row in rows)
    typer.echo(
        f"{len(task)} rows, {len(task) - len(rows)} answered or equal to another, "
        f"{len(rows)} requests, about {tokens} tokens in prompts and at most "
        f"{len(rows) * scorer.asker.backend.max_new_tokens} in answers"
    )
