"""``condsim threshold``: the score from which pairs count as the same."""

from __future__ import annotations

from array import array
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
from condsim.evaluation.threshold import check_promise, find_threshold
from condsim.loading import load_scorer


def threshold(
    labelled: Annotated[Path, Argument(help="File of labeled pairs.")],
    pairs: LabeledPairs,
    precision: Annotated[float, Option(help="Promised share of alike pairs.")] = 0.95,
    model: options.Model = None,
    overall: options.Overall = 0.0,
) -> None:
    """Find the lowest score from which pairs are alike, with a promised precision.

    The lower end of a 95 % interval of the precision must reach the promise; the interval allows
    for the threshold being chosen on the same rows. Prints the threshold to stdout, and its
    precision and recall to stderr. Rows with the label -1 are left out. Give --overall the share
    of the command that will use the threshold: dedupe and search have 0.3 by default.

    **Examples**

    `condsim threshold labelled.csv --precision 0.95`

    `condsim threshold pairs.csv --text1 left --text2 right --condition "the request" --label same
    --positive yes`
    """
    # Scoring all rows may take minutes.
    check_promise(precision)
    labels = pairs.labels(labelled)
    if not labels.alike.any():
        raise InputError(
            f"{labelled}: no row is labeled alike. Give --positive the lowest label that counts "
            "as alike, or label more."
        )
    columns, batches = open_pairs(labelled, pairs)
    scorer = load_scorer(model)
    blank = BlankRows(strict=pairs.strict)
    scores, alike = array("f"), list[bool]()
    start = 0
    for batch in batches:
        rows = slice(start, start + len(batch))
        start = rows.stop
        labelled_rows = np.flatnonzero(labels.present[rows])
        texts = columns.read(batch.take(labelled_rows), blank)
        if len(texts.rows):
            sentences = texts.sentences1, texts.sentences2
            scores.extend(scorer.score(*sentences, texts.conditions, overall=overall))
            alike.extend(labels.alike[rows][labelled_rows[texts.rows]].tolist())
    best = find_threshold(
        np.array(scores, np.float32), np.array(alike, np.bool_), precision=precision
    )
    # The text of a float32 is the shortest one that reads back as the same number.
    typer.echo(str(np.float32(best.value)))
    print_note(
        f"precision {best.precision:.3f} [{best.low:.3f}, {best.high:.3f}], recall "
        f"{best.recall:.3f}: {best.reached:,} of {best.rows:,} rows reach it, and "
        f"{best.positives:,} are labeled alike"
    )
    print_note(blank.note("no score"))
