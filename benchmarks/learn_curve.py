"""``python -m benchmarks.learn_curve``: what a criterion gains from 25 to 200 labels.

For each set, some texts are labeled and the pairs of *other* texts are ranked: by the condition
alone, by the criterion, and by a criterion that is learned without the condition. Their values are
assigned as well, next to SetFit, logistic regression and the nearest neighbor, all on plain
all-MiniLM-L6-v2.
"""

from __future__ import annotations

import json
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from benchmarks.learn_page import Figures, Results, plot, tables
from condsim import __version__
from condsim.cli.process import run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.io import replacing, write_text
from condsim.loading import load_encoder
from condsim.model.criterion import SHARE, Encoder, features, under_condition
from condsim.model.embedding import EmbeddingScorer, joined
from condsim.model.learned_figures import area_under_curve
from condsim.model.learned_values import learn
from condsim.model.minilm import MINILM, packaged_folder
from condsim.types import FloatArray, IntArray

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
SETFIT_SETS: Sequence[tuple[str, str]] = (
    ("sentihood", "the opinion about the place in general"),
    ("oats", "what is reviewed"),
    ("clinc150", "the domain"),
    ("bitext", "the topic"),
    ("hwu64", "the domain"),
    ("medquad", "the kind of information"),
    ("snips", "the intent"),
    ("mams", "the opinion about the food"),
)
"""One criterion of each of the eight sets of shorter texts, which SetFit is trained on."""

LABELS = (25, 50, 100, 200)
SETFIT_LABELS = (25, 50)
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "learning.md"
PICTURE = PAGE.parents[3] / "docs" / "images" / "learning.png"

_TEXTS = 300
_TESTED = 100
_VALUES = 8
_FEWEST = 8


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


def read_set(
    file: Path,
    name: str,
    criterion: str,
    model: Encoder,
    minilm: Encoder,
    runs: Path,
    *,
    most: int = _TEXTS,
) -> Set:
    """Draw texts that have one of the most frequent values, and encode them once."""
    rows = [
        (row.text, row.attributes[criterion][0])
        for row in iter_criteria(file)
        if isinstance(row, CriteriaText) and len(row.attributes.get(criterion, ())) == 1
    ]
    order = np.random.default_rng(zlib.crc32(criterion.encode())).permutation(len(rows))
    counts = Counter(value for _, value in rows)
    kept = {value for value, count in counts.most_common(_VALUES) if count >= _FEWEST}
    distinct = {rows[row][0]: rows[row] for row in order if rows[row][1] in kept}
    texts, values = map(list, zip(*list(distinct.values())[:most], strict=True))
    done = runs / f"{name}-{zlib.crc32(criterion.encode())}.npz"
    if not done.is_file():
        conditional, plain = features(model, texts, criterion), doubled(model.encode(texts))
        with replacing(done) as partial, partial.open("wb") as stream:
            np.savez(stream, conditional=conditional, plain=plain, minilm=minilm.encode(texts))
    with np.load(done) as vectors:
        known = {"with": vectors["conditional"], "without": vectors["plain"]}
        return Set(name, criterion, texts, values, vectors["minilm"], known)


def doubled(vectors: FloatArray) -> FloatArray:
    """Give plain vectors the form of those that criteria are learned on."""
    return joined(vectors, vectors, overall=SHARE)


class Draw(NamedTuple):
    """Rows of a set: which are labeled, and which are measured on."""

    train: IntArray
    test: IntArray


def drawn(data: Set, labels: int, seed: int) -> Draw:
    """Draw labeled and tested texts; more labels are the same and others, the test is the same."""
    generator = np.random.default_rng([seed, zlib.crc32(data.criterion.encode())])
    rows = generator.permutation(len(data.texts))
    return Draw(rows[:labels], rows[-_TESTED:])


def measure(data: Set, model: EmbeddingScorer, draw: Draw) -> Figures:
    """Learn from some texts, and measure on others: AUC of pairs and macro F1, times 100."""
    train, test = draw
    gold = np.array(data.values)
    figures = {"condition alone": auc_of(under_condition(data.vectors["with"][test]), gold[test])}
    for name, conditional in (("criterion", True), ("no condition", False)):
        vectors = data.vectors["with" if conditional else "without"][test]
        criterion = learn(
            Known(model, data, conditional=conditional),
            [data.texts[row] for row in train],
            gold[train].tolist(),
            condition=data.criterion,
        )
        figures[name] = auc_of(criterion.embed(vectors), gold[test])
        if conditional:
            likeliest = np.array(criterion.values)[criterion.probabilities(vectors).argmax(axis=1)]
            figures |= rated("criterion", gold[test], likeliest)
    regression = LogisticRegression(C=100, class_weight="balanced", max_iter=1000).fit(
        data.plain[train], gold[train]
    )
    figures |= rated("regression", gold[test], regression.predict(data.plain[test]))
    nearest = train[(data.plain[test] @ data.plain[train].T).argmax(axis=1)]
    return figures | rated("neighbor", gold[test], gold[nearest])


def measured(data: Set, model: EmbeddingScorer, draw: Draw, done: Path) -> Figures:
    """Measure a draw; read its figures where it is done."""
    if not done.is_file():
        write_text(done, json.dumps(measure(data, model, draw)))
    figures: Figures = json.loads(done.read_text(encoding="utf-8"))
    return figures


def rated(name: str, gold: object, values: object) -> Figures:
    """Compute macro F1 and accuracy of values, times 100."""
    accuracy = 100 * float(accuracy_score(gold, values))
    return {f"F1 {name}": f1_of(gold, values), f"accuracy {name}": accuracy}


def measure_setfit(data: Set, draw: Draw, python: Path | None, done: Path) -> Figures:
    """Train SetFit in another environment; read its answer where it is done."""
    gold = np.array(data.values)
    if not done.is_file():
        request = {
            "texts": [data.texts[row] for row in draw.train],
            "values": gold[draw.train].tolist(),
            "tested": [data.texts[row] for row in draw.test],
        }
        script = Path(__file__).with_name("peers") / "setfit_values.py"
        answer = subprocess.run(
            [str(python), str(script), str(packaged_folder(MINILM[0]))],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        write_text(done, answer.stdout.splitlines()[-1])
    report = json.loads(done.read_text(encoding="utf-8"))
    found = rated("SetFit", gold[draw.test], report["values"])
    return found | {"seconds SetFit": report["processor_seconds"]}


def auc_of(vectors: FloatArray, gold: NDArray[np.str_]) -> float:
    """Compute how well cosines tell pairs of the same value from others: AUC times 100."""
    first, second = np.triu_indices(len(vectors), 1)
    same = gold[first] == gold[second]
    return 100 * area_under_curve((vectors @ vectors.T)[first, second], same)


def f1_of(gold: object, values: object) -> float:
    """Compute the macro F1 of values, times 100."""
    return 100 * float(f1_score(gold, values, average="macro", zero_division=0))


def seconds(model: EmbeddingScorer, data: Set) -> Iterator[str]:
    """Time learning from 200 encoded texts and assigning to 10,000, in processor seconds."""
    known = Known(model, data, conditional=True)
    texts, values = data.texts[:200], data.values[:200]
    criterion = learn(known, texts, values, condition=data.criterion)
    many = np.tile(data.vectors["with"], (10_000 // len(data.texts) + 1, 1))[:10_000]
    tasks: dict[str, Callable[[], object]] = {
        "learning from 200 encoded texts": lambda: learn(
            known, texts, values, condition=data.criterion
        ),
        "assigning values to 10,000 encoded texts": lambda: criterion.assign(vectors=many),
    }
    for name, task in tasks.items():
        began = time.process_time()
        task()
        yield f"{name}: {time.process_time() - began:.2f} s"


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets of criteria.")],
    labels: Annotated[list[int] | None, typer.Option(help="Numbers of labels. Repeatable.")] = None,
    draws: Annotated[int, typer.Option(min=1)] = 3,
    setfit: Annotated[
        Path | None, typer.Option(help="Python of an environment that has setfit.")
    ] = None,
    setfit_draws: Annotated[int, typer.Option(min=1)] = 1,
    runs: Annotated[Path, typer.Option(help="Folder of what is done.")] = Path("runs/learn-curve"),
    output: Path = PAGE,
) -> None:
    """Measure criteria that are learned from few labels."""
    runs.mkdir(parents=True, exist_ok=True)
    model = load_encoder(None)
    minilm = load_encoder(packaged_folder(MINILM[0]))
    results: Results = {str(number): {} for number in labels or LABELS}
    timed: list[str] = []
    for name, criterion in SETS:
        file = next(data.joinpath(name).glob("test.jsonl.gz"))
        texts = read_set(file, name, criterion, model, minilm, runs)
        for number in map(int, results):
            if len(texts.texts) < number + _TESTED:
                continue
            found = []
            for seed in range(draws):
                draw = drawn(texts, number, seed)
                key = f"{name}-{zlib.crc32(criterion.encode())}-{number}-{seed}.json"
                figures = measured(texts, model, draw, runs / f"figures-{key}")
                done = runs / f"setfit-{key}"
                compared = (name, criterion) in SETFIT_SETS and number in SETFIT_LABELS
                if compared and seed < setfit_draws and (setfit or done.is_file()):
                    figures |= measure_setfit(texts, draw, setfit, done)
                found.append(figures)
            results[str(number)][f"{name}: {criterion}"] = found
        if not timed and len(set(texts.values)) == _VALUES:
            timed = list(seconds(model, texts))
        typer.echo(f"{name}: {criterion}", err=True)
    page = [PAGE_TEXT.format(tested=_TESTED), *tables(results, UNSEEN), "\n## Processor time\n"]
    page += [f"- {line}" for line in timed]
    write_text(output, "\n".join(page) + "\n")
    report = {"condsim": __version__, "model": model.name, "draws": draws, "results": results}
    write_text(output.with_suffix(".json"), json.dumps(report, indent=1) + "\n")
    plot(results, PICTURE)


PAGE_TEXT = """# Learning a criterion

Written by `python -m benchmarks.learn_curve --data ../shared/data/criteria --setfit PYTHON`. Pairs
of {tested} other texts, AUC times 100; values assigned to them, macro F1 times 100. Means over
draws; the intervals (95 %) come from a bootstrap over sets, then draws. *No condition* learns the
same from the model's plain vectors. SetFit 1.1.3 has its defaults; it, regression and neighbor use
plain all-MiniLM-L6-v2, and *seconds* are SetFit's processor time on one thread.

![AUC and F1 against labels](../../../docs/images/learning.png)
"""


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
