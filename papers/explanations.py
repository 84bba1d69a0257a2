"""``python -m papers.explanations``: whether the words that an explanation names matter.

Two measures of ERASER (DeYoung et al. 2020), over pairs and conditions of a labelled file, for
`explain` and rivals with as many subsets. The top words are those that push the score the way in
which all words of the text push it together, away from a text that says nothing.

- **comprehensiveness**: how far the score goes back when the top words of one text are removed;
- **sufficiency**: how far it goes back when nothing but the top words is left (low is good).

And how much of an explanation falls to phrases that have nothing to do with the condition.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from condsim.cli.process import run_app
from condsim.data.csts import load_csts
from condsim.evaluation.statistics import bootstrap, percentile_interval
from condsim.io import write_text
from condsim.model.base import SAMPLES
from condsim.model.explanation import Occlusion
from condsim.model.onnx import MODEL_FILE, TOKENIZER_FILE, OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.types import BoolArray, Task
from papers.pages import pipe_table

SHIPS = "Shapley values, least squares"
"""The method of `explain`."""
RANDOM = "random words"

# Share of the words of a text, rounded up.
_SHARES = (0.1, 0.2, 0.3, 0.5)
# Number of draws of random words.
_DRAWS = 5
# The reference of the error has this many times as many subsets.
_MORE = 8
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

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One text of a pair, whose words are explained given the other text."""

    scorer: OnnxScorer
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

    def score(self, subsets: Sequence[BoolArray]) -> Floats:
        """Score the text with each of some subsets of its words."""
        texts = [self.occlusion.keeping(subset) for subset in subsets]
        return self.scorer.score(texts, self.other, self.condition).astype(np.float64)


def shapley(side: Side, *, times: int = 1) -> Floats:
    """Run `explain` with ``times`` as many subsets."""
    one = side.occlusion
    if times > 1:
        one = Occlusion(side.text, samples=times * SAMPLES, seed=side.seed + 1)
    return one.shares(side.scorer.score(one.texts, side.other, side.condition))


def permutations(side: Side) -> Floats:
    """Shapley values as means over random orders, each with its reverse."""
    size, generator = side.size, np.random.default_rng(side.seed)
    orders = [generator.permutation(size) for _ in range(max(1, SAMPLES // (2 * max(1, size - 1))))]
    orders += [order[::-1] for order in orders]
    ranks = [np.argsort(order) for order in orders]
    scores = side.score([rank < taken for rank in ranks for taken in range(size + 1)])
    steps = np.diff(scores.reshape(len(orders), size + 1), axis=1)  # (orders, size)
    found: Floats = np.mean([step[rank] for step, rank in zip(steps, ranks, strict=True)], axis=0)
    return found


def leave_one_out(side: Side) -> Floats:
    """Loss of score without each word; the rest of the sum is not attributed."""
    return side.ends[1] - side.score(list(~np.eye(side.size, dtype=bool)))


def one_alone(side: Side) -> Floats:
    """Gain of score by each word alone, over an empty text."""
    return side.score(list(np.eye(side.size, dtype=bool))) - side.ends[0]


class TokenVectors:
    """The cosine of mean-pooled embeddings, taken apart by tokens; the ONNX file is changed."""

    def __init__(self, scorer: OnnxScorer, folder: Path) -> None:
        """Open the model with the vectors of its tokens as output.

        Args:
            scorer: The same model.
            folder: The model folder.
        """
        import onnx
        import onnxruntime
        from tokenizers import Tokenizer

        model = onnx.load(folder / MODEL_FILE)
        last = next(n for n in reversed(model.graph.node) if n.op_type == "LayerNormalization")
        model.graph.output[0].name = last.output[0]
        del model.graph.output[0].type.tensor_type.shape.dim[:]
        model.graph.output[0].type.tensor_type.ClearField("shape")
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._first = scorer.order != "sentence-first"

    def __call__(self, side: Side) -> Floats:
        """Return the cosine's share of each word of the text; that of the condition is nobody's."""
        vectors, owner = self._read(side.text, side)
        others, _ = self._read(side.other, side)
        mean, other = vectors.mean(axis=0), others.mean(axis=0)
        shares = vectors @ other / (len(vectors) * np.linalg.norm(mean) * np.linalg.norm(other))
        found = np.zeros(side.size + 1)
        np.add.at(found, owner + 1, shares)
        return found[1:]

    def _read(self, text: str, side: Side) -> tuple[Floats, NDArray[np.int64]]:
        """Vectors of the tokens, and the word of ``side`` that each is of, or -1."""
        pair = (side.condition, text) if self._first else (text, side.condition)
        encoding = self._tokenizer.encode(*pair)
        names = {item.name for item in self._session.get_inputs()}
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([value]) for name, value in inputs.items() if name in names}
        vectors = self._session.run(None, feed)[0][0].astype(np.float64)
        owner = np.full(len(vectors), -1)
        for token, (place, (start, _)) in enumerate(
            zip(encoding.sequence_ids, encoding.offsets, strict=True)
        ):
            if place == int(self._first):
                for word, (first, stop) in enumerate(side.occlusion.spans):
                    if first <= start < stop:
                        owner[token] = word
        return vectors, owner


Method = Callable[[Side], Floats]


def moved(side: Side, contributions: Sequence[Floats]) -> Floats:
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
    found: Floats = lost.mean(axis=1).T
    return found


@dataclass(frozen=True)
class Measured:
    """Figures of each row by method: (rows,) each, mean of both sides."""

    comprehensiveness: dict[str, Floats]
    sufficiency: dict[str, Floats]
    seconds: dict[str, float]
    errors: dict[str, float]


def measure(
    scorer: OnnxScorer, task: Task, methods: Mapping[str, Method], *, seed: int, reference: int
) -> Measured:
    """Measure each method on the rows of a task; the error against Shapley on the first few."""
    figures: list[Floats] = []
    seconds = dict.fromkeys(methods, 0.0)
    errors: dict[str, list[float]] = {name: [] for name in methods}
    for row in range(len(task)):
        both = []
        for side in _sides(scorer, task, row, seed=seed):
            generator = np.random.default_rng([seed, row])
            shares = [generator.random(side.size) for _ in range(_DRAWS)]
            for name, method in methods.items():
                start = time.perf_counter()
                shares.append(method(side))
                seconds[name] += (time.perf_counter() - start) / len(task)
            if row < reference:
                exact = shapley(side, times=_MORE)
                for name, values in zip(methods, shares[_DRAWS:], strict=True):
                    factor = float(values @ exact) / max(float(values @ values), 1e-12)
                    gap = float(abs(factor * values - exact).sum())
                    errors[name].append(gap / max(float(abs(exact).sum()), 1e-12))
            found = moved(side, shares)
            both.append(np.column_stack([found[:, :_DRAWS].mean(axis=1), found[:, _DRAWS:]]))
        figures.append(np.mean(both, axis=0))
    table = np.array(figures)  # (rows, 2, 1 + methods)
    names = [RANDOM, *methods]
    comprehensiveness, sufficiency = (
        {name: table[:, kind, place] for place, name in enumerate(names)} for kind in (0, 1)
    )
    return Measured(
        comprehensiveness,
        sufficiency,
        seconds=seconds,
        errors={name: float(np.mean(values)) for name, values in errors.items() if values},
    )


def irrelevant(
    scorer: OnnxScorer, task: Task, methods: Mapping[str, Method], *, seed: int
) -> dict[str, Floats]:
    """Say what a word of an added phrase gets, relative to the mean word of its text.

    Returns:
        By method, a ratio of means of absolute contributions for each row, (rows,); NaN where the
        condition may be about the phrases.
    """
    found = {name: np.full(len(task), np.nan) for name in methods}
    for row, condition in enumerate(task.conditions or ()):
        if any(word in condition.lower() for word in _RELEVANT):
            continue
        phrase = IRRELEVANT[row % len(IRRELEVANT)]
        text = task.sentences1[row].rstrip().rstrip(".")
        side = Side(scorer, f"{text}, {phrase}.", task.sentences2[row], condition, seed)
        added = np.array([start > len(text) for start, _ in side.occlusion.spans])
        for name, method in methods.items():
            strength = abs(method(side))
            found[name][row] = strength[added].mean() / strength.mean()
    return found


def _sides(scorer: OnnxScorer, task: Task, row: int, *, seed: int) -> list[Side]:
    one, two = task.sentences1[row], task.sentences2[row]
    condition = (task.conditions or ())[row]
    return [Side(scorer, one, two, condition, seed), Side(scorer, two, one, condition, seed)]


def report(task: Task, found: Measured, ratios: Mapping[str, Floats], *, seed: int) -> str:
    """Lay the figures out as a page."""
    known = {pair: number for number, pair in enumerate(dict.fromkeys(_pairs(task)))}
    clusters = np.array([known[pair] for pair in _pairs(task)])
    rows = []
    for name in found.comprehensiveness:
        cells = [name]
        for figures in (found.comprehensiveness, found.sufficiency):
            cells.append(_figure(figures[name], clusters, seed=seed))
            gain = figures[name] - figures[RANDOM]
            cells.append("-" if name == RANDOM else _figure(gain, clusters, seed=seed, sign="+"))
        cells.append(_figure(ratios[name], clusters, seed=seed) if name in ratios else "-")
        cells.append(f"{found.errors[name]:.2f}" if name in found.errors else "-")
        cells.append(f"{found.seconds[name]:.2f}" if name in found.seconds else "-")
        rows.append(cells)
    heads = "method,comprehensiveness,over random,sufficiency,over random,irrelevant,error,seconds"
    lines = [
        "# Explanations",
        "",
        f"{len(task)} rows, {len(known)} pairs, {SAMPLES} subsets of each text. Mean over "
        f"{', '.join(f'{share:.0%}' for share in _SHARES)} of the words, with 95 % intervals over "
        "pairs. Irrelevant: what a word of an added phrase gets, relative to the mean word. Error: "
        f"against Shapley values of {_MORE * SAMPLES} subsets, after the best scaling, as a share.",
        "",
        *pipe_table(heads.split(","), rows),
        "",
    ]
    return "\n".join(lines)


def _pairs(task: Task) -> list[tuple[str, str]]:
    return list(zip(task.sentences1, task.sentences2, strict=True))


def _figure(values: Floats, clusters: NDArray[np.int64], *, seed: int, sign: str = "") -> str:
    there = ~np.isnan(values)
    values, clusters = values[there], clusters[there]
    if not values.size:
        return "-"
    drawn = bootstrap(
        lambda weights: weights @ values / weights.sum(axis=-1),
        clusters,
        resamples=_RESAMPLES,
        seed=seed,
    )
    low, high = percentile_interval(drawn)
    return f"{values.mean():{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Labelled C-STS file; never a test file.")],
    model: Annotated[
        Path, typer.Option(help="Exported model folder.", show_default="the default model")
    ] = DEFAULT_FOLDER,
    rows: Annotated[int, typer.Option(min=2, help="Rows drawn of the file.")] = 200,
    reference: Annotated[int, typer.Option(min=0, help="Rows on which errors are measured.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the drawn rows and words.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="Markdown page to write.", show_default="standard output")
    ] = None,
) -> None:
    """Measure whether the words that an explanation names matter."""
    scorer = OnnxScorer(model)
    task = load_csts(data, require_labels=True).labelled()
    drawn = np.random.default_rng(seed).permutation(len(task))[:rows]
    task = task.take(np.sort(drawn))
    methods: dict[str, Method] = {
        SHIPS: shapley,
        "Shapley values, permutations": permutations,
        "leave one out": leave_one_out,
        "one word alone": one_alone,
        "token vectors": TokenVectors(scorer, model),
    }
    found = measure(scorer, task, methods, seed=seed, reference=reference)
    page = report(task, found, irrelevant(scorer, task, methods, seed=seed), seed=seed)
    if output is None:
        typer.echo(page)
    else:
        write_text(output, page)


if __name__ == "__main__":
    run_app(app)
