"""Pairs without conditions, trained on beside the rows of a recipe.

Training on conditions alone lets what a model knows of similarity as such fade. Rehearsing pairs
that the backbone itself has scored keeps it (pseudo-rehearsal, Robins, 1995).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from condsim.errors import InputError
from condsim.tasks import (
    load_task,
)
from condsim.training.data import TrainingData
from condsim.training.dataset import TrainingSet, training_set
from condsim.training.recipe import Recipe
from condsim.types import Task


def plain_objective(recipe: Recipe) -> dict[str, float]:
    """The terms of the objective that pairs without conditions have.

    Args:
        recipe: The recipe.

    Returns:
        ``mse`` and ``correlation`` as the recipe weighs them; ``{"mse": 1.0}`` if it has neither.
    """
    weights = {term: recipe.objective.get(term, 0.0) for term in ("mse", "correlation")}
    return {term: weight for term, weight in weights.items() if weight} or {"mse": 1.0}


def load_plain(recipe: Recipe) -> Task | None:
    """Loads the pairs without conditions of a recipe.

    Args:
        recipe: The recipe.

    Returns:
        The labelled pairs, or None if the recipe names no file of them.

    Raises:
        InputError: If the file cannot be read, has conditions, or no labelled row.
    """
    if recipe.plain is None:
        return None
    task = load_task(Path(recipe.plain), require_labels=True).labelled()
    if task.conditions is not None:
        raise InputError(
            f"{recipe.plain} has conditions, and the recipe key 'plain' names pairs without any: "
            "columns sentence1, sentence2 and score. Give it as 'train', or drop the column."
        )
    return task


def plain_set(pairs: Task, recipe: Recipe, *, beside: TrainingData, dev: Task) -> TrainingSet:
    """Turns pairs without conditions into what is trained on.

    Args:
        pairs: The pairs, from `load_plain`.
        recipe: The recipe.
        beside: The rows of the recipe.
        dev: The dev data, as for `condsim.training.dataset.training_set`.

    Returns:
        The columns of plain sentences and gold.

    Raises:
        InputError: If the rows have no conditions either.
    """
    if not isinstance(beside, Task) or beside.conditions is None:
        raise InputError(
            f"The recipe key 'plain' names pairs without conditions to train on beside rows that "
            f"have some, and {beside.name} has none. Leave it out."
        )
    alone = replace(recipe, objective=plain_objective(recipe), inputs="both", siblings=None)
    return training_set(pairs, alone, dev=dev, separator="")
