"""``condsim data check``: what is in a data file, and whether it can be used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from condsim.cli.options import JsonFile, show_table, write_report
from condsim.cli.pairs import LabeledPairs, load_pairs_as_task
from condsim.data.tasks import TaskStatistics, describe

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def check(
    file: Annotated[
        Path, Argument(help="File with sentence1, sentence2, condition and perhaps label.")
    ],
    pairs: LabeledPairs,
    top: Annotated[int, Option(min=0, help="Number of frequent conditions to list.")] = 10,
    json: JsonFile = None,
) -> None:
    """Check a data file and print its statistics.

    Stops at the first fault with one line that names row and column, and exit status 2; rows
    without text are left out. Prints the statistics of the C-STS paper (rows, pairs, labels,
    lengths in words, frequent conditions), and how far apart the two labels of a sentence pair are.

    **Examples**

    `condsim data check pairs.jsonl --top 20`

    `condsim data check csts_validation.csv --json > statistics.json`
    """
    task = load_pairs_as_task(
        file, pairs=pairs, consequence="no part in the statistics", require_labels=False
    )
    statistics = describe(task, top=top)
    write_report(json, statistics.to_dict())
    show_table(
        ("", ""),
        _statistics_lines(statistics),
        title=f"{statistics.name}, revision {statistics.revision}",
    )
    labels, gaps = statistics.label_histogram, statistics.gap_histogram
    if labels:
        show_table(("label", "rows", "share"), _shares(labels), title="Labels")
    if gaps:
        show_table(("gap", "pairs", "share"), _shares(gaps), title="High minus low label")
    if statistics.frequent_conditions:
        show_table(
            ("condition (case ignored)", "rows", "share"),
            _shares(statistics.frequent_conditions, total=statistics.rows),
            title="Most frequent conditions",
        )


def _statistics_lines(statistics: TaskStatistics) -> list[tuple[str, str]]:
    words, condition_words = statistics.sentence_words, statistics.condition_words
    rows = [
        ("rows", f"{statistics.rows:,}"),
        ("  with a label", f"{statistics.labeled_rows:,}"),
        ("  unlabeled or invalid", f"{statistics.unlabeled_rows:,}"),
        ("sentence pairs", f"{statistics.sentence_pairs:,}"),
        ("  high-low pairs of rows", f"{statistics.high_low_pairs:,}"),
        ("  ties (equal labels)", f"{statistics.ties:,}"),
        ("  lone rows", f"{statistics.lone_rows:,}"),
        ("  with more than two labeled rows", f"{statistics.larger_groups:,}"),
        ("unique sentences", f"{statistics.unique_sentences:,}"),
        ("distinct conditions (case ignored)", f"{statistics.distinct_conditions:,}"),
        ("words in a sentence, mean / median", f"{words.mean:.1f} / {words.median:g}"),
    ]
    if condition_words is not None:
        lengths = f"{condition_words.mean:.1f} / {condition_words.median:g}"
        rows.append(("words in a condition, mean / median", lengths))
    rows.append(("rows that repeat a condition", f"{statistics.repeated_condition_rows:,}"))
    if statistics.mean_gap is not None:
        rows.append(("high minus low label, mean", f"{statistics.mean_gap:.2f}"))
    if statistics.first_is_higher_share is not None:
        share = f"{statistics.first_is_higher_share:.1%}"
        rows.append(("pairs whose first row is the higher", share))
    return rows


def _shares(
    counts: Sequence[tuple[str | float, int]], *, total: int | None = None
) -> list[tuple[str, str, str]]:
    total = total or sum(count for _, count in counts)
    return [
        (value if isinstance(value, str) else f"{value:g}", f"{count:,}", f"{count / total:.1%}")
        for value, count in counts
    ]
