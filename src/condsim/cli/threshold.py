"""``condsim threshold``: the score from which pairs count as the same."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli import options
from condsim.cli.pairs import PairOptions, open_pairs
from condsim.cli.process import print_note
from condsim.data.labels import read_labels
from condsim.errors import InputError
from condsim.evaluation.threshold import find_threshold
from condsim.loading import load_scorer


def threshold(
    labelled: Annotated[Path, typer.Argument(help="File of labelled pairs.")],
    text1: options.Text1 = "sentence1",
    text2: options.Text2 = "sentence2",
    condition_column: options.ConditionColumn = "condition",
    condition: options.Condition = None,
    label: options.LabelColumn = "label",
    positive: options.Positive = None,
    precision: Annotated[
        float, typer.Option(help="Share of pairs above the threshold that must be alike.")
    ] = 0.95,
    model: options.Model = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Find the lowest score from which pairs are alike, with a promised precision.

    The lower end of a 95 % interval of the precision must reach the promise; the interval allows
    for the threshold being chosen on the same rows. Prints the threshold to stdout, and its
    precision and recall to stderr. Fails with a message if there are too few rows. Labels are
    numbers from 1 to 5 or from 0 to 1, or words; rows with the label -1 are left out.

    **Examples**

    `condsim threshold labelled.csv --precision 0.95`

    `condsim threshold pairs.csv --text1 left --text2 right --condition "the request" --label same
    --positive yes`
    """
    # Checked here too, as scoring all rows may take minutes.
    if not 0 < precision < 1:
        raise InputError(f"--precision must be above 0 and below 1; got {precision}.")
    conditions = () if condition is None else (condition,)
    pairs = PairOptions(text1, text2, condition_column, conditions, separator, encoding)
    labels = read_labels(labelled, label, positive=positive, file_format=pairs.file_format)
    if not labels.alike.any():
        raise InputError(
            f"{labelled}: no row is labelled alike. Give --positive the lowest label that counts "
            "as alike, or label more."
        )
    columns, batches = open_pairs(labelled, pairs)
    scorer = load_scorer(model)
    scores = array("f")
    row = 0
    for batch in batches:
        valid = batch.take(np.flatnonzero(labels.present[row : row + len(batch)]))
        row += len(batch)
        if len(valid):
            scores.extend(scorer.score(*columns.texts(valid)))
    alike = labels.alike[labels.present]
    best = find_threshold(np.array(scores, np.float32), alike, precision=precision)
    # The text of a float32 is the shortest one that reads back as the same number.
    typer.echo(str(np.float32(best.value)))
    print_note(
        f"precision {best.precision:.3f} [{best.low:.3f}, {best.high:.3f}], recall "
        f"{best.recall:.3f}: {best.reached:,} of {best.rows:,} rows reach it, and "
        f"{best.positives:,} are labelled alike"
    )
