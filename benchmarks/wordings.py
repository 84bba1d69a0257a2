"""Effect of the wording of a condition on scores, on labeled rows of open data sets.

Three questions are measured: how well the same rows are scored when their conditions are worded in
another way, what a condition that joins two aspects or leaves one out measures, and what happens
to texts that do not mention the aspect. Run it as ``python -m benchmarks.wordings``; it takes a few
minutes on one core and also writes the tables of ``docs/conditions.md``.
"""

from __future__ import annotations

import csv
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from condsim.cli.process import run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.errors import InputError
from condsim.evaluation.statistics import spearman
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.embedding import EmbeddingScorer

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "criteria"
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "wordings.md"
DOCS_PAGE = Path(__file__).resolve().parents[1] / "docs" / "conditions.md"
OPINION_SETS = ("acos_laptop", "oats", "sentihood", "mams")
LEAVING_OUT = ("everything except {}", "ignoring {}", "anything but {}", "not {}")
PAIRS_PER_KIND = 12
DRAWS = 20_000
"""Draws of two texts of a set, most of which agree in nothing."""

Scores = NDArray[np.float64]
TablePair = tuple[str, str, dict[str, bool]]
"""Two texts, and whether they agree in each aspect that both have."""

app = typer.Typer(pretty_exceptions_enable=False)


@dataclass(frozen=True)
class LabeledPairs:
    """Columns of pairs of texts, two conditions each, and labels from 1 to 5, ``(2, n)``."""

    texts: list[list[str]]
    conditions: list[list[str]]
    labels: Scores
    sets: int


def _bare(condition: str) -> str:
    return condition.removeprefix("the ")


def misspelt(condition: str) -> str:
    """Swap two letters within the first word of four letters or more."""
    return re.sub(r"\b(\w)(\w)(\w)(?=\w)", r"\1\3\2", condition, count=1)


WORDINGS: dict[str, Callable[[str], str]] = {
    "the kind of food": lambda condition: condition,
    "kind of food": _bare,
    "The kind of food.": lambda condition: condition.capitalize() + ".",
    "KIND OF FOOD": lambda condition: _bare(condition).upper(),
    "What is the kind of food?": lambda condition: f"What is {condition}?",
    "whether the kind of food is the same": lambda condition: f"whether {condition} is the same",
    "with respect to the kind of food": lambda condition: f"with respect to {condition}",
    "Compare the two texts by the kind of food.": (
        lambda condition: f"Compare the two texts by {condition}."
    ),
    "Focus only on the kind of food and ignore everything else.": (
        lambda condition: f"Focus only on {condition} and ignore everything else."
    ),
    "Ignore everything except the kind of food.": (
        lambda condition: f"Ignore everything except {condition}."
    ),
    "How similar are they in the kind of food?": (
        lambda condition: f"How similar are they in {condition}?"
    ),
    "I would like to know about the kind of food": (
        lambda condition: f"I would like to know about {condition}"
    ),
    "the knid of food": misspelt,
    "the meaning": lambda _: "the meaning",
}


def read_pairs(path: Path, *, per_set: int, seed: int) -> LabeledPairs:
    """Draw pairs of texts with two conditions and different labels from each set."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            groups[row["set"], row["pair_id"]].append(row)
    draw = random.Random(seed)
    by_set: dict[str, list[list[dict[str, str]]]] = defaultdict(list)
    for (name, _), rows in sorted(groups.items()):
        if len(rows) == 2 and rows[0]["label"] != rows[1]["label"]:
            by_set[name].append(draw.sample(rows, 2))
    pairs = [p for own in by_set.values() for p in draw.sample(own, min(per_set, len(own)))]
    texts = [[rows[0][side] for rows in pairs] for side in ("sentence1", "sentence2")]
    conditions = [[rows[side]["condition"] for rows in pairs] for side in (0, 1)]
    labels = np.array([[float(rows[side]["label"]) for rows in pairs] for side in (0, 1)])
    return LabeledPairs(texts, conditions, labels, len(by_set))


def score_pairs(
    model: EmbeddingScorer, pairs: LabeledPairs, conditions: Sequence[str] | None
) -> Scores:
    """Score one condition of each pair, or the pairs as a whole."""
    return np.asarray(model.score(pairs.texts[0], pairs.texts[1], conditions), np.float64)


def wording_rows(model: EmbeddingScorer, pairs: LabeledPairs) -> list[list[str]]:
    """Rows of the table of wordings: Spearman, pair accuracy, change and rank correlation."""
    wordings: dict[str, Callable[[str], str] | None] = {**WORDINGS, "(no condition)": None}
    plain: Scores | None = None
    rows = []
    for name, wording in wordings.items():
        sides = [
            score_pairs(model, pairs, [wording(text) for text in own] if wording else None)
            for own in pairs.conditions
        ]
        scores = np.array(sides)  # (2, n)
        plain = scores if plain is None else plain
        # Of the two conditions of a pair, the one with the higher label is to score higher.
        order = np.sign(scores[0] - scores[1]) * np.sign(pairs.labels[0] - pairs.labels[1])
        rows.append(
            [
                name,
                f"{100 * spearman(scores.ravel(), pairs.labels.ravel()):.1f}",
                f"{100 * (1 + order).mean() / 2:.1f}",
                f"{np.abs(scores - plain).mean():.3f}",
                f"{spearman(scores.ravel(), plain.ravel()):.2f}",
            ]
        )
    return rows


def table_pairs(texts: Sequence[CriteriaText], draw: random.Random) -> list[TablePair]:
    """Draw pairs of texts that have three or more aspects in common and agree in some of them."""
    known = []
    for text in texts:
        single = {name: values[0] for name, values in text.attributes.items() if len(values) == 1}
        if len(single) > 2:
            known.append((text.text, single))
    found: dict[int, list[TablePair]] = defaultdict(list)
    for _ in range(DRAWS if len(known) > 1 else 0):
        (text1, values1), (text2, values2) = draw.sample(known, 2)
        agree = {name: value == values2[name] for name, value in values1.items() if name in values2}
        if len(agree) > 2 and 0 < sum(agree.values()) < len(agree):
            found[sum(agree.values())].append((text1, text2, agree))
    # Few pairs agree in much.
    return [pair for own in found.values() for pair in own[:PAIRS_PER_KIND]]


def score_aspects(
    model: EmbeddingScorer, pairs: Sequence[TablePair], aspects: Sequence[Sequence[str]]
) -> Scores:
    """Mean of the scores of each pair under its aspects, ``(n,)``."""
    rows = [
        (text1, text2, aspect)
        for (text1, text2, _), own in zip(pairs, aspects, strict=True)
        for aspect in own
    ]
    texts1, texts2, conditions = (list(column) for column in zip(*rows, strict=True))
    owner = np.repeat(np.arange(len(pairs)), [len(own) for own in aspects])
    return np.bincount(owner, model.score(texts1, texts2, conditions)) / np.bincount(owner)


def combined_rows(
    model: EmbeddingScorer, pairs: Sequence[TablePair], draw: random.Random
) -> list[list[str]]:
    """Rows of the table of conditions that join two aspects, or leave one out."""
    two = [draw.sample(sorted(agree), 2) for _, _, agree in pairs]
    others = [
        sorted(agree.keys() - {first}) for (_, _, agree), (first, _) in zip(pairs, two, strict=True)
    ]

    def row(meant: Sequence[Sequence[str]], name: str, scores: Scores) -> list[str]:
        agree = [
            np.mean([pair[2][aspect] for aspect in own])
            for pair, own in zip(pairs, meant, strict=True)
        ]
        kind = "A and B" if meant is two else "all but A"
        return [kind, name, f"{100 * spearman(scores, np.array(agree)):.1f}"]

    texts1, texts2, _ = (list(column) for column in zip(*pairs, strict=True))
    whole = np.asarray(model.score(texts1, texts2), np.float64)
    return [
        row(two, "A and B", score_aspects(model, pairs, [[" and ".join(own)] for own in two])),
        row(two, "A", score_aspects(model, pairs, [own[:1] for own in two])),
        row(two, "(A, B: the mean of two scores)", score_aspects(model, pairs, two)),
        row(two, "(no condition)", whole),
        *(
            row(
                others,
                text.format("A"),
                score_aspects(model, pairs, [[text.format(own[0])] for own in two]),
            )
            for text in LEAVING_OUT
        ),
        row(
            others,
            "(each other aspect: the mean of the scores)",
            score_aspects(model, pairs, others),
        ),
        row(others, "(no condition)", whole),
    ]


def silent_pairs(texts: Sequence[CriteriaText], draw: random.Random) -> dict[str, list[list[str]]]:
    """Pairs of texts by whether both, one or none of them mention an aspect."""
    counts = Counter(name for text in texts for name in text.attributes)
    pairs: dict[str, list[list[str]]] = defaultdict(list)
    for criterion, _ in counts.most_common(4):
        values: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for text in texts:
            values[text.attributes.get(criterion, ())].append(text.text)
        silent = values.pop((), [])
        single = [group for value, group in values.items() if len(value) == 1 and len(group) > 1]
        if len(single) < 2 or len(silent) < 2:
            continue
        for _ in range(PAIRS_PER_KIND):
            first, second = draw.sample(single, 2)
            for kind, pair in (
                ("both mention it and agree", draw.sample(first, 2)),
                ("both mention it and differ", [draw.choice(first), draw.choice(second)]),
                ("one mentions it", [draw.choice(first), draw.choice(silent)]),
                ("neither mentions it", draw.sample(silent, 2)),
            ):
                pairs[kind].append([*pair, criterion])
    return pairs


def silent_rows(model: EmbeddingScorer, folder: Path, seed: int) -> list[list[str]]:
    """Rows of the table of silent texts: scores and applicability."""
    pairs: dict[str, list[list[str]]] = defaultdict(list)
    draw = random.Random(seed)
    for name in OPINION_SETS:
        texts = [
            text
            for text in iter_criteria(folder / name / "test.jsonl.gz")
            if isinstance(text, CriteriaText)
        ]
        for kind, drawn in silent_pairs(texts, draw).items():
            pairs[kind] += drawn
    rows = []
    for kind, drawn in pairs.items():
        first, second, aspects = (list(column) for column in zip(*drawn, strict=True))
        scores = model.score(first, second, aspects)
        applies = np.median(model.applicability(first, second, aspects))
        low, middle, high = np.percentile(scores, [10, 50, 90])
        rows.append(
            [kind, str(len(drawn)), f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{applies:.2f}"]
        )
    return rows


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    aligned = ["---", *["---:"] * (len(head) - 1)]
    lines = [list(head), aligned, *[list(row) for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replaced_table(page: str, name: str, table: str) -> str:
    """Put a table between the marks ``<!-- name -->`` and ``<!-- /name -->`` of a page."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    head, mark, rest = page.partition(start)
    if not mark or end not in rest:
        raise InputError(f"The page lacks the marks of the table {name!r}.")
    return head + mark + table + end + rest.partition(end)[2]


@app.command()
def main(
    model: Annotated[str, typer.Option(help="Model to measure.")] = "default",
    data: Annotated[Path, typer.Option(help="Folder of the open sets.")] = DATA,
    per_set: Annotated[int, typer.Option(min=2, help="Pairs of texts of a set.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    output: Annotated[Path, typer.Option(help="Page of results to write.")] = PAGE,
    docs: Annotated[Path, typer.Option(help="Page with marked tables to update.")] = DOCS_PAGE,
) -> None:
    """Measure wordings of conditions and write the pages."""
    scorer = load_encoder(model)
    pairs = read_pairs(data / "dev_rows.csv", per_set=per_set, seed=seed)
    draw = random.Random(seed)
    combined = []
    for path in sorted(data.glob("*/test.jsonl.gz")):
        texts = [text for text in iter_criteria(path) if isinstance(text, CriteriaText)]
        combined += table_pairs(texts, draw)
    tables = {
        "wordings": _table(
            ["wording", "Spearman x 100", "pair accuracy, %", "change", "ranks"],
            wording_rows(scorer, pairs),
        ),
        "combined": _table(
            ["what counts", "condition", "Spearman x 100"],
            combined_rows(scorer, combined, draw),
        ),
        "silent": _table(
            ["pair of texts", "pairs", "median score", "middle 80 %", "applies"],
            silent_rows(scorer, data, seed),
        ),
    }
    parts = [
        "# Wordings of a condition",
        f"{len(pairs.texts[0])} pairs of texts of {pairs.sets} open sets, each under two "
        f"conditions with different labels; model `{scorer.name}`. Made by "
        "`python -m benchmarks.wordings`. Spearman and pair accuracy compare with the labels of "
        "people; *change* is the mean absolute difference of the score, from 0 to 1, from the "
        "first row, and *ranks* the Spearman correlation with it.",
        "## One aspect",
        tables["wordings"],
        "## Two aspects in one condition, and all but one",
        f"{len(combined)} pairs of texts of sets with three or more labeled aspects: Spearman "
        "correlation with the share of the aspects in which the two texts agree.",
        tables["combined"],
        "## Texts that do not mention the aspect",
        f"Opinions about an aspect in {', '.join(OPINION_SETS)}: median score, middle 80 % of the "
        "scores, and median probability that the condition applies.",
        tables["silent"],
    ]
    page = docs.read_text("utf-8")
    for name, table in tables.items():
        page = replaced_table(page, name, table)
    write_text(output, "\n\n".join(parts) + "\n")
    write_text(docs, page)


if __name__ == "__main__":
    run_app(app)
