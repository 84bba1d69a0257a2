"""Coverage of the labelling functions, and their agreement with labels that people gave."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from condsim.construction.weak.functions import ABSENT
from condsim.construction.weak.language import Sentence, cut_sentence
from condsim.construction.weak.registry import Registry
from condsim.evaluation import spearman
from condsim.types import Task

_FEWEST = 3  # rows for a correlation


@dataclass(frozen=True)
class Agreement:
    """Agreement on the rows whose conditions some functions understand."""

    name: str  # of the function or family, or "all"
    rows: int
    read: int  # rows of which both sentences are read
    spearman: float  # x100, of score and label; NaN below three rows or where either is constant
    mean_absolute_error: float  # in labels; NaN if no row is read


@dataclass(frozen=True)
class AgreementReport:
    """Agreement with a labelled data set."""

    rows: int  # labelled rows
    understood: float  # share in [0, 1] of them whose condition a function understands
    all: Agreement  # over all functions
    families: tuple[Agreement, ...]  # by family, the most rows first
    functions: tuple[Agreement, ...]  # by function, the most rows first
    # The most frequent conditions that no function understands, with their rows.
    not_understood: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Coverage:
    """How many sentences a function reads."""

    name: str
    family: str
    read: float  # share in [0, 1] of the sentences in which it reads a value
    absent: float  # share in which it says that the attribute is absent


def agreement(task: Task, registry: Registry, *, shown: int = 20) -> AgreementReport:
    """Compares the functions with labels that were given.

    Args:
        task: Rows with conditions and labels from 1 to 5, such as C-STS.
        shown: Conditions that are not understood to list, at most.

    Returns:
        The report; rows without a label are left out.
    """
    by_function: dict[str, list[tuple[float, float]]] = {}  # scores, NaN if not read, and labels
    by_family: dict[str, list[tuple[float, float]]] = {}
    missed: Counter[str] = Counter()
    rows = zip(task.sentences1, task.sentences2, task.conditions or (), task.labels, strict=True)
    for one, two, condition, label in rows:
        function = registry.find(condition)
        if math.isnan(label):
            continue
        if function is None:
            missed[condition.lower().strip(" .")] += 1
            continue
        score = function.score(cut_sentence(one), cut_sentence(two))
        row = math.nan if score is None else score, float(label)
        by_function.setdefault(function.name, []).append(row)
        by_family.setdefault(function.family, []).append(row)
    understood = [row for found in by_function.values() for row in found]
    labelled = len(understood) + missed.total()
    return AgreementReport(
        rows=labelled,
        understood=len(understood) / max(labelled, 1),
        all=_agreement("all", understood),
        families=_agreements(by_family),
        functions=_agreements(by_function),
        not_understood=tuple(missed.most_common(shown)),
    )


def _agreements(groups: Mapping[str, Sequence[tuple[float, float]]]) -> tuple[Agreement, ...]:
    found = (_agreement(name, rows) for name, rows in groups.items())
    return tuple(sorted(found, key=lambda one: (-one.rows, one.name)))


def _agreement(name: str, rows: Sequence[tuple[float, float]]) -> Agreement:
    read = np.array([row for row in rows if not math.isnan(row[0])]).reshape(-1, 2)
    varied = len(read) >= _FEWEST and bool((np.ptp(read, axis=0) > 0).all())
    error = float(np.abs(read[:, 0] - read[:, 1]).mean()) if len(read) else math.nan
    return Agreement(
        name=name,
        rows=len(rows),
        read=len(read),
        spearman=100 * spearman(read[:, 0], read[:, 1]) if varied else math.nan,
        mean_absolute_error=error,
    )


def coverage(sentences: Sequence[str], registry: Registry) -> tuple[Coverage, ...]:
    """Counts what the functions read.

    Args:
        sentences: Any number, at least one.

    Returns:
        A row a function; those that read the most come first.
    """
    read: Counter[str] = Counter()
    absent: Counter[str] = Counter()
    for text in sentences:
        sentence = Sentence(text)
        for function in registry:
            value = function.read(sentence)
            absent[function.name] += value is ABSENT
            read[function.name] += value is not None and value is not ABSENT
    total = max(len(sentences), 1)
    found = [
        Coverage(f.name, f.family, read[f.name] / total, absent[f.name] / total) for f in registry
    ]
    return tuple(sorted(found, key=lambda one: (-one.read, one.name)))
