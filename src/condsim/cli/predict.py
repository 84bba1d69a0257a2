"""``condsim predict``: the JSON of scores that the C-STS test server takes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.errors import ModelError

if TYPE_CHECKING:
    from condsim.types import FloatArray, Scorer

ROWS = 4096  # scored and written at once: what bounds the memory


class Scale(StrEnum):
    """The scale that scores are written on."""

    UNIT = "unit"
    LIKERT = "likert"


def predict(
    data: Annotated[
        Path,
        typer.Option(
            help="File to score: CSV, TSV or JSONL with sentence1, sentence2, condition.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option(help="JSON file to write.", show_default=False)],
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or Hub name.", show_default="the model that ships"),
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="unit: similarity from 0 to 1. likert: from 1 to 5.")
    ] = Scale.UNIT,
) -> None:
    """Write the scores of a file as the C-STS test server takes them.

    One JSON object with an entry for every row, labelled or not: `{"0": 0.51, "1": 0.08, ...}`.
    The key is the number of the row, from 0. Files of any size: rows are read, scored and written
    a few thousand at a time, and the output appears only when it is whole.

    **Examples**

    `condsim predict --data csts_test.csv --output predictions.json`

    `condsim predict --data dev.csv --model runs/new --output dev.json --scale likert`
    """
    from condsim.files import replacing
    from condsim.loading import load_scorer

    with replacing(output) as partial:
        scorer = load_scorer(model)
        rows = 0
        with partial.open("w", encoding="utf-8") as stream:
            for scores in _score_blocks(data, scorer):
                written = 1 + 4 * scores if scale is Scale.LIKERT else scores
                for score in written:
                    opening = "," if rows else "{"
                    stream.write(f'{opening}\n"{rows}": {score}')
                    rows += 1
            stream.write("\n}\n" if rows else "{}\n")
    typer.echo(f"{output}: {rows} scores by {scorer.name}", err=True)


def _score_blocks(data: Path, scorer: Scorer) -> Iterator[FloatArray]:
    """Scores a file, a block of rows at a time.

    Args:
        data: The file.
        scorer: What scores it.

    Yields:
        Scores of the next rows, float32 ``(rows,)``: their shortest text reads back the same.

    Raises:
        InputError: If the file breaks a rule.
        ModelError: If a score is not a finite number.
    """
    import numpy as np

    from condsim.tasks import iter_csts

    remaining, done = iter_csts(data, labels=False), 0
    while block := list(islice(remaining, ROWS)):
        scores = np.asarray(
            scorer.score(
                [row.sentence1 for row in block],
                [row.sentence2 for row in block],
                [row.condition for row in block],
            ),
            dtype=np.float32,
        )
        if scores.shape != (len(block),) or not np.isfinite(scores).all():
            raise ModelError(
                f"{scorer.name}: every row must get one finite score. Got the shape "
                f"{scores.shape} with {int((~np.isfinite(scores)).sum())} that are not finite for "
                f"rows {done + 1} to {done + len(block)} of {data}; the model is damaged."
            )
        done += len(block)
        yield scores
