"""What a model is to learn from a larger one: vectors, and scores of pairs without a label.

The small model learns the vectors of the large one, projected to its own dimension, and the labels
of the same rows next to them, in the manner of LEAF (arXiv 2509.12539) and jina-embeddings-v5
(2602.15547). Those train the projection; here it is computed once, so that cosines of the small
model become the large one's. A trained one had reached a cosine of 0.5 after 1,200 steps.

Where the small model is trained already, it learns the large one's scores of pairs instead: texts
of one kind under conditions that somebody wrote for texts of that kind.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from condsim.data.written import iter_written
from condsim.types import FloatArray
from papers.model.groups import Group, Input
from papers.model.labeled import read_lines
from papers.model.mixture import drawn_groups, rows_files, write_inputs, write_labeled

TAUGHT = "taught"
"""Source of the small model: inputs with the vectors of the large one."""

SCORED = "scored"
"""Source of the small model: pairs without a label, with the scores of the large one."""

REWORDED = "reworded"
"""Source of the small model: pairs under all wordings of a condition, with one score."""

PAIRS_PER_GROUP = 4
MOST_REWORDED = 1600

INPUTS_PER_SOURCE = 8000
INPUTS_TO_ALIGN = 16_384
PLAIN_TO_ALIGN = 3000

Embed = Callable[[Sequence[Input]], FloatArray]
"""Unit vectors of inputs, ``(inputs, dimension)``."""
EmbedTexts = Callable[[Sequence[str]], FloatArray]
"""Unit vectors of texts, ``(texts, dimension)``."""


def projection(teacher: FloatArray, student: FloatArray) -> FloatArray:
    """Compute an orthonormal map from the teacher's vectors to the dimension of the student.

    It keeps the directions of largest energy, which weigh most in the teacher's cosines, and
    turns them so that they are as near as possible to the vectors that the student begins with
    (orthogonal Procrustes; Schönemann, 1966). Where both have one dimension, it turns alone.

    Args:
        teacher: Vectors of some inputs, ``(inputs, large)``.
        student: Vectors of the same inputs, ``(inputs, small)``.

    Returns:
        The map, ``(large, small)``.
    """
    _, directions = np.linalg.eigh(teacher.T @ teacher)
    basis = directions[:, -student.shape[1] :]
    left, _, right = np.linalg.svd((teacher @ basis).T @ student)
    return np.asarray(basis @ left @ right, np.float32)


def teach(
    rows: Path, output: Path, teacher: Embed, student: Embed, *, inputs: int = INPUTS_PER_SOURCE
) -> None:
    """Write a draw of the inputs of every source with the vectors of the teacher."""
    members: list[Input] = []
    for path in rows_files(rows):
        for group in drawn_groups(path, inputs, seed=0):
            members += group.inputs
    vectors = teacher(members)
    sample = random.Random(0).sample(range(len(members)), min(INPUTS_TO_ALIGN, len(members)))
    starts = student([members[number] for number in sample])
    write_inputs(output, TAUGHT, members, vectors @ projection(vectors[sample], starts))


def keep_plain(
    rows: Path, output: Path, plain: EmbedTexts, start: EmbedTexts, *, inputs: int
) -> None:
    """Write the sources of plain groups, whose inputs are to keep their plain vectors.

    A text has the same vector under every condition, turned to the vectors that the training
    begins with.
    """
    for path in rows_files(rows):
        groups = [group for group in drawn_groups(path, inputs, seed=0) if group.plain]
        if not groups:
            continue
        members = [one for group in groups for one in group.inputs]
        texts = [text for _, text in members]
        vectors, starts = plain(texts), start(texts[:PLAIN_TO_ALIGN])
        turn = projection(vectors[:PLAIN_TO_ALIGN], starts)
        write_inputs(output, path.name.split(".")[0], members, vectors @ turn)


def unlabeled_groups(everyday: Path, verdicts: Path, *, seed: int = 0) -> Iterator[list[Input]]:
    """Draw groups of texts of one kind, under conditions that were written for that kind.

    Each pair of a file is in one draw, with three other pairs: under a condition of one of them,
    and under one of any pair of the kind. Pairs of ``verdicts``, which have none, get any.
    """
    draw = random.Random(seed)
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    conditions: dict[str, list[str]] = defaultdict(list)
    own: dict[tuple[str, str], Sequence[str]] = {}
    for pair in iter_written(everyday):
        texts = pair.sentence1, pair.sentence2
        pairs[pair.domain].append(texts)
        own[texts] = [*pair.labels]
        conditions[pair.domain] += pair.labels
    every = [condition for kind in conditions for condition in conditions[kind]]
    for line in read_lines(verdicts):
        pairs[line["domain"]].append((line["sentence1"], line["sentence2"]))
    for kind, members in sorted(pairs.items()):
        draw.shuffle(members)
        for start in range(0, len(members), PAIRS_PER_GROUP):
            drawn = members[start : start + PAIRS_PER_GROUP]
            texts = [text for both in drawn for text in both]
            known = own.get(drawn[0]) or every
            for condition in (draw.choice(known), draw.choice(conditions.get(kind) or every)):
                yield [(condition, text) for text in texts]


def reworded_groups(
    written: Path, wordings: Mapping[str, Sequence[str]], *, seed: int = 0
) -> Iterator[list[Input]]:
    """Draw one pair of each condition that has wordings, under each of them in turn."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pair in iter_written(written):
        for condition in pair.labels.keys() & wordings.keys():
            pairs[condition].append((pair.sentence1, pair.sentence2))
    draw = random.Random(seed)
    for condition in draw.sample(sorted(pairs), min(MOST_REWORDED, len(pairs))):
        texts = draw.choice(pairs[condition])
        yield [(one, text) for one in (condition, *wordings[condition]) for text in texts]


def score_reworded(output: Path, groups: Sequence[Sequence[Input]], teacher: Embed) -> None:
    """Write the pair of each group under every wording, labeled by the mean of the cosines."""
    labeled = []
    for group, vectors in _embedded(groups, teacher):
        cosine = float((vectors[::2] * vectors[1::2]).sum(axis=1).mean())
        rows = [(place, place + 1, max(0.0, cosine), 1.0) for place in range(0, len(group), 2)]
        labeled.append(Group([*group], rows))
    write_labeled(output / f"{REWORDED}.csv", labeled)


def score_unlabeled(output: Path, groups: Sequence[Sequence[Input]], teacher: Embed) -> None:
    """Write all pairs of each group, labeled by the cosine of the teacher's vectors."""
    labeled = []
    for group, vectors in _embedded(groups, teacher):
        cosines = np.clip(vectors @ vectors.T, 0, 1)
        rows = [
            (first, second, float(cosines[first, second]), 1.0)
            for first, second in combinations(range(len(group)), 2)
        ]
        labeled.append(Group([*group], rows))
    write_labeled(output / f"{SCORED}.csv", labeled)


def _embedded(
    groups: Sequence[Sequence[Input]], teacher: Embed
) -> Iterator[tuple[Sequence[Input], FloatArray]]:
    """Yield each group with the vectors of its inputs."""
    vectors = teacher([one for group in groups for one in group])
    start = 0
    for group in groups:
        yield group, vectors[start : start + len(group)]
        start += len(group)
