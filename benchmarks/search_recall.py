"""``python -m benchmarks.search_recall``: recall of a search in two stages.

For each set of texts and condition, some texts are queries. The best ten and hundred by the model
under the condition, over all texts, are what a search should find. Compared are the two stages, a
search by plain vectors that scores as many texts, and one that scores none.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.process import run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.embedding import EmbeddingScorer
from condsim.search.index import Index
from condsim.types import Float64Array

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "search.md"
CAPTIONS = "captions"
CAPTION_CONDITIONS = ("the activity", "the place", "the people", "the clothes", "the animals")
DEPTHS = (10, 100)

TextSet = tuple[str, list[str], list[str]]
"""Name, texts and conditions."""

app = typer.Typer(pretty_exceptions_enable=False)


def text_sets(data: Path, most: int) -> Iterator[TextSet]:
    """Captions of Flickr30k, and the texts and criteria of each set of labeled texts."""
    path = data / "captions" / "flickr30k_multi30k.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        next(stream)
        captions = sorted({line.rstrip("\n").split("\t")[-1].strip() for line in stream})
    random.Random(0).shuffle(captions)
    yield CAPTIONS, captions[:most], list(CAPTION_CONDITIONS)
    for file in sorted((data / "criteria").glob("*/train.jsonl.gz")):
        rows = [row for row in iter_criteria(file) if isinstance(row, CriteriaText)]
        texts = list(dict.fromkeys(row.text for row in rows))[:most]
        criteria = dict.fromkeys(name for row in rows for name in row.attributes)
        if len(texts) >= 2 * DEPTHS[-1]:
            yield file.parent.name, texts, list(criteria)


def recall(
    texts: Sequence[str],
    condition: str,
    scorer: EmbeddingScorer,
    index: Index,
    *,
    queries: int,
    rescore: int,
) -> Float64Array:
    """Recall at each depth of two stages, plain vectors, and these alone: ``(depths, 3)``."""
    under, plain = scorer.encode(texts, condition), scorer.encode(texts)  # (n, d)
    shares = []
    for query in random.Random(1).sample(range(len(texts)), min(queries, len(texts))):
        best = np.argsort(-(under @ under[query]), kind="stable")
        near = np.argsort(-(plain @ plain[query]), kind="stable")
        hits = index.search(texts[query], condition, top=DEPTHS[-1], rescore=rescore, overall=0)
        two_stages = np.array([int(hit.key) - 1 for hit in hits])
        chosen = near[:rescore]
        scored = chosen[np.argsort(-(under[chosen] @ under[query]), kind="stable")]
        shares.append(
            [
                len(np.intersect1d(best[:depth], order[:depth])) / min(depth, len(texts))
                for depth in DEPTHS
                for order in (two_stages, scored, near)
            ]
        )
    means: Float64Array = np.mean(shares, axis=0).reshape(len(DEPTHS), 3)
    return means


@app.command()
def main(
    output: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
    data: Annotated[Path, typer.Option(help="Folder with captions/ and criteria/.")] = DATA,
    texts: Annotated[int, typer.Option(min=200, help="Most texts of a set.")] = 50_000,
    queries: Annotated[int, typer.Option(min=1, help="Queries of a set and condition.")] = 200,
    rescore: Annotated[int, typer.Option(min=1, help="Texts scored in the second stage.")] = 200,
    conditions: Annotated[int, typer.Option(min=1, help="Most conditions of a set.")] = 5,
    only: Annotated[list[str] | None, typer.Option(help="Set to measure. Repeatable.")] = None,
    model: Annotated[str | None, typer.Option(help="Model folder.", show_default=False)] = None,
) -> None:
    """Measure the recall of searches in two stages, on captions and on labeled texts."""
    scorer = load_encoder(model)
    rows: list[str] = []
    figures: dict[str, list[Float64Array]] = {CAPTIONS: [], "other sets": []}
    for name, members, criteria in text_sets(data, texts):
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="condsim-recall-") as folder:
            index = Index.build([{"text": text} for text in members], folder, model=model)
            for condition in criteria[:conditions]:
                shares = recall(members, condition, scorer, index, queries=queries, rescore=rescore)
                figures[CAPTIONS if name == CAPTIONS else "other sets"].append(shares)
                rows.append(_row(f"{name}, {condition}", f"{len(members):,}", shares))
                typer.echo(rows[-1])
    for kind, own in figures.items():
        if own:
            rows.append(_row(f"**mean of {len(own)}, {kind}**", "", np.mean(own, axis=0)))
    text = PAGE_TEXT.format(queries=queries, rescore=rescore, rows="\n".join(rows))
    write_text(output, text)


def _row(name: str, number: str, shares: Float64Array) -> str:
    return f"| {name} | {number} | {' | '.join(f'{100 * share:.1f}' for share in shares.ravel())} |"


PAGE_TEXT = """# Search

Of the best 10 and 100 texts that the model finds when it reads every text under the condition, how
many `index.search` finds, in %. At most {queries} texts of a set are queries, each of them among
the texts; {rescore} texts are scored in the second stage.

- **Two stages**: what `condsim search` does: a map learned from 1,024 texts under the condition,
  then four rounds of scoring, each of which says what to score next.
- **Plain**: stored vectors without a condition choose as many texts to score, without that map.
- **Plain alone**: stored vectors without a condition and no second stage.

| texts | number | @10: two stages | plain | plain alone | @100: two stages | plain | plain alone |
|---|---:|---:|---:|---:|---:|---:|---:|
{rows}

Where thousands of texts are alike in the respect, as in "whether it is family-friendly", the best
ten differ by rounding, and recall says little. `python -m benchmarks.search_recall` makes this
page.
"""


if __name__ == "__main__":
    run_app(app)
