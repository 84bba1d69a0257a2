"""``condsim predict``: the JSON of scores that the C-STS test server takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from typer import Argument, Option

from condsim.cli.files import Output
from condsim.cli.options import Model
from condsim.cli.pairs import PairsUnderOne, PairTexts, open_pairs
from condsim.cli.process import print_note
from condsim.data.batch import ROWS_PER_BATCH, BlankRows
from condsim.data.written import is_written, iter_written
from condsim.errors import ModelError
from condsim.io import replacing
from condsim.loading import load_scorer
from condsim.types import FloatArray, Scorer


def predict(
    data: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="File with sentence1, sentence2, condition; or written pairs (.txt).",
        ),
    ],
    pairs: PairsUnderOne,
    output: Annotated[Path, Option(help="JSON file to write."), Output(".json")],
    model: Model = None,
    scale: Annotated[
        Literal["unit", "likert"], Option(help="unit: similarity from 0 to 1. likert: from 1 to 5.")
    ] = "unit",
) -> None:
    """Write the scores of a file in the format of the C-STS test server.

    Writes one JSON object with an entry for every row, labeled or not: `{"0": 0.51, "1": 0.08,
    ...}`. The key is the number of the row, from 0; a row without text has the score null.

    **Examples**

    `condsim predict csts_test.csv --output predictions.json`

    `condsim predict dev.csv --model runs/new --output dev.json --scale likert`
    """
    blank = BlankRows(strict=pairs.strict)
    with replacing(output) as partial, partial.open("w", encoding="utf-8") as stream:
        batches = _batches(data, pairs, blank)
        # The first batch reports a bad file before the model is loaded.
        batches = chain([next(batches)], batches)
        scorer = load_scorer(model)
        written = 0
        for size, texts in batches:
            location = f"rows {written + 1} to {written + size} of {data}"
            scores: list[np.float32 | None] = [None] * size
            for row, score in zip(texts.rows, _finite_scores(texts, scorer, location), strict=True):
                scores[row] = 1 + 4 * score if scale == "likert" else score
            for value in scores:
                entry = "null" if value is None else str(value)
                stream.write(f'{"," if written else "{"}\n"{written}": {entry}')
                written += 1
        stream.write("\n}\n")
    print_note(blank.note("the score null"))
    print_note(f"{output}: {written - blank.count} scores by {scorer.name}")


def _batches(data: Path, pairs: PairsUnderOne, blank: BlankRows) -> Iterator[tuple[int, PairTexts]]:
    """Yield the number of rows of each batch, and the texts of those that have them."""
    if not is_written(data):
        columns, batches = open_pairs(data, pairs, size=ROWS_PER_BATCH, conditional=True)
        for batch in batches:
            yield len(batch), columns.read(batch, blank)
        return
    written = (
        (pair.sentence1, pair.sentence2, condition)
        for pair in iter_written(data)
        for condition in pair.labels
    )
    while part := list(islice(written, ROWS_PER_BATCH)):
        sentences1, sentences2, conditions = map(list, zip(*part, strict=True))
        yield len(part), PairTexts(np.arange(len(part)), sentences1, sentences2, conditions)


def _finite_scores(texts: PairTexts, scorer: Scorer, location: str) -> FloatArray:
    """Score m rows as finite float32, ``(m,)``; reject scores of a damaged model."""
    rows, sentences1, sentences2, conditions = texts
    if conditions is None or not len(rows):
        return np.empty(0, np.float32)
    scores = np.asarray(scorer.score(sentences1, sentences2, conditions), dtype=np.float32)
    if scores.shape != (len(rows),) or not np.isfinite(scores).all():
        raise ModelError(
            f"{scorer.name} must give every row one finite score; for {location} it gave the shape "
            f"{scores.shape} with {int((~np.isfinite(scores)).sum())} that are not finite."
        )
    return scores
