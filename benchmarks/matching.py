"""``python -m benchmarks.matching``: matches of two shops, nearest and threshold or that alone.

The offers of Walmart and Amazon under "the product": labeled pairs of the dev part. Every
rule has its threshold with the best F1.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.process import run_app
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.base import COLLECTION_SHARE
from condsim.search.match import find_matches
from condsim.search.vectors import cosine_scores
from condsim.types import BoolArray, FloatArray

FILE = Path(__file__).resolve().parents[2] / "shared/data/criteria/walmart_amazon/dev.jsonl.gz"
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "matching.md"
CONDITION = "the product"
RULES = ("threshold alone", "nearest, threshold", "one to one, threshold")

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    output: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
    data: Annotated[Path, typer.Option(help="Pairs with labels of the product.")] = FILE,
    model: Annotated[str | None, typer.Option(help="Model folder.", show_default=False)] = None,
) -> None:
    """Measure precision and recall of three rules, with and without the condition."""
    scorer = load_encoder(model)
    with gzip.open(data, "rt", encoding="utf-8") as stream:
        pairs = [row for row in map(json.loads, stream) if CONDITION in row["labels"]]
    sides = [list(dict.fromkeys(row[f"text{side}"] for row in pairs)) for side in (1, 2)]
    same = {(row["text1"], row["text2"]) for row in pairs if row["labels"][CONDITION] > 0.5}
    judged = {(row["text1"], row["text2"]) for row in pairs}
    rows = []
    for condition in (CONDITION, None):
        share = COLLECTION_SHARE if condition else 0.0
        vectors = [scorer.encode(side, condition, overall=share) for side in sides]
        scores = cosine_scores(scorer, vectors[0] @ vectors[1].T)
        places = [{text: place for place, text in enumerate(side)} for side in sides]
        proposed = {RULES[0]: np.ones(scores.shape, np.bool_)}
        for rule, one_to_many in zip(RULES[1:], (True, False), strict=True):
            matches = find_matches(sides[0], sides[1], scorer, condition, one_to_many=one_to_many)
            proposed[rule] = np.zeros(scores.shape, np.bool_)
            proposed[rule][matches.rows1, matches.rows2] = True
        masks = []
        for texts in (same, judged):
            mask = np.zeros(scores.shape, np.bool_)
            index = [(places[0][first], places[1][second]) for first, second in texts]
            mask[tuple(np.array(index).T)] = True
            masks.append(mask)
        for rule, chosen in proposed.items():
            rows.append(_row(condition or "none", rule, scores, chosen, *masks))
            typer.echo(rows[-1])
    first, second = map(len, sides)
    counts = {"first": first, "second": second, "pairs": len(pairs), "same": len(same)}
    write_text(output, PAGE_TEXT.format(**counts, rows="\n".join(rows)))


def _row(
    condition: str,
    rule: str,
    scores: FloatArray,
    proposed: BoolArray,
    same: BoolArray,
    judged: BoolArray,
) -> str:
    """Return the figures of a rule at the threshold with the best F1 on the labeled pairs."""
    rows = []
    for step in range(100):
        reached = proposed & (scores >= step / 100)
        right, labeled = int((reached & same).sum()), int((reached & judged).sum())
        f1 = 2 * right / (labeled + int(same.sum()))
        lower = right / max(1, int(reached.sum()))
        rows.append((f1, step / 100, right / max(1, labeled), right / int(same.sum()), lower))
    f1, threshold, precision, recall, lower = max(rows)
    cells = " | ".join(f"{100 * value:.1f}" for value in (precision, recall, f1, lower))
    return f"| {condition} | {rule} | {threshold:.2f} | {cells} |"


PAGE_TEXT = """# Matching

Offers of two shops: {first:,} and {second:,} titles of the dev part of Walmart and Amazon, compared
with respect to "the product" (share 0.3) or without a condition. Of all pairs, {pairs:,} are
labeled and {same:,} are the same product. Each rule has its threshold, in steps of 0.01, with the
best F1 on the labeled pairs; the last column is its precision if every pair without a label is
counted as different, a lower bound.

| condition | rule | threshold | precision | recall | F1 | precision over all pairs |
|---|---|---:|---:|---:|---:|---:|
{rows}

`python -m benchmarks.matching` makes this page.
"""


if __name__ == "__main__":
    run_app(app)
