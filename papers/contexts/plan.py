"""Measurements of an experiment on contexts: each row on each of its test sets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.types import FloatArray
from condsim_contexts.recipe import Center, ContextsRecipe, Weights, load_contexts_recipe
from papers.catalogue import Experiment, FromContexts, Row
from papers.columns import TEST_SETS
from papers.contexts.parts import Part, part_folder
from papers.naming import digest, recipe_file
from papers.options import GoldSet, Options, data_path, load_gold_set

_RECIPE = "contexts/openstax.yaml"
# Folder of the data sets in the recipes of the repository.
_USUAL_DATA = "../shared/data/"
# Rows of counts have their own unless all are changed.
_FOR_ALL = {"selection.candidates"}
_PARTS: dict[str | None, Part] = {
    "origin": "origin",
    "surrogate": "surrogate",
    "tfidf-cosine": "corpus",
}


@dataclass(frozen=True)
class Measurement:
    """One scorer on one test set, measured or not."""

    folder: Path
    part: Part | None
    part_folder: Path
    recipe: ContextsRecipe
    how: FromContexts
    gold: GoldSet

    @property
    def report(self) -> Path:
        """The file of its report, written last."""
        return self.folder / "report.json"

    @property
    def finished(self) -> bool:
        """True if it is measured."""
        return self.report.is_file()

    @property
    def scores_file(self) -> Path:
        """The file of its scores."""
        return self.folder / "scores.npy"

    def scores(self) -> FloatArray:
        """The scores of a finished measurement, one for each row of its set, ``(n,)``."""
        scores: FloatArray = np.load(self.scores_file)
        return scores

    def terms(self, center: Center) -> Path:
        """The folder of the terms of Eq. 3 with the means of a centering, if the origin scores."""
        return self.part_folder / f"terms-{self.gold.code}-{center}"

    @property
    def weights(self) -> Weights:
        """The weights of Eq. 3 in the score."""
        return self.recipe.scoring.weights.replaced(**self.how.weights)

    @property
    def center(self) -> Center:
        """The centering of the score; rows that differ in it share their scorer."""
        return self.recipe.scoring.center


@dataclass(frozen=True)
class ContextsLine:
    """A row of the experiment on the test set ``gold``; no measurement if nothing is measured."""

    row: Row
    gold: str
    measurement: Measurement | None = None


def plan_contexts(experiment: Experiment, options: Options) -> tuple[ContextsLine, ...]:
    """List what an experiment measures; nothing is made.

    Sets that are not asked for are there without a measurement where the paper has a number.
    """
    chosen = options.contexts
    for key in chosen.only or ():
        if key not in experiment.gold_sets:
            raise InputError(
                f"--on {key}: {experiment.name} measures on {', '.join(experiment.gold_sets)}."
            )
    if chosen.rows is not None and chosen.rows < 3:
        raise InputError(f"--rows must be at least 3, got {chosen.rows}.")
    _check_overrides(experiment, options.overrides)
    if chosen.recipe is not None and any("inputs" in row.set for row in experiment.rows.values()):
        raise InputError(
            f"--recipe {chosen.recipe}: the rows of {experiment.name} differ in their corpora, so "
            "it names the input files itself. Leave --recipe out, or take another experiment."
        )
    asked = [key for key in experiment.gold_sets if key in (chosen.only or experiment.gold_sets)]
    gold = {key: load_gold_set(key, options) for key in asked}
    lines = []
    for row in experiment.rows.values():
        runs = row.contexts is not None and row.contexts.scorer is not None
        runs = runs and (options.full or not row.full)
        recipe = _recipe(row, options) if runs else None
        for key in TEST_SETS:
            if recipe is not None and key in gold:
                lines.append(ContextsLine(row, key, _measurement(row, recipe, gold[key], options)))
            elif experiment.has_number(row.key, key):
                lines.append(ContextsLine(row, key))
    return tuple(lines)


def measurements(lines: Sequence[ContextsLine]) -> tuple[Measurement, ...]:
    """All measurements, each once, grouped by scorer in the order scorers come first."""
    every = {line.measurement.folder: line.measurement for line in lines if line.measurement}
    scorers = dict.fromkeys(one.part_folder for one in every.values())
    return tuple(one for scorer in scorers for one in every.values() if one.part_folder == scorer)


def _recipe(row: Row, options: Options) -> ContextsRecipe:
    """The recipe of a row: the one chosen, then the row, then the command line."""
    file = options.contexts.recipe or recipe_file(_RECIPE)
    changes = dict(row.set)
    if "inputs" in changes:
        changes["inputs"] = [f"{_USUAL_DATA}{name}" for name in changes["inputs"]]
    # JSON is YAML.
    own = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    recipe = load_contexts_recipe(file, overrides=[*own, *options.overrides])
    return recipe.replaced(inputs=[_below_data(path, options) for path in recipe.inputs])


def _below_data(path: str, options: Options) -> str:
    """A corpus file of ``--data`` where a recipe of the repository names its usual folder."""
    relative = path.removeprefix(_USUAL_DATA)
    return path if relative == path else str(data_path(options, relative))


def _check_overrides(experiment: Experiment, overrides: Sequence[str]) -> None:
    """Reject to change for all rows what they differ in."""
    taken = {key for row in experiment.rows.values() for key in row.set} - _FOR_ALL
    for text in overrides:
        key = text.partition("=")[0].strip()
        for other in taken:
            if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
                raise InputError(
                    f"--set {text!r}: the rows of {experiment.name} differ in '{other}', so it "
                    "cannot be changed for all of them."
                )


def _measurement(row: Row, recipe: ContextsRecipe, gold: GoldSet, options: Options) -> Measurement:
    how = row.contexts or FromContexts()
    part = _PARTS.get(how.scorer)
    scorer = (
        options.runs / str(how.scorer) if part is None else part_folder(options.runs, part, recipe)
    )
    found = Measurement(scorer / f"on-{gold.code}", part, scorer, recipe, how, gold)
    if how.scorer != "origin":
        return found
    computed = recipe.scoring.weights.used
    for term in found.weights.used:
        if term not in computed:
            raise InputError(
                f"The row {row.key!r} weighs the term {term!r}, which the recipe gives the "
                "weight 0."
            )
    name = f"{found.folder.name}-{found.center}"
    if how.weights:
        name += f"-weighed-{digest({'weights': found.weights.values})}"
    return dataclasses.replace(found, folder=scorer / name)
