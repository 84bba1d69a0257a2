"""The data of a recipe: what is trained on, and what the best epoch is chosen on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condsim.tasks import NliTask, Triplets, load_nli, load_task, load_triplets, pair_rows
from condsim.tasks.columns import column_names
from condsim.tasks.triplets import is_triplets
from condsim.training.recipe import Recipe
from condsim.types import Task

__all__ = ["DevData", "TrainingData", "dev_pairs", "load_dev", "load_train", "used_rows"]

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
    """Loads the dev file, told from its content.

    Args:
        recipe: The recipe.

    Returns:
        Similarities or triplets, whatever the objective.

    Raises:
        InputError: If the file cannot be read, or holds classes: the encoder that is saved has no
            classifier to measure, so a recipe on NLI is measured on similarities.
    """
    path = Path(recipe.dev)
    return load_triplets(path) if is_triplets(column_names(path)) else load_task(path)


def dev_pairs(dev: DevData) -> Task:
    """The dev data as pairs.

    Args:
        dev: The dev data.

    Returns:
        A task as it is; triplets as `Triplets.pairs`.
    """
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
