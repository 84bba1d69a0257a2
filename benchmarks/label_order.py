"""``python -m benchmarks.label_order``: how many labels a chosen order saves.

A session asks for the texts of each set of `learn_curve`, in the order of `next_text` and in random
orders, and the criterion is measured on other texts after each few labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.learn_curve import SETS, Known, Set, auc_of, f1_of, read_set
from benchmarks.learn_page import mean_of
from condsim.cli.process import run_app
from condsim.io import write_text
from condsim.labeling import LabelSession, next_text
from condsim.loading import load_encoder
from condsim.model.criterion import Criterion, under_condition
from condsim.model.embedding import EmbeddingScorer
from condsim.model.learned_figures import MIN_LABELS
from condsim.model.learned_values import learn
from condsim.model.minilm import MINILM, packaged_folder

PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "label-order.md"
MARKS = (10, 15, 20, 25, 30, 40, 50)

_TESTED = 100
_LEARN_EVERY = 2

Choose = Callable[[LabelSession], str | None]
Curve = dict[int, tuple[float, float]]
"""AUC and macro F1, times 100, by number of labels."""


def random_text(seed: int) -> Choose:
    """Make a chooser that draws texts at random, to compare with."""
    generator = np.random.default_rng(seed)

    def choose(session: LabelSession) -> str | None:
        rows = session.open_rows
        return session.texts[int(generator.choice(rows))] if len(rows) else None

    return choose


class Asked(LabelSession):
    """A session whose vectors are known, and which writes no file."""

    def __init__(self, data: Set, rows: Sequence[int], model: EmbeddingScorer) -> None:
        self.condition = data.criterion
        self.texts = [data.texts[row] for row in rows]
        self.row_of = {text: row for row, text in enumerate(self.texts)}
        self.answers = {}
        self.vectors = data.vectors["with"][list(rows)]
        self.criterion = None
        self._known = Known(model, data, conditional=True)

    def learned(self) -> Criterion | None:
        """Learn from the answers so far, if there are enough."""
        counts = Counter(self.labels.values())
        if len(self.labels) < MIN_LABELS or len(counts) < 2 or max(counts.values()) < 2:
            return None
        texts, values = list(self.labels), list(self.labels.values())
        self.criterion = learn(self._known, texts, values, condition=self.condition)
        return self.criterion


def curve(data: Set, model: EmbeddingScorer, choose: Choose, *, every: int) -> Curve:
    """Label texts in an order, and measure on other texts at each mark."""
    rows = np.random.default_rng(0).permutation(len(data.texts))
    test, pool = rows[-_TESTED:], rows[:-_TESTED]
    gold, vectors = np.array(data.values), data.vectors["with"][test]
    session, found = Asked(data, pool.tolist(), model), {}
    value_of = dict(zip(data.texts, data.values, strict=True))
    for number in range(1, MARKS[-1] + 1):
        text = choose(session)
        if text is None:
            break
        session.answers[text] = (value_of[text], "")
        if number not in MARKS and (not every or number % every):
            continue
        criterion = session.learned()
        if number not in MARKS:
            continue
        if criterion is None:
            found[number] = (auc_of(under_condition(vectors), gold[test]), 0.0)
            continue
        likeliest = np.array(criterion.values)[criterion.probabilities(vectors).argmax(axis=1)]
        found[number] = (auc_of(criterion.embed(vectors), gold[test]), f1_of(gold[test], likeliest))
    return found


def needed(chosen: Sequence[float], figure: float) -> str:
    """Find how many labels the chosen order needs for a figure, between its marks."""
    for place, value in enumerate(chosen):
        if value >= figure:
            if place == 0:
                return f"{MARKS[0]} or fewer"
            below, span = chosen[place - 1], MARKS[place] - MARKS[place - 1]
            return f"{MARKS[place - 1] + span * (figure - below) / (value - below):.0f}"
    return f"over {MARKS[-1]}"


def page(chosen: list[Curve], drawn: list[list[Curve]]) -> str:
    """Write the page: means over sets, and the labels that are needed for the same figure."""
    lines = [PAGE_TEXT.format(sets=len(chosen), draws=len(drawn[0]), tested=_TESTED)]
    for place, name in ((0, "AUC of pairs"), (1, "macro F1 of assigned values")):
        means = [float(np.mean([one[mark][place] for one in chosen])) for mark in MARKS]
        lines += [
            f"\n## {name}\n",
            "| labels | random order | chosen order | gain | labels needed in the chosen order |",
            "|---:|---:|---:|---:|---:|",
        ]
        for mark, mean in zip(MARKS, means, strict=True):
            random = [[one[mark][place] for one in draws] for draws in drawn]
            gains = [
                [one[mark][place] - value for value in values]
                for one, values in zip(chosen, random, strict=True)
            ]
            figure = float(np.mean([np.mean(values) for values in random]))
            gain, low, high = mean_of(gains)
            lines.append(
                f"| {mark} | {figure:.1f} | {mean:.1f} | {gain:+.1f} [{low:+.1f}, {high:+.1f}] "
                f"| {needed(means, figure)} |"
            )
    return "\n".join(lines) + "\n"


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets of criteria.")],
    draws: Annotated[int, typer.Option(min=1)] = 3,
    runs: Annotated[Path, typer.Option(help="Folder of what is done.")] = Path("runs/learn-curve"),
    output: Path = PAGE,
) -> None:
    """Measure how many labels a chosen order saves."""
    runs.mkdir(parents=True, exist_ok=True)
    model = load_encoder(None)
    minilm = load_encoder(packaged_folder(MINILM[0]))
    chosen, drawn = [], []
    for name, criterion in SETS:
        file = next(data.joinpath(name).glob("test.jsonl.gz"))
        texts = read_set(file, name, criterion, model, minilm, runs)
        if len(texts.texts) < MARKS[-1] + _TESTED:
            continue
        chosen.append(curve(texts, model, next_text, every=_LEARN_EVERY))
        drawn.append(
            [curve(texts, model, random_text(seed), every=0) for seed in range(draws)],
        )
        typer.echo(f"{name}: {criterion}", err=True)
    write_text(output, page(chosen, drawn))


PAGE_TEXT = """# The order of labels

Written by `python -m benchmarks.label_order --data ../shared/data/criteria`: {sets} criteria, one
chosen order and {draws} random ones of each, measured on {tested} other texts. The last column says
after how many labels the chosen order has the figure that random order has with the labels of the
first. The gain has its 95 % interval, from a bootstrap over sets and draws."""


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
