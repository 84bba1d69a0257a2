"""``python -m papers.long_texts``: how to read texts that are longer than a model reads.

Long texts whose similarity is known are made of short ones with labelled attributes:

- **among others**: each text of a labelled pair stands among texts of sets of another kind;
- **sharing**: the texts of one document share the values of two criteria, of which the other
  document has one too, and another value of the second.

Each pair is compared under two conditions, one alike and one different, by each rule.
"""

from __future__ import annotations

import csv
import io
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sentencex import segment
from tokenizers import Tokenizer

from condsim.cli.process import run_app
from condsim.data.files import iter_rows
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.errors import InputError
from condsim.evaluation.statistics import percentile_interval, spearman
from condsim.io import write_text
from condsim.model.onnx import MODEL_FILE, TOKENIZER_FILE, OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER, ModelSettings
from condsim.types import FloatArray
from papers.pages import MARKER, kept_notes, pipe_table

CUT = "cut at the limit"
"""The rule that the others are compared with."""
SHIPS = "short pieces: mean by tokens"
"""The rule of `condsim.load`."""

# Sets whose criteria may apply to each other's texts.
_KINDS = (
    "clinc150 hwu64 snips nlupp bitext sgd",
    "mams e2e rnnlg_venues oats sentihood acos_laptop rnnlg_electronics druglib walmart_amazon wdc",
    "viggo",
    "medquad",
    "cuad",
    "bible",
    "argkp",
    "winobias",
)
_KIND_OF = {name: number for number, names in enumerate(_KINDS) for name in names.split()}
# Tokens that fit into the model, even if it was trained on fewer.
_POSITIONS = 512
_RESAMPLES = 500
_OPINIONS = ("positive", "negative")

Vectors = Mapping[tuple[str, str], FloatArray]


@dataclass(frozen=True)
class Case:
    """Two long texts, and a condition in which they are alike and one in which they differ."""

    made: str
    text1: str
    text2: str
    alike: str
    different: str


@dataclass(frozen=True)
class Model:
    """A model that reads so many tokens."""

    scorer: OnnxScorer
    tokenizer: Tokenizer
    limit: int

    def tokens(self, text: str) -> int:
        """The number of tokens of a text."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def cut(self, text: str, condition: str) -> str:
        """Text that a truncating model reads."""
        room = self.limit - 3 - self.tokens(condition)
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return text if len(offsets) <= room else text[: offsets[room - 1][1]]


def load_model(folder: Path, limit: int, work: Path) -> Model:
    """Load an exported model with another limit than its own."""
    target = work / f"{folder.name}-{limit}"
    target.mkdir()
    for name in (MODEL_FILE, TOKENIZER_FILE):
        (target / name).symlink_to((folder / name).resolve())
    replace(ModelSettings.load(folder), max_seq_length=limit).save(target)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Model(OnnxScorer(target, threads=1), tokenizer, limit)


def among_others(folder: Path, model: Model, *, a_set: int, seed: int) -> Iterator[Case]:
    """Put the texts of labelled pairs among texts of sets of another kind."""
    generator = random.Random(seed)
    pairs: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    texts: dict[int, list[str]] = defaultdict(list)
    for row in iter_rows(folder / "dev_rows.csv", columns=("set", "pair_id"), whole_record=True):
        record = {name: str(value) for name, value in row.record.items()}
        pairs[record["set"]][record["pair_id"]].append(record)
        texts[_KIND_OF[record["set"]]].append(record["sentence1"])
    for name in sorted(pairs):
        complete = [rows for rows in pairs[name].values() if len({r["label"] for r in rows}) == 2]
        for rows in generator.sample(complete, min(a_set, len(complete))):
            high, low = sorted(rows, key=lambda row: float(row["label"]), reverse=True)[:2]
            kinds = [kind for kind in texts if kind != _KIND_OF[name]]
            long = []
            for text in (high["sentence1"], high["sentence2"]):
                parts, size = [text], generator.uniform(1.25, 4) * model.limit
                while sum(map(model.tokens, parts)) < size:
                    parts.append(generator.choice(texts[generator.choice(kinds)]))
                generator.shuffle(parts)
                long.append(joined(parts))
            yield Case("among others", long[0], long[1], high["condition"], low["condition"])


def sharing(folder: Path, model: Model, *, a_set: int, seed: int) -> Iterator[Case]:
    """Join texts of a set that share the values of two criteria."""
    generator = random.Random(seed)
    for path in sorted(folder.glob("*/dev.jsonl.gz")):
        rows = [row for row in iter_criteria(path) if isinstance(row, CriteriaText)]
        at: dict[tuple[str, str], dict[tuple[str, str], list[str]]]
        at = defaultdict(lambda: defaultdict(list))
        for row in rows:
            known = {
                name: one for name, some in row.attributes.items() if (one := only(name, some))
            }
            for first, second in product(known, known):
                if first != second:
                    at[first, second][known[first], known[second]].append(row.text)
        found = 0
        for _ in range(40 * a_set if at else 0):
            case = _shared(at, model, generator)
            if case is not None:
                yield case
                found += 1
            if found == a_set:
                break


def _shared(
    at: Mapping[tuple[str, str], Mapping[tuple[str, str], Sequence[str]]],
    model: Model,
    generator: random.Random,
) -> Case | None:
    """Try to make one case."""
    alike, different = generator.choice(list(at))
    values = at[alike, different]
    shared, one = generator.choice(list(values))
    others = [two for value, two in values if value == shared and not _words(two) & _words(one)]
    if not others:
        return None
    texts = []
    for value in (one, generator.choice(others)):
        size, parts = (
            generator.uniform(1.25, 4) * model.limit,
            list(dict.fromkeys(values[shared, value])),
        )
        generator.shuffle(parts)
        taken = 2
        while taken < min(8, len(parts)) and model.tokens(joined(parts[:taken])) < size:
            taken += 1
        texts.append(joined(parts[:taken]))
    if min(map(model.tokens, texts)) <= model.limit:
        return None
    return Case("sharing", texts[0], texts[1], alike, different)


def only(criterion: str, values: Sequence[str]) -> str | None:
    """The value of a criterion, if it is one and can be compared."""
    if len(values) != 1 or (criterion.startswith("the opinion") and values[0] not in _OPINIONS):
        return None
    return values[0].casefold()


def _words(text: str) -> set[str]:
    return set(text.replace("_", " ").split())


def joined(texts: Iterable[str]) -> str:
    """Make one text of several, each ending as a sentence does."""
    return " ".join(text if text.rstrip()[-1:] in ".!?" else f"{text.rstrip()}." for text in texts)


@dataclass(frozen=True)
class Reading:
    """Content of the pieces of a text under a condition.

    Attributes:
        vectors: Of length 1, (pieces, d).
        tokens: Of each piece, (pieces,).
        near: Cosine of each to the condition alone, (pieces,).
        nothing: Cosine of each to a text that says nothing, under the condition, (pieces,).
        applies: How likely the condition applies to each, (pieces,).
    """

    vectors: FloatArray
    tokens: FloatArray
    near: FloatArray
    nothing: FloatArray
    applies: FloatArray


Pool = Callable[[Reading], FloatArray]
Compare = Callable[[Reading, Reading], float]

POOLS: dict[str, Pool] = {
    "mean by tokens": lambda one: one.tokens,
    "mean": lambda one: np.ones_like(one.tokens),
    "mean by nearness to the condition": lambda one: one.tokens * np.exp(8 * one.near),
    "mean by distance from nothing": lambda one: one.tokens * (1.001 - one.nothing),
    "mean by applicability": lambda one: one.tokens * one.applies,
}


def pooled(weigh: Pool) -> Compare:
    """Compare by the cosine of two weighted means."""

    def vector(one: Reading) -> FloatArray:
        mean: FloatArray = weigh(one) @ one.vectors
        return mean / np.linalg.norm(mean)

    return lambda first, second: float(vector(first) @ vector(second))


def best_pair(first: Reading, second: Reading) -> float:
    """Compare by the most similar pieces."""
    return float((first.vectors @ second.vectors.T).max())


def mean_of_best(first: Reading, second: Reading) -> float:
    """Compare each piece with the most similar of the other text."""
    cosines = first.vectors @ second.vectors.T
    return float((cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2)


COMPARES: dict[str, Compare] = {
    **{name: pooled(weigh) for name, weigh in POOLS.items()},
    "best pair of pieces": best_pair,
    "mean of the best": mean_of_best,
}
# The others are measured with the default pieces only.
_EVERYWHERE = ("mean by tokens", "mean of the best")


def scores_of(model: Model, whole: Model, cases: Sequence[Case]) -> dict[str, FloatArray]:
    """Score the cases by every rule: by name (cases, 2), alike and different."""
    wanted = [
        (text, condition)
        for case in cases
        for text in (case.text1, case.text2)
        for condition in (case.alike, case.different)
    ]
    shipped = "short pieces"
    ways: dict[str, Callable[[str, str], list[str]]] = {
        CUT: lambda text, condition: [model.cut(text, condition)],
        f"whole, up to {_POSITIONS} tokens": lambda text, condition: [whole.cut(text, condition)],
        "pieces as long as the limit": lambda *key: packed(model, *key),
        shipped: model.scorer.chunks,
        "single sentences": lambda text, _: [part for part in segment("en", text) if part.strip()],
    }
    found: dict[str, FloatArray] = {}
    for way, split in ways.items():
        reader = whole if way.startswith("whole") else model
        readings = _readings(reader, {key: split(*key) for key in wanted}, more=way == shipped)
        for name, compare in COMPARES.items():
            if way == shipped or name in _EVERYWHERE:
                label = f"{way}: {name}"
                if max(len(one.tokens) for one in readings.values()) == 1:
                    label = way
                found[label] = np.array(
                    [
                        [
                            compare(readings[case.text1, one], readings[case.text2, one])
                            for one in (case.alike, case.different)
                        ]
                        for case in cases
                    ],
                    np.float32,
                )
    return found


def packed(model: Model, text: str, condition: str) -> list[str]:
    """Join sentences to pieces as long as the model reads."""
    room = model.limit - 3 - model.tokens(condition)
    pieces, left = [""], room
    for part in segment("en", text):
        size = model.tokens(part)
        if size > left and pieces[-1]:
            pieces.append("")
            left = room
        pieces[-1] += part
        left -= size
    return [piece for piece in pieces if piece.strip()]


def _readings(
    model: Model, pieces: Mapping[tuple[str, str], list[str]], *, more: bool
) -> dict[tuple[str, str], Reading]:
    """Read all pieces; how likely a condition applies only where there is ``more`` to ask."""
    columns = [(part, key[1]) for key, parts in pieces.items() for part in parts]
    texts, conditions = [text for text, _ in columns], [condition for _, condition in columns]
    vectors = model.scorer.encode(texts, conditions)
    known = sorted(set(conditions))
    alone = dict(zip(known, model.scorer.encode(known), strict=True))
    empty = dict(zip(known, model.scorer.encode(".", known), strict=True))
    near = np.einsum("nd,nd->n", vectors, np.array([alone[name] for name in conditions]))
    nothing = np.einsum("nd,nd->n", vectors, np.array([empty[name] for name in conditions]))
    applies = np.ones(len(texts), np.float32)
    if more and model.scorer.head is not None:
        applies = model.scorer.applicability(texts, texts, conditions)
    tokens = np.array([model.tokens(text) for text in texts], np.float32)
    found, at = {}, 0
    for key, parts in pieces.items():
        part = slice(at, at + len(parts))
        found[key] = Reading(vectors[part], tokens[part], near[part], nothing[part], applies[part])
        at += len(parts)
    return found


def measured(scores: Mapping[str, FloatArray], *, seed: int) -> list[dict[str, object]]:
    """Pair accuracy and Spearman of each rule, with intervals, also of the gain over cutting."""
    generator = np.random.default_rng(seed)
    size = len(next(iter(scores.values())))
    draws = [np.arange(size), *generator.integers(size, size=(_RESAMPLES, size))]

    def figures(values: FloatArray) -> FloatArray:
        wins = (values[:, 0] > values[:, 1]) + 0.5 * (values[:, 0] == values[:, 1])
        gold = np.tile([1.0, 0.0], (size, 1))
        return np.array(
            [
                [100 * wins[some].mean(), 100 * spearman(values[some].ravel(), gold.ravel())]
                for some in draws
            ],
            np.float32,
        )  # (1 + resamples, 2)

    found = {name: figures(values) for name, values in scores.items()}
    rows = []
    for name, values in found.items():
        row: dict[str, object] = {"rule": name}
        for column, metric in enumerate(("pair_accuracy", "spearman")):
            for what, some in (("", values), ("_gain", values - found[CUT])):
                low, high = percentile_interval(some[1:, column].astype(np.float64))
                row |= {f"{metric}{what}": float(some[0, column])}
                row |= {f"{metric}{what}_low": low, f"{metric}{what}_high": high}
        rows.append(row)
    return rows


def speeds(model: Model, cases: Sequence[Case]) -> dict[str, float]:
    """Texts per second of processor time: cut, and in pieces."""
    texts = [text for case in cases for text in (case.text1, case.text2)]
    conditions = [case.alike for case in cases for _ in range(2)]
    cut = [model.cut(*row) for row in zip(texts, conditions, strict=True)]
    found = {}
    for name, some in ((CUT, cut), (SHIPS, texts)):
        start = time.process_time()
        model.scorer.encode(some, conditions)
        found[name] = len(texts) / (time.process_time() - start)
    return found


_HEADING = """# Texts longer than a model reads

Long texts of known similarity, made of short ones with labelled attributes (development files of
the open sets in `../shared/data/criteria`):

- *sharing*: two documents of 2 to 8 texts of one set; all texts of both have the same value of one
  criterion, and those of each document one value of another, which is not that of the other's;
- *among others*: each text of a labelled pair stands among texts of sets of other kinds.

Every pair is compared under two conditions, one alike and one different. Pair accuracy: how often
the alike one has the higher score (chance: 50); Spearman x 100 over all rows. Gains are over the
text cut at the limit, with 95 % intervals from a bootstrap over pairs. Short pieces have 48 tokens
of text at most. `short pieces: mean by tokens` is what ships. Best pair and mean of the best need
both texts, so there is no embedding to store.
"""
_FIGURES = ("pair_accuracy", "pair_accuracy_gain", "spearman", "spearman_gain")


def page(rows: Sequence[Mapping[str, str]], notes: str) -> str:
    """Lay the lines of the CSV file out as a page."""
    lines = [_HEADING]
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        groups[row["model"], row["limit"], row["texts"], row["pairs"], row["median_tokens"]].append(
            row
        )
    for (model, limit, texts, pairs, tokens), some in groups.items():
        lines += [f"## {model}, {limit} tokens: {texts}", ""]
        lines += [f"{pairs} pairs, {tokens} tokens in the median.", ""]
        speed = {row["rule"]: float(row["texts_per_second"]) for row in some}
        cells = [[row["rule"], *(_figure(row, name) for name in _FIGURES)] for row in some]
        heads = ["rule", "pair accuracy %", "gain", "Spearman", "gain"]
        lines += [*pipe_table(heads, cells), ""]
        lines += [
            f"Texts per second of processor time: {speed[SHIPS]:.1f} in short pieces, "
            f"{speed[CUT]:.1f} cut.",
            "",
        ]
    return "\n".join([*lines, MARKER]) + (notes or "\n")


def _figure(row: Mapping[str, str], name: str) -> str:
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    sign = "+" if name.endswith("gain") else ""
    if row["rule"] == CUT and sign:
        return "-"
    return f"{value:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"


app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets, with dev_rows.csv.")],
    model: Annotated[
        Path, typer.Option(help="Exported model folder.", show_default="the default model")
    ] = DEFAULT_FOLDER,
    limit: Annotated[
        list[int] | None,
        typer.Option(help="Most tokens that the model reads. Repeatable.", show_default="128, 256"),
    ] = None,
    a_set: Annotated[int, typer.Option(min=1, help="Pairs of each set and kind.")] = 12,
    seed: Annotated[int, typer.Option(help="Seed of the drawn texts.")] = 0,
    output: Annotated[
        Path, typer.Option(help="Folder of the page; lines of the same model are replaced.")
    ] = Path("papers/docs/results"),
) -> None:
    """Measure rules for texts that are longer than a model reads."""
    table = output / "long-texts.csv"
    kept = (
        [dict(row.record) for row in iter_rows(table, columns=("rule",), whole_record=True)]
        if table.is_file()
        else []
    )
    for size in limit or [128, 256]:
        with tempfile.TemporaryDirectory() as work:
            reader = load_model(model, size, Path(work))
            whole = load_model(model, _POSITIONS, Path(work))
            for make in (sharing, among_others):
                cases = list(make(data, reader, a_set=a_set, seed=seed))
                if not cases:
                    raise InputError(f"{data} has no texts to make long ones of.")
                made = _lines(reader, whole, cases, seed=seed)
                same = {(row["model"], row["limit"], row["texts"]) for row in made}
                kept = [
                    row for row in kept if (row["model"], row["limit"], row["texts"]) not in same
                ]
                kept += made
                _write(table, kept)
                typer.echo(f"{table}: {reader.scorer.name}, {size} tokens, {cases[0].made}")


def _lines(
    model: Model, whole: Model, cases: Sequence[Case], *, seed: int
) -> list[dict[str, object]]:
    """The lines of the CSV file for some cases."""
    tokens = [model.tokens(one) for case in cases for one in (case.text1, case.text2)]
    speed = speeds(model, cases)
    facts = {
        "model": model.scorer.name,
        "limit": str(model.limit),
        "texts": cases[0].made,
        "pairs": str(len(cases)),
        "median_tokens": str(int(np.median(tokens))),
    }
    return [
        {**facts, **row, "texts_per_second": speed.get(str(row["rule"]), float("nan"))}
        for row in measured(scores_of(model, whole, cases), seed=seed)
    ]


def _write(table: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the table and the page next to it."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    texts = [
        {name: f"{one:.4g}" if isinstance(one, float) else str(one) for name, one in row.items()}
        for row in rows
    ]
    writer.writerows(texts)
    write_text(table, stream.getvalue())
    target = table.with_suffix(".md")
    write_text(target, page(texts, kept_notes(target)))


if __name__ == "__main__":
    run_app(app)
