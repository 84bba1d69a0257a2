"""From a task to the columns a sentence-transformers trainer takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from datasets import Dataset

from condsim.encoders.conditioning import conditional_sentences, cross_encoder_pairs
from condsim.errors import InputError
from condsim.training.recipe import Recipe
from condsim.training.siblings import load_siblings, with_siblings
from condsim.types import IntArray, Task

__all__ = ["epoch_variants", "row_lengths", "training_rows"]


def epoch_variants(rows: Task, recipe: Recipe, *, dev: Task) -> list[Task]:
    """Makes the rows of each epoch: all the same, unless the recipe asks for siblings.

    Args:
        rows: The labelled training rows.
        recipe: The recipe.
        dev: The dev data; none of its sentences is ever used as a sibling.

    Returns:
        One task that serves every epoch, or one for each epoch.

    Raises:
        InputError: If the file of siblings cannot be read.
    """
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
        variants: The labelled training rows, ``n`` each.
        pair_ids: Sentence pair of each row, ``(n,)``, the same in each variant.
        recipe: Says which encoder the rows are for and which text comes first.
        separator: What stands between the sentences, for cross-encoders.

    Returns:
        The data set. Columns for bi- and tri-encoders: ``sentence1``, ``sentence2`` (each a
        conditional sentence) and ``label``, which is ``[gold in [0, 1], pair id]``. For
        cross-encoders: ``first`` and ``second``, the two texts of the input, and ``label`` (gold in
        [0, 1]).

    Raises:
        InputError: If the rows have no conditions.
    """
    sentences1 = [text for task in variants for text in task.sentences1]
    sentences2 = [text for task in variants for text in task.sentences2]
    conditions = [text for task in variants for text in _conditions(task)]
    gold = [value for task in variants for value in task.gold.tolist()]
    if recipe.encoder == "cross-encoder":
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

    Args:
        rows: The labelled training rows.

    Returns:
        Characters of the longer sentence and the condition together, ``(n,)``.
    """
    columns = zip(rows.sentences1, rows.sentences2, _conditions(rows), strict=True)
    return np.array([max(len(a), len(b)) + len(c) for a, b, c in columns], dtype=np.int64)


def _conditions(task: Task) -> tuple[str, ...]:
    if task.conditions is None:
        raise InputError(f"{task.name} has no conditions; the column 'condition' is needed.")
    return task.conditions
