"""Samples of the comparison: pairs, texts with two facets and products, drawn with a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.clustering import SETS, read_set
from condsim.data.tables import CriteriaPair, CriteriaText, iter_criteria
from condsim.data.written import load_written
from condsim.errors import InputError
from condsim.types import Task

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = "the product"


@dataclass(frozen=True)
class Facet:
    """Texts of a set, n, and their values under a condition, ``(n,)``."""

    texts: Sequence[str]
    condition: str
    values: NDArray[np.str_]


def draw_pairs(file: Path, *, pairs: int) -> Task:
    """Draw pairs, each with a condition labeled 4 or more and one labeled 2 or less."""
    task, generator = load_written(file), np.random.default_rng(0)
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, texts in enumerate(zip(task.sentences1, task.sentences2, strict=True)):
        rows_of.setdefault(texts, []).append(row)
    groups = [np.array(rows) for rows in rows_of.values()]
    chosen = []
    for number in generator.permutation(len(groups))[:pairs]:
        labels = task.labels[groups[number]]
        chosen += [generator.choice(groups[number][side]) for side in (labels >= 4, labels <= 2)]
    return task.take(np.array(chosen))


def draw_facets(data: Path, *, texts: int) -> list[Facet]:
    """Read the help desk of the examples and draw drug reviews, with two facets each."""
    names = ("product", "problem")
    rows = [
        row
        for row in iter_criteria(ROOT / "examples" / "helpdesk.csv", criteria=names)
        if isinstance(row, CriteriaText)
    ]
    desk = [
        Facet(
            [row.text for row in rows],
            f"the {name}",
            np.array([row.attributes[name][0] for row in rows]),
        )
        for name in names
    ]
    drugs = read_set(data / "druglib" / "test.jsonl.gz", SETS["druglib"], texts=texts)
    return desk + [
        Facet(drugs.texts, name, np.array(values)) for name, values in drugs.values.items()
    ]


def draw_products(file: Path, *, pairs: int) -> list[Task]:
    """Draw two samples of pairs of products, half of each sample the same product."""
    rows = [row for row in iter_criteria(file) if isinstance(row, CriteriaPair)]
    generator, samples = np.random.default_rng(0), (list[CriteriaPair](), list[CriteriaPair]())
    for label in (0, 1):
        alike = [row for row in rows if row.labels[PRODUCT] == label]
        if len(alike) < pairs:
            raise InputError(f"{file} must have {pairs} pairs labeled {label}; got {len(alike)}.")
        for place, number in enumerate(generator.permutation(len(alike))[:pairs].tolist()):
            samples[place % 2].append(alike[number])
    return [
        Task(
            name=file.parent.name,
            revision="",
            sentences1=tuple(row.text1 for row in sample),
            sentences2=tuple(row.text2 for row in sample),
            conditions=(PRODUCT,) * len(sample),
            labels=np.array([row.labels[PRODUCT] for row in sample], np.float32),
        )
        for sample in samples
    ]
