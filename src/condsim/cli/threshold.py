"""``condsim threshold``: the score from which pairs count as the same."""

from __future__ import annotations

from array import array
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.options import Model
from condsim.data.reading import iter_rows
from condsim.errors import InputError
from condsim.evaluation.threshold import find_threshold
from condsim.loading import load_scorer

_BLOCK = 4096  # rows scored at once
_COLUMNS = ("sentence1", "sentence2", "condition")
_FIX = "Correct it, or give -1 to leave the row out."
_INVALID = -1  # label of C-STS where the condition does not apply


def threshold(
    labelled: Annotated[
        Path,
        typer.Argument(help="File with the columns sentence1, sentence2, condition and label."),
    ],
    precision: Annotated[
        float, typer.Option(help="Share of pairs above the threshold that must be alike.")
    ] = 0.95,
    positive: Annotated[float, typer.Option(help="Lowest label that counts as alike.")] = 4.0,
    model: Model = None,
) -> None:
    """Find the lowest score from which pairs are alike, with a promised precision.

    The lower end of a 95 % interval of the precision must reach the promise; the interval allows
    for the threshold being chosen on the same rows. The threshold is printed alone, what it keeps
    on stderr. If the rows are too few or the scores too poor, one line says so and how many rows it
    takes. Labels lie between 0 and 5; rows with the label -1 are left out.

    **Examples**

    `condsim threshold labelled.csv --precision 0.95`

    `condsim threshold yes-no.csv --positive 1`
    """
    if not 0 < precision < 1:  # also checked below, but only after all rows were scored
        raise InputError(f"--precision must be above 0 and below 1. Got {precision} instead.")
    scorer = load_scorer(model)
    scores, labels = array("f"), array("f")
    rows = iter_rows(labelled, columns=(*_COLUMNS, "label"))
    while block := list(islice(rows, _BLOCK)):
        found = [row.score("label", label_range=(_INVALID, 5), fix=_FIX) for row in block]
        valid = [row for row, label in zip(block, found, strict=True) if label != _INVALID]
        labels.extend(row.score("label", label_range=(0, 5), fix=_FIX) for row in valid)
        sentences1, sentences2, conditions = (
            [row.text(name) for row in valid] for name in _COLUMNS
        )
        scores.extend(scorer.score(sentences1, sentences2, conditions))
    if labels and max(labels) < positive:
        raise InputError(
            f"No label reaches {positive:g} (the highest is {max(labels):g}). Give --positive "
            f"{max(labels):g} where that counts as alike, or label more."
        )
    best = find_threshold(
        np.array(scores, np.float32),
        np.array(labels, np.float32) >= positive,
        precision=precision,
    )
    typer.echo(str(np.float32(best.value)))  # the shortest text that reads back the same
    typer.echo(
        f"precision {best.precision:.3f} [{best.low:.3f}, {best.high:.3f}], recall "
        f"{best.recall:.3f}: {best.reached:,} of {best.rows:,} rows reach it, and "
        f"{best.positives:,} have a label of {positive:g} or more",
        err=True,
    )
