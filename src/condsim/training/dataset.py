"""From a task to the columns a sentence-transformers trainer takes."""

from __future__ import annotations

import numpy as np
from datasets import Dataset

from condsim.encoders.conditioning import conditional_sentences, cross_encoder_pairs
from condsim.errors import InputError
from condsim.tasks import pair_rows
from condsim.training.recipe import Recipe
from condsim.types import IntArray, Task

__all__ = ["row_lengths", "training_rows"]


def training_rows(task: Task, recipe: Recipe, *, separator: str) -> tuple[Dataset, IntArray]:
    """Turns the labelled rows of a task into training columns.

    Rows without a label are left out; ``pair_rows`` logs how many rows are lone or tied, which
    the Quad objective cannot use (READING.md, "Quad").

    Args:
        task: The training data.
        recipe: Says which encoder the rows are for and which text comes first.
        separator: What stands between the sentences, for cross-encoders.

    Returns:
        The data set and the sentence pair of each of its rows, ``(n,)``, numbered from 0. Columns
        for bi- and tri-encoders: ``sentence1``, ``sentence2`` (each a conditional sentence) and
        ``label``, which is ``[gold in [0, 1], pair id]``. For cross-encoders: ``first`` and
        ``second``, the two texts of the input, and ``label`` (gold in [0, 1]).

    Raises:
        InputError: If the task has no conditions or no labelled row.
    """
    if task.conditions is None:
        raise InputError(f"{task.name} has no conditions; the column 'condition' is needed.")
    rows = task.labelled()
    if not len(rows):
        raise InputError(f"{task.name} has no labelled row to train on.")
    pair_ids = pair_rows(rows).pair_ids
    sentences1, sentences2, conditions = rows.sentences1, rows.sentences2, rows.conditions or ()
    gold = rows.gold.tolist()
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
        columns = {
            "sentence1": conditional_sentences(sentences1, conditions, order=recipe.order),
            "sentence2": conditional_sentences(sentences2, conditions, order=recipe.order),
            "label": [list(pair) for pair in zip(gold, pair_ids.tolist(), strict=True)],
        }
    return Dataset.from_dict(columns), pair_ids


def row_lengths(task: Task) -> IntArray:
    """Length of the longest text each labelled row makes, for grouping rows of like length.

    Args:
        task: The training data.

    Returns:
        Characters of the longer sentence and the condition together, ``(labelled rows,)``.
    """
    rows = task.labelled()
    conditions = rows.conditions or ("",) * len(rows)
    lengths = [
        max(len(first), len(second)) + len(condition)
        for first, second, condition in zip(
            rows.sentences1, rows.sentences2, conditions, strict=True
        )
    ]
    return np.array(lengths, dtype=np.int64)
