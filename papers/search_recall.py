"""Recall of a search in two stages: recall against the bi-encoder over everything.

For each set of texts and condition, some texts are queries. The best ten and hundred by the model
under the condition, over all texts, are what a search should find. Compared are the two stages and
the first stage alone, which is a search by plain vectors. Run it as
``python -m papers.search_recall``.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.process import run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.errors import InputError
from condsim.io import write_text
from condsim.loading import load_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.search.index import Index

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PAGE = Path(__file__).resolve().parent / "docs" / "results" / "search.md"
CAPTION_CONDITIONS = ("the activity", "the place", "the people", "the clothes", "the animals")

_DEPTHS = (10, 100)

app = typer.Typer(pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Recall:
    """Recall on one set under one condition.

    Attributes:
        name: The set.
        condition: The condition.
        texts: How many texts were searched.
        queries: How many queries were asked.
        rescore: How many texts the second stage scored.
        two_stages: Recall of the two stages, by depth.
        plain: Recall of plain vectors with as many texts scored, by depth.
        unscored: Recall of plain vectors alone, by depth.
    """

    name: str
    condition: str
    texts: int
    queries: int
    rescore: int
    two_stages: dict[int, float]
    plain: dict[int, float]
    unscored: dict[int, float]


def captions(file: Path, count: int) -> list[str]:
    """Draw distinct captions of Flickr30k."""
    if not file.is_file():
        raise InputError(f"{file} is missing; give the folder of the data with --data.")
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        next(stream)
        texts = sorted({line.rstrip("\n").split("\t")[-1].strip() for line in stream})
    random.Random(0).shuffle(texts)
    return texts[:count]


def criteria_sets(folder: Path, count: int) -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, texts and criteria of each set of labelled texts."""
    for file in sorted(folder.glob("*/train.jsonl.gz")):
        texts: dict[str, None] = {}
        criteria: dict[str, None] = {}
        for row in iter_criteria(file):
            if isinstance(row, CriteriaText):
                texts[row.text] = None
                criteria |= dict.fromkeys(row.attributes)
            if len(texts) == count:
                break
        if len(texts) < _DEPTHS[-1] * 2:
            continue
        yield file.parent.name, list(texts), list(criteria)


def recall(
    name: str,
    texts: Sequence[str],
    condition: str,
    scorer: EmbeddingScorer,
    index: Index,
    *,
    queries: int,
    rescore: int,
) -> Recall:
    """Compare the searches on one set under one condition."""
    under = scorer.encode(texts, condition)  # (n, d)
    plain = scorer.encode(texts)
    drawn = random.Random(1).sample(range(len(texts)), min(queries, len(texts)))
    found: dict[str, dict[int, list[float]]] = {
        side: {depth: [] for depth in _DEPTHS} for side in ("two_stages", "plain", "unscored")
    }
    for query in drawn:
        best = np.argsort(-(under @ under[query]), kind="stable")
        near = np.argsort(-(plain @ plain[query]), kind="stable")
        hits = index.search(texts[query], condition, top=_DEPTHS[-1], rescore=rescore, overall=0)
        two = np.array([int(hit.key) - 1 for hit in hits])
        chosen = near[:rescore]
        scored = chosen[np.argsort(-(under[chosen] @ under[query]), kind="stable")]
        for side, order in (("two_stages", two), ("plain", scored), ("unscored", near)):
            for depth in _DEPTHS:
                share = len(np.intersect1d(best[:depth], order[:depth])) / min(depth, len(texts))
                found[side][depth].append(share)
    means = {
        side: {depth: float(np.mean(values)) for depth, values in by.items()}
        for side, by in found.items()
    }
    return Recall(name, condition, len(texts), len(drawn), rescore, **means)


@app.command()
def run(
    output: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
    data: Annotated[Path, typer.Option(help="Folder with captions/ and criteria/.")] = DATA,
    texts: Annotated[int, typer.Option(min=200, help="Most texts of a set.")] = 50_000,
    queries: Annotated[int, typer.Option(min=1, help="Queries of a set and condition.")] = 200,
    rescore: Annotated[int, typer.Option(min=1, help="Texts scored in the second stage.")] = 200,
    conditions: Annotated[int, typer.Option(min=1, help="Most conditions of a set.")] = 5,
    only: Annotated[list[str] | None, typer.Option(help="Set to measure. Repeatable.")] = None,
    model: Annotated[str | None, typer.Option(help="Model folder.", show_default=False)] = None,
) -> None:
    """Measure the recall of searches in two stages, on captions and on labelled texts."""
    scorer = load_scorer(model)
    if not isinstance(scorer, EmbeddingScorer):
        raise InputError(f"{scorer.name} gives scores only; give a bi-encoder.")
    drawn = captions(data / "captions" / "flickr30k_multi30k.tsv.gz", texts)
    results: list[Recall] = []
    sets = chain(
        [("captions", drawn, list(CAPTION_CONDITIONS))], criteria_sets(data / "criteria", texts)
    )
    for name, found, criteria in sets:
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="condsim-recall-") as folder:
            index = Index.build([{"text": text} for text in found], folder, model=model)
            for condition in criteria[:conditions]:
                result = recall(
                    name, found, condition, scorer, index, queries=queries, rescore=rescore
                )
                results.append(result)
                typer.echo(_row(result))
                write_text(output, _page(results))


def _row(result: Recall) -> str:
    sides = (result.two_stages, result.plain, result.unscored)
    shares = (f"{100 * side[depth]:.1f}" for depth in _DEPTHS for side in sides)
    return f"| {result.name}, {result.condition} | {result.texts:,} | {' | '.join(shares)} |"


def _page(results: Sequence[Recall]) -> str:
    rows = [_row(one) for one in results]
    for what, chosen in (
        ("captions", [one for one in results if one.name == "captions"]),
        ("other sets", [one for one in results if one.name != "captions"]),
    ):
        if chosen:
            two, plain, unscored = (
                {d: float(np.mean([getattr(one, side)[d] for one in chosen])) for d in _DEPTHS}
                for side in ("two_stages", "plain", "unscored")
            )
            mean = replace(
                chosen[0],
                name=f"**mean of {len(chosen)}, {what}**",
                two_stages=two,
                plain=plain,
                unscored=unscored,
            )
            rows.append(_row(mean).replace(f", {chosen[0].condition} | {mean.texts:,}", " | "))
    first = results[0]
    return PAGE_TEXT.format(queries=first.queries, rescore=first.rescore, rows="\n".join(rows))


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
ten differ by rounding, and recall says little. `python -m papers.search_recall` makes this
page.
"""


if __name__ == "__main__":
    run_app(app)
