"""``condsim threshold``: the score from which pairs count as the same."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.pairs import LabeledPairs, open_pairs
from condsim.cli.process import print_note
from condsim.data.batch import BlankRows
from condsim.errors import InputError
from condsim.evaluation.threshold import Threshold, check_promise, find_threshold, threshold_table
from condsim.loading import load_scorer
from condsim.model.base import COLLECTION_SHARE
from condsim.model.criterion import is_criterion_file
from condsim.model.embedding import EmbeddingScorer


def threshold(
    labeled: Annotated[Path, Argument(help="File of labeled pairs.")],
    pairs: LabeledPairs,
    precision: Annotated[float, Option(help="Promised share of alike pairs.")] = 0.95,
    model: options.Model = None,
    overall: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            help="Share of the similarity without the condition, 0 to 1.",
            show_default=f"{COLLECTION_SHARE}, as in search, dedupe and match",
        ),
    ] = None,
) -> None:
    """Find the lowest score from which pairs are alike, with a promised precision.

    The lower end of a 95 % interval of the precision must reach the promise; the interval allows
    for the threshold being chosen on the same rows. Prints the threshold to stdout, and a table of
    thresholds with precision, recall and F1 to stderr. Rows with the label -1 are left out. The
    share --overall is as in search, dedupe and match; use --overall 0 for score.

    **Examples**

    `condsim threshold labeled.csv --precision 0.95`

    `condsim threshold pairs.csv --text1 left --text2 right --condition "the request" --label same
    --positive yes`
    """
    # Scoring all rows may take minutes.
    check_promise(precision)
    labels = pairs.labels(labeled)
    number = int(labels.alike.sum())
    if number in (0, int(labels.present.sum())):
        raise InputError(
            f"{labeled}: {'every' if number else 'no'} row is labeled alike, and rows of both "
            "kinds are needed. Give --positive the lowest label that counts as alike, or label "
            "more."
        )
    columns, batches = open_pairs(labeled, pairs)
    scorer = load_scorer(model)
    share = overall or 0.0
    if overall is None and isinstance(scorer, EmbeddingScorer):
        share = COLLECTION_SHARE
    if columns.is_plain:
        print_note(
            "No condition: the threshold is for texts as a whole (--plain). Give --condition, or "
            "a column of conditions, for another."
        )
    elif not is_criterion_file(pairs.given_condition):
        # A learned criterion ignores the share.
        print_note(f"scores with --overall {share:g}: use the threshold with the same share")
    blank = BlankRows(strict=pairs.strict)
    scores, alike = array("f"), list[bool]()
    start = 0
    for batch in batches:
        rows = slice(start, start + len(batch))
        start = rows.stop
        labeled_rows = np.flatnonzero(labels.present[rows])
        texts = columns.read(batch.take(labeled_rows), blank)
        if len(texts.rows):
            sentences = texts.sentences1, texts.sentences2
            scores.extend(scorer.score(*sentences, texts.conditions, overall=share))
            alike.extend(labels.alike[rows][labeled_rows[texts.rows]].tolist())
    values, marks = np.array(scores, np.float32), np.array(alike, np.bool_)
    _show_thresholds(threshold_table(values, marks))
    best = find_threshold(values, marks, precision=precision)
    # The text of a float32 is the shortest one that reads back as the same number.
    typer.echo(str(np.float32(best.value)))
    print_note(
        f"precision {best.precision:.3f} [{best.low:.3f}, {best.high:.3f}], recall "
        f"{best.recall:.3f}: {best.reached:,} of {best.rows:,} rows reach it, and "
        f"{best.positives:,} are labeled alike"
    )
    print_note(blank.note("no score"))


def _show_thresholds(thresholds: Sequence[Threshold]) -> None:
    """Print the figures of thresholds to stderr, the highest F1 marked."""
    best = max(thresholds, key=lambda row: row.f1)
    head = ("threshold", "rows", "precision", "95 % interval", "recall", "F1")
    lines = [f"{'  '.join(head)}"]
    for row in thresholds:
        cells = (
            f"{row.value:.4f}",
            f"{row.reached:,}",
            f"{row.precision:.3f}",
            f"{row.low:.3f}-{row.high:.3f}",
            f"{row.recall:.3f}",
            f"{row.f1:.3f}",
        )
        padded = [cell.rjust(len(name)) for cell, name in zip(cells, head, strict=True)]
        lines.append("  ".join(padded) + ("  best F1" if row is best else ""))
    print_note("\n".join(lines))
