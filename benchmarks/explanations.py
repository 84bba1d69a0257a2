"""``python -m benchmarks.explanations``: whether the words that an explanation names matter.

Two measures of ERASER (DeYoung et al. 2020), over pairs and conditions of a labeled file, for
`explain`, leaving out one word at a time, and random words. The top words are those that push the
score the way in which all words of the text push it together, away from a text that says nothing.

- **comprehensiveness**: how far the score goes back when the top words of one text are removed;
- **sufficiency**: how far it goes back when nothing but the top words is left (low is good).

And how much of an explanation falls to phrases that have nothing to do with the condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from papers.pages import pipe_table

from condsim.cli.process import run_app
from condsim.data.csts import load_csts
from condsim.evaluation.statistics import bootstrap, percentile_interval
from condsim.io import write_text
from condsim.model.base import SAMPLES
from condsim.model.explanation import Occlusion
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.types import BoolArray, Float64Array, FloatArray, IntArray, Scorer, Task

RANDOM = "random words"
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "explanations.md"

# Share of the words of a text, rounded up.
_SHARES = (0.1, 0.2, 0.3, 0.5)
_RANDOM_DRAWS = 5
_RESAMPLES = 1000

IRRELEVANT = (
    "by the way, on a Tuesday",
    "as far as I know",
    "or so the report says",
    "if I remember it rightly",
    "according to page seven",
)
"""Phrases that say nothing on a picture; conditions on time and numbers are left out."""
_RELEVANT = ("day", "time", "date", "when", "number", "how many", "amount", "text", "page")


@dataclass(frozen=True)
class Side:
    """One text of a pair, whose words are explained given the other text."""

    scorer: Scorer
    text: str
    other: str
    condition: str
    seed: int

    @cached_property
    def occlusion(self) -> Occlusion:
        """The text with as many subsets as `explain` takes."""
        return Occlusion(self.text, samples=SAMPLES, seed=self.seed)

    @property
    def size(self) -> int:
        """Number of words."""
        return len(self.occlusion.spans)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Scores of no word and of all."""
        none, whole = self.score([np.zeros(self.size, bool), np.ones(self.size, bool)])
        return float(none), float(whole)

    def score(self, subsets: Sequence[BoolArray]) -> Float64Array:
        """Score the text with each of some subsets of its words."""
        texts = [self.occlusion.keeping(subset) for subset in subsets]
        return self.score_texts(texts).astype(np.float64)

    def score_texts(self, texts: Sequence[str]) -> FloatArray:
        """Score texts in place of this one."""
        others, conditions = [self.other] * len(texts), [self.condition] * len(texts)
        return self.scorer.score(texts, others, conditions)


def shapley(side: Side) -> Float64Array:
    """Shapley values by least squares, as `explain` computes them."""
    return side.occlusion.shares(side.score_texts(side.occlusion.texts))


def leave_one_out(side: Side) -> Float64Array:
    """Loss of score without each word; the rest of the sum is not attributed."""
    return side.ends[1] - side.score(list(~np.eye(side.size, dtype=bool)))


METHODS: Mapping[str, Callable[[Side], Float64Array]] = {
    "Shapley values (`explain`)": shapley,
    "leave one out": leave_one_out,
}


def moved(side: Side, contributions: Sequence[Float64Array]) -> Float64Array:
    """Comprehensiveness and sufficiency, mean over the shares: (2, methods)."""
    none, whole = side.ends
    way = 1.0 if whole >= none else -1.0
    subsets = []
    for values in contributions:
        order = np.argsort(-way * values, kind="stable")
        for share in _SHARES:
            top = np.isin(np.arange(side.size), order[: math.ceil(share * side.size)])
            subsets += [~top, top]
    lost = way * (whole - side.score(subsets)).reshape(len(contributions), len(_SHARES), 2)
    mean: Float64Array = lost.mean(axis=1).T
    return mean


def measure(scorer: Scorer, task: Task, *, seed: int) -> Float64Array:
    """Measure random words and each method on the rows of a task: (rows, 2, 1 + methods)."""
    table = []
    for row, condition in enumerate(task.conditions or ()):
        texts = (task.sentences1[row], task.sentences2[row])
        both = []
        for text, other in (texts, texts[::-1]):
            side = Side(scorer, text, other, condition, seed)
            generator = np.random.default_rng([seed, row])
            shares = [generator.random(side.size) for _ in range(_RANDOM_DRAWS)]
            shares += [method(side) for method in METHODS.values()]
            figures = moved(side, shares)
            random = figures[:, :_RANDOM_DRAWS].mean(axis=1)
            both.append(np.column_stack([random, figures[:, _RANDOM_DRAWS:]]))
        table.append(np.mean(both, axis=0))
    return np.array(table)


def irrelevant(scorer: Scorer, task: Task, *, seed: int) -> Float64Array:
    """Share of a word of an added phrase, relative to the mean word of its text.

    Returns:
        By method, a ratio of means of absolute contributions for each row, (rows, methods); NaN
        where the condition may be about the phrases.
    """
    ratios = np.full((len(task), len(METHODS)), np.nan)
    for row, condition in enumerate(task.conditions or ()):
        if any(word in condition.lower() for word in _RELEVANT):
            continue
        phrase = IRRELEVANT[row % len(IRRELEVANT)]
        text = task.sentences1[row].rstrip().rstrip(".")
        side = Side(scorer, f"{text}, {phrase}.", task.sentences2[row], condition, seed)
        added = np.array([start > len(text) for start, _ in side.occlusion.spans])
        for column, method in enumerate(METHODS.values()):
            strength = abs(method(side))
            ratios[row, column] = strength[added].mean() / strength.mean()
    return ratios


def report(task: Task, table: Float64Array, ratios: Float64Array, *, seed: int) -> str:
    """Lay the figures out as a page."""
    pairs = list(zip(task.sentences1, task.sentences2, strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    clusters = np.array([numbers[pair] for pair in pairs])
    rows = []
    for column, name in enumerate([RANDOM, *METHODS]):
        cells = [name]
        for kind in (0, 1):
            figures = table[:, kind, column]
            gain = figures - table[:, kind, 0]
            cells.append(_figure(figures, clusters, seed=seed))
            cells.append(_figure(gain, clusters, seed=seed, sign="+") if column else "-")
        cells.append(_figure(ratios[:, column - 1], clusters, seed=seed) if column else "-")
        rows.append(cells)
    heads = "method,comprehensiveness,over random,sufficiency,over random,irrelevant"
    lines = [
        "# Explanations",
        "",
        f"{len(task)} rows, {len(numbers)} pairs, {SAMPLES} subsets of each text. Mean over "
        f"{', '.join(f'{share:.0%}' for share in _SHARES)} of the words, with 95 % intervals over "
        "pairs. Irrelevant: what a word of an added phrase gets, relative to the mean word. Made "
        "by `python -m benchmarks.explanations`.",
        "",
        *pipe_table(heads.split(","), rows),
    ]
    return "\n".join(lines) + "\n"


def _figure(values: Float64Array, clusters: IntArray, *, seed: int, sign: str = "") -> str:
    present = ~np.isnan(values)
    values, clusters = values[present], clusters[present]
    if not values.size:
        return "-"
    samples = bootstrap(
        lambda weights: weights @ values / weights.sum(axis=-1),
        clusters,
        resamples=_RESAMPLES,
        seed=seed,
    )
    low, high = percentile_interval(float(values.mean()), samples)
    return f"{values.mean():{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Labeled C-STS file; never a test file.")],
    model: Annotated[
        Path, typer.Option(help="Exported model folder.", show_default="the default model")
    ] = DEFAULT_FOLDER,
    rows: Annotated[int, typer.Option(min=2, help="Rows drawn of the file.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the drawn rows and words.")] = 0,
    output: Annotated[Path, typer.Option(help="Markdown page to write.")] = PAGE,
) -> None:
    """Measure whether the words that an explanation names matter."""
    scorer = OnnxScorer(model)
    task = load_csts(data, require_labels=True).labeled()
    chosen = np.random.default_rng(seed).permutation(len(task))[:rows]
    task = task.take(np.sort(chosen))
    table, ratios = measure(scorer, task, seed=seed), irrelevant(scorer, task, seed=seed)
    write_text(output, report(task, table, ratios, seed=seed))
    typer.echo(str(output))


if __name__ == "__main__":
    run_app(app)
