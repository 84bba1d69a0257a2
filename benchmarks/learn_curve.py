"""``python -m benchmarks.learn_curve``: what a criterion gains from 25, 50 and 100 labels.

For each set, some texts are labeled and the pairs of *other* texts are ranked: by the condition
alone, by the criterion, and by a criterion that is learned without the condition. Their values are
assigned as well, next to logistic regression and the nearest neighbor on plain all-MiniLM-L6-v2.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from condsim import __version__
from condsim.cli.process import run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.criterion import Encoder, features
from condsim.model.embedding import EmbeddingScorer
from condsim.model.learned_figures import area_under_curve
from condsim.model.learned_values import learn
from condsim.model.minilm import MINILM, packaged_folder
from condsim.types import BoolArray, FloatArray, IntArray

SETS: Sequence[tuple[str, str]] = (
    ("sentihood", "the opinion about the place in general"),
    ("druglib", "the effectiveness of the drug"),
    ("druglib", "the severity of the side effects"),
    ("druglib", "the condition treated"),
    ("oats", "what is reviewed"),
    ("oats", "the opinion about the food quality"),
    ("oats", "the opinion about the course"),
    ("clinc150", "the intent"),
    ("clinc150", "the domain"),
    ("bitext", "the topic"),
    ("bitext", "the register"),
    ("hwu64", "the domain"),
    ("medquad", "the kind of information"),
    ("cuad", "the kind of clause"),
    ("snips", "the intent"),
    ("mams", "the opinion about the food"),
)
"""Sets and criteria; the first three sets are in no training row of the default model."""

UNSEEN = ("sentihood", "druglib", "oats")
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "learning.md"

_TEXTS = 300
_TESTED = 150
_VALUES = 8
_FEWEST = 8
_FEWEST_TESTED = 60


class Set(NamedTuple):
    """Texts of a set with their vectors by the name of the texts that they are of."""

    name: str
    criterion: str
    texts: list[str]
    values: list[str]
    plain: FloatArray
    vectors: dict[str, FloatArray]


class Known:
    """A model whose vectors are known already."""

    def __init__(self, model: EmbeddingScorer, data: Set, *, conditional: bool) -> None:
        self.name, self._model, self._conditional = model.name, model, conditional
        self._vectors = dict(
            zip(data.texts, data.vectors["with" if conditional else "without"], strict=True)
        )

    def encode(
        self, sentences: Sequence[str], condition: str | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Look vectors up, and encode the rest."""
        if all(text in self._vectors for text in sentences):
            return np.stack([self._vectors[text] for text in sentences])
        if overall and not self._conditional:
            vectors = self._model.encode(list(sentences))
            return doubled(vectors)
        return self._model.encode(list(sentences), condition, overall=overall)


def read_set(file: Path, name: str, criterion: str, model: Encoder, minilm: Encoder) -> Set:
    """Draw texts that have one of the most frequent values, and encode them."""
    rows = [
        (row.text, row.attributes[criterion][0])
        for row in iter_criteria(file)
        if isinstance(row, CriteriaText) and len(row.attributes.get(criterion, ())) == 1
    ]
    order = np.random.default_rng(zlib.crc32(criterion.encode())).permutation(len(rows))
    counts = Counter(value for _, value in rows)
    kept = {value for value, count in counts.most_common(_VALUES) if count >= _FEWEST}
    distinct = {rows[row][0]: rows[row] for row in order if rows[row][1] in kept}
    texts, values = map(list, zip(*list(distinct.values())[:_TEXTS], strict=True))
    plain = model.encode(texts)
    vectors = {
        "with": features(model, texts, criterion),
        "without": doubled(plain),
    }
    return Set(name, criterion, texts, values, minilm.encode(texts), vectors)


def doubled(vectors: FloatArray) -> FloatArray:
    """Give plain vectors the width of those that criteria are learned on."""
    return np.asarray(np.concatenate([vectors, vectors], axis=1) / 2**0.5, np.float32)


def measure(data: Set, model: EmbeddingScorer, labels: int, seed: int) -> dict[str, float]:
    """Learn from some texts, and measure on others: AUC of pairs and macro F1, times 100."""
    order = np.random.default_rng([seed, zlib.crc32(data.criterion.encode())])
    rows = order.permutation(len(data.texts))
    train, test = rows[:labels], rows[labels : labels + _TESTED]
    gold = np.array(data.values)
    first, second = np.triu_indices(len(test), 1)
    same = (gold[test][:, None] == gold[test])[first, second]
    figures = {"zero-shot": _auc(data.vectors["with"][test], same, first, second)}
    for name, conditional in (("criterion", True), ("without the condition", False)):
        vectors = data.vectors["with" if conditional else "without"][test]
        criterion = learn(
            Known(model, data, conditional=conditional),
            [data.texts[row] for row in train],
            gold[train].tolist(),
            condition=data.criterion,
        )
        figures[name] = _auc(criterion.embed(vectors), same, first, second)
        if conditional:
            likeliest = np.array(criterion.values)[criterion.probabilities(vectors).argmax(axis=1)]
            figures["F1 criterion"] = _f1(gold[test], likeliest)
    regression = LogisticRegression(C=100, class_weight="balanced", max_iter=1000).fit(
        data.plain[train], gold[train]
    )
    figures["F1 logistic regression"] = _f1(gold[test], regression.predict(data.plain[test]))
    nearest = train[(data.plain[test] @ data.plain[train].T).argmax(axis=1)]
    figures["F1 nearest neighbor"] = _f1(gold[test], gold[nearest])
    return figures


def _auc(vectors: FloatArray, same: BoolArray, first: IntArray, second: IntArray) -> float:
    return 100 * area_under_curve((vectors @ vectors.T)[first, second], same)


def _f1(gold: object, values: object) -> float:
    return 100 * float(f1_score(gold, values, average="macro", zero_division=0))


def page(results: dict[str, dict[str, list[dict[str, float]]]]) -> Iterator[str]:
    """Yield the lines of the page of results."""
    yield "# Learning a criterion\n"
    yield (
        "Written by `python -m benchmarks.learn_curve --data ../shared/data/criteria`. Pairs of "
        f"{_TESTED} other texts, AUC times 100; values assigned to them, macro F1 times 100. Means "
        "over draws. *Without the condition* learns the same from the model's plain vectors; "
        "regression and neighbor use plain all-MiniLM-L6-v2.\n"
    )
    for labels, sets in results.items():
        names = list(next(iter(sets.values()))[0])
        yield f"\n## {labels} labels\n"
        yield "| set, criterion | " + " | ".join(names) + " |"
        yield "|---|" + "---:|" * len(names)
        means: dict[str, list[float]] = defaultdict(list)
        for key, draws in sets.items():
            figures = [float(np.mean([draw[name] for draw in draws])) for name in names]
            yield f"| {key} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |"
            for name, figure in zip(names, figures, strict=True):
                means[name].append(figure)
        for title, chosen in (
            ("mean", list(sets)),
            ("mean, sets not trained on", [key for key in sets if key.startswith(UNSEEN)]),
        ):
            rows = [list(sets).index(key) for key in chosen]
            cells = (f"**{np.mean([means[name][row] for row in rows]):.1f}**" for name in names)
            yield f"| **{title}** | " + " | ".join(cells) + " |"


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets of criteria.")],
    labels: Annotated[list[int] | None, typer.Option(help="Numbers of labels. Repeatable.")] = None,
    draws: Annotated[int, typer.Option(min=1)] = 3,
    output: Path = PAGE,
) -> None:
    """Measure criteria that are learned from few labels."""
    model = load_encoder(None)
    minilm = load_encoder(packaged_folder(MINILM[0]))
    results: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(dict)
    for name, criterion in SETS:
        file = next(data.joinpath(name).glob("test.jsonl.gz"))
        drawn = read_set(file, name, criterion, model, minilm)
        for number in labels or [25, 50, 100]:
            if len(drawn.texts) < number + _FEWEST_TESTED:
                continue
            results[str(number)][f"{name}: {criterion}"] = [
                measure(drawn, model, number, seed) for seed in range(draws)
            ]
        typer.echo(f"{name}: {criterion}", err=True)
    write_text(output, "\n".join(page(results)) + "\n")
    report = {"condsim": __version__, "model": model.name, "draws": draws, "results": results}
    write_text(output.with_suffix(".json"), json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
