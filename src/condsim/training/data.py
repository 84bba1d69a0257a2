"""The data of a recipe: what is trained on, and what the best epoch is chosen on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from condsim.scorers import Scale
from condsim.tasks import (
    NliTask,
    Triplets,
    column_names,
    is_triplets,
    load_nli,
    load_task,
    load_triplets,
    pair_rows,
)
from condsim.training.recipe import Recipe
from condsim.types import FloatArray, Scorer, Task

Inputs = Literal["both", "condition", "sentences"]

HIDDEN = "-"
"""Stands where a text is kept from the model; scorers refuse an empty one."""


def masked(task: Task, inputs: Inputs) -> Task:
    """Hides the sentences or the conditions of every row."""
    hidden = (HIDDEN,) * len(task)
    if inputs == "condition":
        return replace(task, sentences1=hidden, sentences2=hidden)
    if inputs == "sentences":
        return replace(task, conditions=hidden)
    return task


class MaskedScorer:
    """A scorer that hides a part of each row from the scorer inside.

    Attributes:
        name: Name of the scorer inside.
        calibration: Its calibration, if it has one.
        revision: Its version, if it has one.
    """

    def __init__(self, scorer: Scorer, inputs: Inputs) -> None:
        """Wraps a scorer.

        Args:
            scorer: A scorer with the option ``scale``; not copied.
            inputs: What it is given.
        """
        self.name = scorer.name
        self.calibration = getattr(scorer, "calibration", None)
        self.revision: str | None = getattr(scorer, "revision", None)
        self._score: Any = scorer.score
        self._inputs = inputs

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray:
        """Scores pairs of which a part is hidden.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Conditions, length n, or None.
            scale: See `condsim.scorers.inputs.Scale`.

        Returns:
            ``(n,)`` float32; higher is more similar.
        """
        hidden = [HIDDEN] * len(sentences1)
        if self._inputs == "condition":
            sentences1 = sentences2 = hidden
        elif self._inputs == "sentences":
            conditions = hidden
        scores: FloatArray = self._score(sentences1, sentences2, conditions, scale=scale)
        return scores


TrainingData = Task | NliTask | Triplets
"""What can be trained on."""

DevData = Task | Triplets
"""What an epoch can be chosen on: by Spearman, or by the accuracy of triplets."""


def load_train(recipe: Recipe) -> TrainingData:
    """Loads the training file as the objective needs it.

    Args:
        recipe: The recipe.

    Returns:
        Classes for ``softmax``, triplets for ``triplet``, else similarities.

    Raises:
        InputError: If the file cannot be read or holds something else.
    """
    if recipe.lone_term == "softmax":
        return load_nli(recipe.train)
    if recipe.lone_term == "triplet":
        return load_triplets(recipe.train)
    return load_task(recipe.train)


def load_dev(recipe: Recipe) -> DevData:
    """Loads the dev file, told from its content."""
    path = Path(recipe.dev)
    return load_triplets(path) if is_triplets(column_names(path)) else load_task(path)


def dev_pairs(dev: DevData) -> Task:
    """The dev data as pairs."""
    return dev.pairs() if isinstance(dev, Triplets) else dev


def used_rows(train: TrainingData, recipe: Recipe) -> TrainingData:
    """The rows that a run trains on: all that have a label, or ``train_rows`` of them.

    The draw does not depend on the seed of the recipe, and a smaller one is a part of a larger. Of
    a task whole sentence pairs are drawn (C-STS Figure 3), and the last pair that would be too many
    is left out, so it is ``train_rows`` rows or a few less.

    Args:
        train: The training data.
        recipe: The recipe.

    Returns:
        The rows.
    """
    rows = train.labelled() if isinstance(train, Task) else train
    wanted = recipe.train_rows
    if wanted is None or wanted >= len(rows):
        return rows
    generator = np.random.default_rng(0)
    if not isinstance(rows, Task):
        return rows.take(np.sort(generator.permutation(len(rows))[:wanted]))
    pair_ids = pair_rows(rows).pair_ids
    order = generator.permutation(int(pair_ids.max()) + 1)  # (pairs,)
    sizes = np.bincount(pair_ids)[order]
    chosen = order[np.cumsum(sizes) <= wanted]
    return rows.take(np.flatnonzero(np.isin(pair_ids, chosen)))
