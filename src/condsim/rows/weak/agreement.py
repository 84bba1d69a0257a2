"""Agreement of labelling functions with given labels, and the share of sentences they read."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from condsim.evaluation.correlation import spearman
from condsim.rows.weak.functions import ABSENT
from condsim.rows.weak.language import Sentence, cut_sentence
from condsim.rows.weak.registry import Registry
from condsim.types import Task

_MIN_ROWS_OF_CORRELATION = 3
_CONDITIONS_LISTED = 20


@dataclass(frozen=True)
class FunctionAgreement:
    """Agreement on the rows whose conditions a function, a family or "all" understand.

    Of ``read`` rows both sentences are read. The Spearman correlation of score and label is x100;
    NaN below three rows or where either is constant. The error is in labels; NaN if no row is read.
    """

    name: str
    rows: int
    read: int
    spearman: float
    mean_absolute_error: float


@dataclass(frozen=True)
class AgreementReport:
    """Agreement with a labelled data set; families, functions and conditions by number of rows.

    A share in [0, 1] of the labelled rows has a condition that a function understands.
    """

    rows: int
    understood: float
    all: FunctionAgreement
    families: tuple[FunctionAgreement, ...]
    functions: tuple[FunctionAgreement, ...]
    not_understood: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Coverage:
    """Shares in [0, 1] of sentences that a function reads, and that lack the attribute."""

    name: str
    family: str
    read: float
    absent: float


def function_agreement(task: Task, registry: Registry) -> AgreementReport:
    """Compare the functions with the labels of a task, from 1 to 5, where there are any."""
    # Scores, NaN where not both sentences are read, and labels.
    by_function = defaultdict[str, list[tuple[float, float]]](list)
    by_family = defaultdict[str, list[tuple[float, float]]](list)
    missed: Counter[str] = Counter()
    rows = zip(task.sentences1, task.sentences2, task.conditions or (), task.labels, strict=True)
    for sentence1, sentence2, condition, label in rows:
        if math.isnan(label):
            continue
        function = registry.find(condition)
        if function is None:
            missed[condition.lower().strip(" .")] += 1
            continue
        score = function.score(cut_sentence(sentence1), cut_sentence(sentence2))
        row = math.nan if score is None else score, float(label)
        by_function[function.name].append(row)
        by_family[function.family].append(row)
    understood = [row for group in by_function.values() for row in group]
    labelled = len(understood) + missed.total()
    return AgreementReport(
        rows=labelled,
        understood=len(understood) / max(labelled, 1),
        all=_agreement_on("all", understood),
        families=_agreements_by_group(by_family),
        functions=_agreements_by_group(by_function),
        not_understood=tuple(missed.most_common(_CONDITIONS_LISTED)),
    )


def _agreements_by_group(
    groups: Mapping[str, Iterable[tuple[float, float]]],
) -> tuple[FunctionAgreement, ...]:
    agreements = (_agreement_on(name, rows) for name, rows in groups.items())
    return tuple(sorted(agreements, key=lambda group: (-group.rows, group.name)))


def _agreement_on(name: str, rows: Iterable[tuple[float, float]]) -> FunctionAgreement:
    scored = np.array([*rows]).reshape(-1, 2)
    read = scored[~np.isnan(scored[:, 0])]
    varies = len(read) >= _MIN_ROWS_OF_CORRELATION and bool((np.ptp(read, axis=0) > 0).all())
    correlation = 100 * spearman(read[:, 0], read[:, 1]) if varies else math.nan
    error = float(np.abs(read[:, 0] - read[:, 1]).mean()) if len(read) else math.nan
    return FunctionAgreement(name, len(scored), len(read), correlation, error)


def coverage(sentences: Sequence[str], registry: Registry) -> tuple[Coverage, ...]:
    """Count the sentences that each function reads, the most first."""
    read: Counter[str] = Counter()
    absent: Counter[str] = Counter()
    for text in sentences:
        sentence = Sentence(text)
        for function in registry:
            value = function.read(sentence)
            absent[function.name] += value is ABSENT
            read[function.name] += value is not None and value is not ABSENT
    total = max(len(sentences), 1)
    shares = [
        Coverage(f.name, f.family, read[f.name] / total, absent[f.name] / total) for f in registry
    ]
    return tuple(sorted(shares, key=lambda share: (-share.read, share.name)))
