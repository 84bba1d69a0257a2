"""``condsim threshold``: the score from which pairs count as the same."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.options import Model
from condsim.data.files import read_batches
from condsim.errors import InputError
from condsim.evaluation.threshold import find_threshold
from condsim.loading import load_scorer

_COLUMNS = ("sentence1", "sentence2", "condition", "label")
# The label of C-STS where the condition does not apply.
_INVALID = -1


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
    # Also checked with the scores, but that is after all rows were scored.
    if not 0 < precision < 1:
        raise InputError(f"--precision must be above 0 and below 1; got {precision}.")
    scorer = load_scorer(model)
    scores, labels = array("f"), array("f")
    for batch in read_batches(labelled, columns=_COLUMNS):
        batch_labels = [row.score("label", label_range=(_INVALID, 5)) for row in batch.rows]
        applies = [index for index, label in enumerate(batch_labels) if label != _INVALID]
        valid = batch.take(applies)
        labels.extend(row.score("label", label_range=(0, 5)) for row in valid.rows)
        scores.extend(
            scorer.score(
                valid.texts("sentence1"), valid.texts("sentence2"), valid.texts("condition")
            )
        )
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
    # The text of a float32 is the shortest one that reads back as the same number.
    typer.echo(str(np.float32(best.value)))
    typer.echo(
        f"precision {best.precision:.3f} [{best.low:.3f}, {best.high:.3f}], recall "
        f"{best.recall:.3f}: {best.reached:,} of {best.rows:,} rows reach it, and "
        f"{best.positives:,} have a label of {positive:g} or more",
        err=True,
    )
