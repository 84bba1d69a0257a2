"""What ``condsim prompt`` shows and writes."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
import typer
from rich import progress as bars
from rich.console import Console
from rich.table import Table
from rich.text import Text

from condsim.evaluation import to_table
from condsim.evaluation.prompt_report import PromptReport
from condsim.files import replacing
from condsim.scorers.prompt import PromptScorer
from condsim.types import Task

__all__ = ["Progress", "print_report", "resumable", "show_examples", "write_predictions"]


class Progress:
    """A bar on stderr: rows answered, their rate and the time left; a context manager."""

    def __init__(self) -> None:
        """Makes the bar; it appears with the first answer, and on a terminal only."""
        console = Console(stderr=True)
        self._bar = bars.Progress(
            *bars.Progress.get_default_columns(),
            bars.MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: bars.TaskID | None = None

    def __enter__(self) -> Progress:
        """Starts the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Removes the bar."""
        self._bar.stop()

    def __call__(self, done: int, rows: int) -> None:
        """Moves the bar.

        Args:
            done: Rows answered.
            rows: Rows in all.
        """
        if self._task is None:
            self._task = self._bar.add_task("answers", total=rows)
        self._bar.update(self._task, completed=done)


class Answered(NamedTuple):
    """A row with what was answered."""

    row: int
    text: str
    value: float
    valid: bool


@contextmanager
def resumable(scorer: PromptScorer) -> Iterator[None]:
    """Says what is kept when the user stops a run.

    Args:
        scorer: What is being asked.

    Yields:
        Nothing; the work goes inside.
    """
    try:
        yield
    except KeyboardInterrupt:
        answered = scorer.asker.usage.requests
        typer.echo(
            f"stopped after {answered} requests; all answers that came are kept, and the same "
            "command goes on",
            err=True,
        )
        raise


def print_report(report: PromptReport) -> None:
    """Prints the figures, those of the valid answers alone and what was spent.

    Args:
        report: The report.
    """
    console = Console()
    console.print(to_table(report.report))
    table = Table(title="Answers", title_justify="left")
    for head in ("invalid", "out of range", "expected value", "Spearman", "Pearson"):
        table.add_column(head, justify="right")
    figures = ["-", "-"]
    if report.valid_only is not None:
        metrics = report.valid_only.model.metrics
        values = [metrics[name].value for name in ("spearman", "pearson")]
        figures = ["-" if math.isnan(value) else f"{value:.1f}" for value in values]
    percents = (report.invalid, report.out_of_range, report.expected)
    table.add_row(*(f"{percent:.2f} %" for percent in percents), *figures)
    table.caption = "Spearman and Pearson of the valid answers alone."
    console.print(table)
    for note in _notes(report):
        typer.echo(note, err=True)
    usage = report.usage
    typer.echo(
        f"{usage['requests']} requests, {usage['prompt_tokens']} tokens in prompts and "
        f"{usage['new_tokens']} in answers; {usage['stored']} rows were answered before",
        err=True,
    )


def _notes(report: PromptReport) -> Iterator[str]:
    """What a reader of the table must know."""
    yield from (f"note: the model was {note}" for note in report.notes)
    if report.settings.get("scoring") == "expected" and report.expected == 0:
        yield (
            "note: no answer came with probabilities, so every score is that of the text. If the "
            "server gives them now, name another file for the answers (--answers)"
        )


def write_predictions(scorer: PromptScorer, task: Task, path: Path) -> None:
    """Writes each row with its answer; nothing is asked anew.

    Args:
        scorer: What was asked.
        task: The rows.
        path: The CSV file: sentence1, sentence2, condition (if there is one), label, answer,
            prediction on the task's scale, and valid (1 or 0).
    """
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        under = [] if task.conditions is None else ["condition"]
        writer.writerow(
            ["sentence1", "sentence2", *under, "label", "answer", "prediction", "valid"]
        )
        for answered in _answered(scorer, task):
            writer.writerow(
                [
                    *_texts(task, answered.row),
                    f"{task.labels[answered.row]:g}",
                    answered.text,
                    f"{answered.value:.6g}",
                    int(answered.valid),
                ]
            )


def show_examples(scorer: PromptScorer, task: Task, count: int) -> None:
    """Prints rows from the best to the worst prediction, as Table 5 of the C-STS paper does.

    Args:
        scorer: What was asked; nothing is asked anew.
        task: The rows.
        count: How many rows; they lie at equal steps of the error.
    """
    answered = list(_answered(scorer, task))
    ordered = sorted(answered, key=lambda one: abs(one.value - float(task.labels[one.row])))
    places = np.linspace(0, len(ordered) - 1, num=min(count, len(ordered))).round().astype(int)
    table = Table(title="Predictions", title_justify="left", show_lines=True)
    for head in ("Sentence 1", "Sentence 2", "Condition", "Answer", "Score", "Label"):
        table.add_column(head)
    for place in places:
        one = ordered[place]
        texts = [*_texts(task, one.row), ""][:3]
        shown = f"{one.value:.2f}" + ("" if one.valid else " (random)")
        cells = [*texts, repr(one.text), shown, f"{task.labels[one.row]:g}"]
        table.add_row(*(Text(cell) for cell in cells))  # no markup: a text may hold brackets
    Console().print(table)


def _answered(scorer: PromptScorer, task: Task) -> Iterator[Answered]:
    """The rows in order with their stored answers."""
    columns = (task.sentences1, task.sentences2, task.conditions)
    predictions = scorer.predict(*columns)
    texts = {
        row: answer.text for row, answer in scorer.asker.stored(scorer.prompts(*columns), len(task))
    }
    for row in range(len(task)):
        yield Answered(
            row, texts[row], float(predictions.values[row]), bool(predictions.valid[row])
        )


def _texts(task: Task, row: int) -> list[str]:
    under = [] if task.conditions is None else [task.conditions[row]]
    return [task.sentences1[row], task.sentences2[row], *under]
