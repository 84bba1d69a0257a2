"""From a task to the columns a sentence-transformers trainer takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from condsim.encoders import conditional_sentences, cross_encoder_pairs
from condsim.errors import InputError
from condsim.tasks import NliTask, Pairing, pair_rows
from condsim.training.data import TrainingData, masked
from condsim.training.recipe import Recipe
from condsim.training.siblings import load_siblings, with_siblings
from condsim.types import IntArray, Task


@dataclass(frozen=True)
class TrainingSet:
    """Rows as a sentence-transformers trainer and our sampler take them.

    Attributes:
        dataset: The columns of text and label; one variant of the ``n`` rows after the other.
        pair_ids: Sentence pair of each row, ``(n,)``; rows of one pair share a batch.
        lengths: Characters of the longest text of each row, ``(n,)``.
    """

    dataset: Dataset
    pair_ids: IntArray
    lengths: IntArray

    def is_in(self, dataset: Dataset) -> bool:
        """Whether a data set has the columns of this one, perhaps beside others."""
        columns = self.dataset.features.items()
        return all(dataset.features.get(name) == kind for name, kind in columns)


def training_set(rows: TrainingData, recipe: Recipe, *, dev: Task, separator: str) -> TrainingSet:
    """Turns the rows of a run into what is trained on.

    Args:
        rows: The rows, from `condsim.training.data.used_rows`.
        recipe: The recipe.
        dev: The dev data; none of its sentences is ever used as a sibling.
        separator: What stands between the sentences, for cross-encoders.

    Returns:
        The columns: of a task those of :func:`training_rows`, of NLI ``sentence1``, ``sentence2``
        and ``label`` (number of the class), of triplets ``anchor``, ``positive`` and ``negative``.

    Raises:
        InputError: If the rows do not fit the recipe.
    """
    columns: dict[str, Any]
    if isinstance(rows, Task):
        pairing = pair_rows(rows)
        check_pairs(rows, pairing, recipe)
        variants = epoch_variants(rows, recipe, dev=dev)
        dataset = training_rows(variants, pairing.pair_ids, recipe, separator=separator)
        return TrainingSet(dataset, pairing.pair_ids, row_lengths(rows))
    if isinstance(rows, NliTask):
        texts = {"sentence1": rows.premises, "sentence2": rows.hypotheses}
        columns = {**texts, "label": rows.classes}
    else:
        texts = {"anchor": rows.anchors, "positive": rows.positives, "negative": rows.negatives}
        columns = dict(texts)
    lengths = [max(map(len, row)) for row in zip(*texts.values(), strict=True)]
    return TrainingSet(
        dataset=Dataset.from_dict(columns),
        pair_ids=np.arange(len(rows), dtype=np.int64),  # each row is its own
        lengths=np.array(lengths, dtype=np.int64),
    )


def check_pairs(rows: Task, pairing: Pairing, recipe: Recipe) -> None:
    """Checks that the rows have what a pairwise objective compares."""
    if rows.conditions is None and recipe.encoder == "tri-encoder":
        raise InputError(f"{rows.name} has no conditions, which a tri-encoder needs.")
    if recipe.pair_terms and (rows.conditions is None or not pairing.pairs):
        terms = "', '".join(recipe.pair_terms)
        raise InputError(
            f"{rows.name} has no sentence pair with two conditions and different labels, which "
            f"the objective needs for '{terms}'. Give such data, or use 'mse' or 'correlation'."
        )


def epoch_variants(rows: Task, recipe: Recipe, *, dev: Task) -> list[Task]:
    """Makes the rows of each epoch: all the same, unless the recipe asks for siblings."""
    if recipe.siblings is None or recipe.sibling_rate == 0:
        return [rows]
    siblings = load_siblings(
        Path(recipe.siblings),
        sentences=(*rows.sentences1, *rows.sentences2),
        leave_out=(*dev.sentences1, *dev.sentences2),
    )
    return [
        with_siblings(rows, siblings, rate=recipe.sibling_rate, seed=(recipe.seed, epoch))
        for epoch in range(recipe.epochs)
    ]


def training_rows(
    variants: Sequence[Task], pair_ids: IntArray, recipe: Recipe, *, separator: str
) -> Dataset:
    """Turns labelled rows into training columns, one variant of the rows after the other.

    Args:
        pair_ids: Sentence pair of each row, ``(n,)``, the same in each variant.
    """
    variants = [masked(task, recipe.inputs) for task in variants]
    sentences1 = [text for task in variants for text in task.sentences1]
    sentences2 = [text for task in variants for text in task.sentences2]
    conditions = [text for task in variants for text in task.conditions or ()]
    gold = [value for task in variants for value in task.gold.tolist()]
    columns: dict[str, list[Any]]
    if not conditions:
        names = ("first", "second")
        if recipe.encoder != "cross-encoder":
            names = ("sentence1", "sentence2")
        columns = {names[0]: sentences1, names[1]: sentences2, "label": gold}
    elif recipe.encoder == "cross-encoder":
        pairs = cross_encoder_pairs(
            sentences1, sentences2, conditions, separator=separator, order=recipe.order
        )
        columns = {
            "first": [first for first, _ in pairs],
            "second": [second for _, second in pairs],
            "label": gold,
        }
    else:
        ids = pair_ids.tolist() * len(variants)
        columns = {
            "sentence1": conditional_sentences(sentences1, conditions, order=recipe.order),
            "sentence2": conditional_sentences(sentences2, conditions, order=recipe.order),
            "label": [list(pair) for pair in zip(gold, ids, strict=True)],
        }
    return Dataset.from_dict(columns)


def row_lengths(rows: Task) -> IntArray:
    """Length of the longest text each row makes, for grouping rows of like length.

    Returns:
        Characters of the longer sentence and the condition together, ``(n,)``.
    """
    conditions = rows.conditions or ("",) * len(rows)
    columns = zip(rows.sentences1, rows.sentences2, conditions, strict=True)
    return np.array([max(len(a), len(b)) + len(c) for a, b, c in columns], dtype=np.int64)
