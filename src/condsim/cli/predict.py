"""``condsim predict``: the JSON of scores that the C-STS test server takes."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from condsim.cli.options import Model
from condsim.cli.process import print_note
from condsim.data.files import ROWS_PER_BATCH
from condsim.data.load import iter_conditional
from condsim.errors import ModelError
from condsim.io import replacing
from condsim.loading import load_scorer

if TYPE_CHECKING:
    from condsim.data.csts import CstsRow
    from condsim.types import FloatArray, Scorer


def predict(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File with sentence1, sentence2, condition; or written pairs (.txt).",
        ),
    ],
    output: Annotated[Path, typer.Option(help="JSON file to write.")],
    model: Model = None,
    scale: Annotated[
        Literal["unit", "likert"],
        typer.Option(help="unit: similarity from 0 to 1. likert: from 1 to 5."),
    ] = "unit",
) -> None:
    """Write the scores of a file in the format of the C-STS test server.

    Writes one JSON object with an entry for every row, labelled or not: `{"0": 0.51, "1": 0.08,
    ...}`. The key is the number of the row, from 0.

    **Examples**

    `condsim predict csts_test.csv --output predictions.json`

    `condsim predict dev.csv --model runs/new --output dev.json --scale likert`
    """
    with replacing(output) as partial, partial.open("w", encoding="utf-8") as stream:
        rows = iter_conditional(data, labels=False)
        # The first row reports a bad file before the model is loaded.
        rows = chain([next(rows)], rows)
        scorer = load_scorer(model)
        written = 0
        while batch := list(islice(rows, ROWS_PER_BATCH)):
            location = f"rows {written + 1} to {written + len(batch)} of {data}"
            scores = _finite_scores(batch, scorer, location)
            for score in 1 + 4 * scores if scale == "likert" else scores:
                stream.write(f'{"," if written else "{"}\n"{written}": {score}')
                written += 1
        stream.write("\n}\n")
    print_note(f"{output}: {written} scores by {scorer.name}")


def _finite_scores(batch: list[CstsRow], scorer: Scorer, location: str) -> FloatArray:
    """Score rows as finite float32, ``(rows,)``; reject scores of a damaged model."""
    sentences1, sentences2, conditions, _ = zip(*batch, strict=True)
    scores = np.asarray(scorer.score(sentences1, sentences2, conditions), dtype=np.float32)
    if scores.shape != (len(batch),) or not np.isfinite(scores).all():
        raise ModelError(
            f"{scorer.name} must give every row one finite score; for {location} it gave the shape "
            f"{scores.shape} with {int((~np.isfinite(scores)).sum())} that are not finite."
        )
    return scores
