"""What an experiment of similarity from contexts measures: each row on each of its test sets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim.contexts import (
    TOKENS,
    Center,
    ContextsRecipe,
    Cost,
    Weights,
    cost_of,
    expected_distinct,
    load_contexts_recipe,
)
from condsim.errors import InputError
from experiments.backbones import packaged_recipe
from experiments.contexts_parts import MADE, Part, part_folder, steps
from experiments.experiment import Experiment, FromContexts, Row
from experiments.gold_sets import GOLD_SETS, GoldSet, load_gold_set
from experiments.naming import digest
from experiments.plan import Options

_RECIPE = "contexts/openstax.yaml"
_UNBOUNDED = 10**12  # sentences of a corpus that is not known yet
_REPORT = "report.json"


@dataclass(frozen=True)
class Measurement:
    """One scorer on one test set, measured or not.

    Attributes:
        folder: Where its report is, or will be.
        part: The part that scores; None if it needs none.
        part_folder: Where that is, or will be.
        recipe: What that is made of.
        how: How scores come of it.
        gold: The test set.
    """

    folder: Path
    part: Part | None
    part_folder: Path
    recipe: ContextsRecipe
    how: FromContexts
    gold: GoldSet

    @property
    def finished(self) -> bool:
        """Whether it is measured."""
        return self.report.is_file()

    @property
    def report(self) -> Path:
        """The file of its report."""
        return self.folder / _REPORT

    def terms(self, center: Center) -> Path:
        """Where the terms of Eq. 3 are, or will be, if the origin scores.

        Args:
            center: The centring whose means they have.

        Returns:
            The folder.
        """
        return self.part_folder / f"terms-{self.gold.code}-{center}"

    @property
    def weights(self) -> Weights:
        """The weights of Eq. 3 in the score."""
        return self.recipe.scoring.weights.replaced(**self.how.weights)

    @property
    def center(self) -> Center:
        """The centring of the score; rows that differ in it share their scorer."""
        return self.recipe.scoring.center


@dataclass(frozen=True)
class ContextsLine:
    """A row of the experiment on one test set.

    Attributes:
        row: The row.
        gold: Key of the set.
        measurement: What is measured; None if nothing is.
    """

    row: Row
    gold: str
    measurement: Measurement | None


def plan_contexts(experiment: Experiment, options: Options) -> tuple[ContextsLine, ...]:
    """Lists what an experiment measures; nothing is made.

    Args:
        experiment: An experiment of the kind ``contexts`` or ``cases``.
        options: What was chosen.

    Returns:
        The lines, row by row. Sets that are not asked for are there without a measurement where
        the paper has a number.

    Raises:
        InputError: If data or inputs are not there, or a change of a recipe is not allowed.
    """
    chosen = options.contexts
    for key in chosen.only or ():
        if key not in experiment.gold_sets:
            raise InputError(
                f"--on {key}: {experiment.name} measures on {', '.join(experiment.gold_sets)}."
            )
    if chosen.rows is not None and chosen.rows < 3:
        raise InputError(f"--rows must be at least 3. Got {chosen.rows}.")
    _check_overrides(experiment, options.overrides)
    if chosen.recipe is not None and any("inputs" in row.set for row in experiment.rows.values()):
        raise InputError(
            f"--recipe {chosen.recipe}: the rows of {experiment.name} differ in their corpora, so "
            "it names the input files itself. Leave --recipe out, or take another experiment."
        )
    asked = [key for key in experiment.gold_sets if key in (chosen.only or experiment.gold_sets)]
    gold = {key: load_gold_set(key, stsb=options.stsb, options=chosen) for key in asked}
    lines = []
    for row in experiment.rows.values():
        runs = row.contexts is not None and row.contexts.scorer is not None
        runs = runs and (options.full or not row.full)
        recipe = _recipe(row, options) if runs else None
        for key in GOLD_SETS:
            if recipe is not None and key in gold:
                lines.append(ContextsLine(row, key, _measurement(row, recipe, gold[key], options)))
            elif experiment.has_number(row.key, key):
                lines.append(ContextsLine(row, key, None))
    return tuple(lines)


def measurements(lines: Sequence[ContextsLine]) -> tuple[Measurement, ...]:
    """All measurements of some lines, each once, those of one scorer together.

    Args:
        lines: What `plan_contexts` gave.

    Returns:
        The measurements, in the order in which their scorers come first.
    """
    every = {line.measurement.folder: line.measurement for line in lines if line.measurement}
    scorers = dict.fromkeys(one.part_folder for one in every.values())
    return tuple(one for scorer in scorers for one in every.values() if one.part_folder == scorer)


def planned_parts(planned: Sequence[Measurement], runs: Path) -> dict[Path, bool]:
    """All parts that measurements need.

    Args:
        planned: The measurements.
        runs: The folder of all runs.

    Returns:
        Their folders in the order they are made, and whether each is finished.
    """
    folders = [
        part_folder(runs, step, one.recipe)
        for one in planned
        if one.part is not None
        for step in steps(one.part, one.recipe)
    ]
    return {folder: (folder / MADE).is_file() for folder in folders}


def expected_cost(measurement: Measurement, center: Center) -> Cost | None:
    """Counts what a measurement costs that was not begun; nothing is opened.

    Args:
        measurement: The measurement.
        center: The centring whose means are computed.

    Returns:
        The cost, at most, of scoring its set by the origin or, for a surrogate, of its harvest;
        None if no generator scores.
    """
    recipe, task = measurement.recipe, measurement.gold.task
    pairs, sentences = len(task), len({*task.sentences1, *task.sentences2})
    if measurement.part == "surrogate":
        pairs = recipe.harvest.pairs
        sentences = expected_distinct(2 * pairs, of=_UNBOUNDED)
    elif measurement.part != "origin":
        return None
    scoring = recipe.scoring
    return cost_of(
        sentences=sentences,
        pairs=pairs,
        corpus=_UNBOUNDED,
        selection=recipe.selection,
        weights=scoring.weights,
        center=center,
        references=scoring.references,
        tokens_per_sequence=TOKENS,
    )


def _recipe(row: Row, options: Options) -> ContextsRecipe:
    """The recipe of a row: the one chosen, then the row, then the command line."""
    file = options.contexts.recipe or packaged_recipe(_RECIPE)
    own = [f"{key}={json.dumps(value)}" for key, value in row.set.items()]  # JSON is YAML
    return load_contexts_recipe(file, overrides=[*own, *options.overrides])


def _check_overrides(experiment: Experiment, overrides: Sequence[str]) -> None:
    """Refuses to change for all rows what they differ in."""
    taken = {key for row in experiment.rows.values() for key in row.set}
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
    parts: dict[str | None, Part] = {
        "origin": "origin",
        "surrogate": "surrogate",
        "tfidf-cosine": "corpus",
    }
    part = parts.get(how.scorer)
    scorer = (
        options.runs / str(how.scorer) if part is None else part_folder(options.runs, part, recipe)
    )
    found = Measurement(scorer / f"on-{gold.code}", part, scorer, recipe, how, gold)
    if how.scorer != "origin":
        return found
    _check_weights(found, row.key)
    name = f"{found.folder.name}-{found.center}"
    if how.weights:
        name += f"-weighed-{digest({'weights': found.weights.values})}"
    return dataclasses.replace(found, folder=scorer / name)


def _check_weights(found: Measurement, row: str) -> None:
    """Refuses a score of terms that are not computed."""
    computed = found.recipe.scoring.weights.used
    more = [term for term in found.weights.used if term not in computed]
    if more:
        raise InputError(
            f"The row {row!r} weighs the term {more[0]!r}, which the recipe gives the weight 0."
        )
