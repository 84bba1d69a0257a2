"""``python -m benchmarks.learn_pairs``: what labeled pairs teach, next to the library dedupe.

Titles of products are the same product or not (walmart_amazon). A criterion is learned from pairs
drawn at random, or from the pairs that dedupe's active learner asked for; dedupe learns from its
own. All rank the same other pairs.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from sklearn.metrics import average_precision_score

from condsim.cli.process import run_app
from condsim.io import replacing, write_text
from condsim.loading import load_encoder
from condsim.model.criterion import features, under_condition
from condsim.model.embedding import EmbeddingScorer
from condsim.model.learned_figures import area_under_curve
from condsim.model.learned_pairs import learn_pairs
from condsim.types import FloatArray

CRITERION = "the product"
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "learning-pairs.md"

_POOL = 400
_TESTED = 600


class LabeledPair(NamedTuple):
    """Two titles, and whether they are the same product."""

    first: str
    second: str
    same: bool


class Known:
    """A model whose vectors are known already."""

    def __init__(self, model: EmbeddingScorer, vectors: dict[str, FloatArray]) -> None:
        self.name, self._model, self._vectors = model.name, model, vectors

    def encode(
        self, sentences: Iterable[str], condition: str | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Look vectors up, and encode the rest."""
        sentences = list(sentences)
        if all(text in self._vectors for text in sentences):
            return np.stack([self._vectors[text] for text in sentences])
        return self._model.encode(sentences, condition, overall=overall)


def read_pairs(file: Path, number: int) -> list[LabeledPair]:
    """Draw pairs, as many of the same product as of different ones where there are enough."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    pairs = [
        LabeledPair(row["text1"], row["text2"], bool(row["labels"][CRITERION])) for row in rows
    ]
    order = np.random.default_rng(0).permutation(len(pairs))
    same = [pairs[row] for row in order if pairs[row].same][: number // 4]
    different = [pairs[row] for row in order if not pairs[row].same]
    return same + different[: number - len(same)]


def vectors_of(texts: list[str], model: EmbeddingScorer, done: Path) -> dict[str, FloatArray]:
    """Encode texts once."""
    if not done.is_file():
        with replacing(done) as partial, partial.open("wb") as stream:
            np.save(stream, features(model, texts, CRITERION))
    return dict(zip(texts, np.load(done), strict=True))


def ask_dedupe(
    python: Path, pool: list[LabeledPair], tested: list[LabeledPair], labels: list[int], seed: int
) -> dict[str, dict[str, list[float]]]:
    """Let dedupe choose and learn in another environment."""
    request = {
        "pool": [(pair.first, pair.second) for pair in pool],
        "same": [pair.same for pair in pool],
        "tested": [(pair.first, pair.second) for pair in tested],
        "labels": labels,
        "seed": seed,
    }
    answer = subprocess.run(
        [python, Path(__file__).with_name("peers") / "dedupe_pairs.py"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report: dict[str, dict[str, list[float]]] = json.loads(answer.stdout.splitlines()[-1])
    return report


def measure(
    model: Known, chosen: list[LabeledPair], tested: list[LabeledPair]
) -> tuple[float, float, float]:
    """Learn from the chosen pairs: AUC and average precision on others, and processor seconds."""
    began = time.process_time()
    first, second, same = zip(*chosen, strict=True)
    criterion = learn_pairs(model, first, second, same, condition=CRITERION)
    seconds = time.process_time() - began
    return *_ranked(model, tested, criterion.embed), seconds


def _ranked(
    model: Known, tested: list[LabeledPair], embed: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    texts = ([pair.first for pair in tested], [pair.second for pair in tested])
    sides = [embed(model.encode(side)) for side in texts]
    return figures((sides[0] * sides[1]).sum(axis=1), tested)


def figures(scores: FloatArray, tested: list[LabeledPair]) -> tuple[float, float]:
    """Compute AUC and average precision, times 100."""
    same = np.array([pair.same for pair in tested])
    area = area_under_curve(scores, same)
    return 100 * area, 100 * float(average_precision_score(same, scores))


def lines(
    model: Known,
    pool: list[LabeledPair],
    tested: list[LabeledPair],
    python: Path,
    labels: list[int],
    draws: int,
) -> Iterator[str]:
    """Yield the rows of the table."""
    area, precision = _ranked(model, tested, under_condition)
    yield f"| none | condition alone | {area:.1f} | {precision:.1f} | |"
    answers = [ask_dedupe(python, pool, tested, labels, seed) for seed in range(draws)]
    for number in labels:
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed, answer in enumerate(answers):
            theirs = answer[str(number)]
            order = np.random.default_rng(seed).permutation(len(pool))[:number]
            found.setdefault("learn_pairs, pairs at random", []).append(
                measure(model, [pool[row] for row in order], tested)
            )
            found.setdefault("learn_pairs, pairs that dedupe asked for", []).append(
                measure(model, [pool[int(row)] for row in theirs["asked"]], tested)
            )
            chances = np.array(theirs["probabilities"], np.float32)
            found.setdefault("dedupe, active learning", []).append(figures(chances, tested))
        for name, values in found.items():
            means = [f"{np.mean(column):.1f}" for column in zip(*values, strict=True)]
            yield f"| {number} | {name} | {' | '.join([*means, ''][:3])} |"


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets of criteria.")],
    dedupe: Annotated[Path, typer.Option(help="Python of an environment that has dedupe.")],
    labels: Annotated[list[int] | None, typer.Option(help="Numbers of labels. Repeatable.")] = None,
    draws: Annotated[int, typer.Option(min=1)] = 3,
    runs: Annotated[Path, typer.Option(help="Folder of what is done.")] = Path("runs/learn-curve"),
    output: Path = PAGE,
) -> None:
    """Measure what labeled pairs teach."""
    runs.mkdir(parents=True, exist_ok=True)
    model = load_encoder(None)
    folder = data / "walmart_amazon"
    pool = read_pairs(folder / "train.jsonl.gz", _POOL)
    tested = read_pairs(folder / "test.jsonl.gz", _TESTED)
    pairs = [*pool, *tested]
    texts = sorted({pair.first for pair in pairs} | {pair.second for pair in pairs})
    known = Known(model, vectors_of(texts, model, runs / "walmart_amazon.npy"))
    rows = lines(known, pool, tested, dedupe, labels or [25, 50, 100, 200], draws)
    write_text(output, PAGE_TEXT.format(pool=_POOL, tested=_TESTED) + "\n".join(rows) + "\n")


PAGE_TEXT = """# Learning from labeled pairs

Written by `python -m benchmarks.learn_pairs --data ../shared/data/criteria --dedupe PYTHON`: titles
of `walmart_amazon`, "the product". A pool of {pool} pairs to label, {tested} other pairs to rank; a
quarter of each is the same. AUC and average precision, times 100; processor seconds of learning.
dedupe 3.0.3 compares one column, as String and as Text, and chooses by its rule among the pairs of
the pool. Other pairs of this set trained the default model, which flatters the condition. Where
`learn_pairs` finds no gain, it falls back to the condition alone.

| labels | method | AUC | average precision | seconds |
|---:|---|---:|---:|---:|
"""


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
