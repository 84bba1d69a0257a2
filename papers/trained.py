"""Encoders trained by a recipe, or measured as they are: one run for each seed."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.load import load_task
from condsim.errors import InputError, ModelError, require
from condsim.evaluation.metrics import over_estimation
from condsim.evaluation.plots import predicted_against_gold
from condsim.evaluation.report import Report
from condsim.evaluation.statistics import Metric
from condsim.io import replacing
from condsim.training.folder import finished_run
from condsim.training.recipe import Recipe, load_recipe
from condsim.types import FloatArray, Task
from papers.catalogue import Experiment, Row
from papers.columns import DEFAULT_BACKBONE, PAPER_BACKBONES, Column
from papers.naming import canonical, digest, recipe_file, run_folder
from papers.options import DataFiles, Options, data_files
from papers.plots import plot_results
from papers.results import (
    DOES_NOT_APPLY,
    Line,
    Results,
    differences,
    line_of,
    measured_on,
    over_shared_seeds,
)

NO_WEIGHTS = "not run: no weights"
NO_COSINES = "not run: no weights in the run's folder"

_LOGGER = logging.getLogger("condsim")
_REPORT = "report.json"
_DECIDED = {
    "train": "--data",
    "dev": "--data",
    "backbone": "--backbone",
    "seed": "--seeds",
    "name": "the recipe",
}
_MINILM_FILES = {
    "bi": "minilm/bi.yaml",
    "tri": "minilm/tri-hadamard.yaml",
    "cross": "minilm/cross.yaml",
    "ccl-bi": "minilm/ccl-bi.yaml",
    "ccl-tri": "minilm/ccl-tri.yaml",
}


@dataclass(frozen=True)
class TrainedRun:
    """A run that may be finished or not."""

    folder: Path
    recipe: Recipe
    data: DataFiles
    # False for a backbone as it is.
    trained: bool = True

    def report(self) -> Report | None:
        """Read its evaluation on the dev file, None if it is not finished; imports no torch."""
        if not self.trained:
            path = self.folder / _REPORT
            return Report.from_json(path) if path.is_file() else None
        found = finished_run(self.folder)
        if found is None:
            return None
        return found.report


@dataclass(frozen=True)
class TrainedLine:
    """A row of the experiment on one backbone; no runs if nothing is to be run here."""

    row: Row
    column: Column
    runs: tuple[TrainedRun, ...] = ()


class Trained:
    """The work of experiments that train encoders."""

    def __init__(self, experiment: Experiment, options: Options) -> None:
        self._experiment, self._options = experiment, options
        self.lines = plan_trained(experiment, options)
        self.runs = tuple({run.folder: run for line in self.lines for run in line.runs}.values())
        self._absent: frozenset[str] = frozenset()

    def finished(self, run: TrainedRun) -> bool:
        """True if its report exists."""
        return run.report() is not None

    def prepare(self, missing: Sequence[TrainedRun]) -> list[TrainedRun]:
        """Leave out runs of backbones whose weights cannot be had."""
        require("sentence_transformers", extra="train")
        backbones = dict.fromkeys(run.recipe.backbone for run in missing)
        self._absent = frozenset(name for name in backbones if not _has_weights(name))
        return [run for run in missing if run.recipe.backbone not in self._absent]

    def make(self, run: TrainedRun) -> None:
        """Train it, or go on with it."""
        # This imports torch.
        from condsim.training.run import run_or_resume

        if run.trained:
            run_or_resume(run.recipe, run.folder)
        else:
            _score_untrained(run)

    def plot(self, results: Results, path: Path) -> None:
        """Draw dots or curves; the cosines themselves where over-estimation is counted."""
        if self._experiment.kind == "over-estimation":
            plot_over_estimation(self.lines, results, path)
        else:
            plot_results(results, path)

    def results(self) -> Results:
        """The lines of the table, the differences, and what all are measured on."""
        reports = {run.folder: run.report() for run in self.runs}
        done = {folder: report for folder, report in reports.items() if report is not None}
        metrics: Mapping[Path, Mapping[str, Metric]] = {
            folder: report.model.metrics for folder, report in done.items()
        }
        if self._experiment.kind == "over-estimation":
            metrics = over_estimated([run for run in self.runs if run.folder in done])
        lines = self._with_all_rows([self._line(line, done, metrics) for line in self.lines])
        tasks = {line.row.task: line.runs[0].data for line in self.lines if line.runs}
        measured = []
        for task, data in tasks.items():
            folders = [run.folder for x in self.lines if x.row.task == task for run in x.runs]
            found = [done[folder] for folder in folders if folder in done]
            measured.append(measured_on(task, data, found, self._options))
        return Results(
            self._experiment,
            self._options,
            tuple(lines),
            differences(self._experiment, lines, over_shared_seeds),
            tuple(measured),
        )

    def _line(
        self,
        line: TrainedLine,
        done: Mapping[Path, Report],
        metrics: Mapping[Path, Mapping[str, Metric]],
    ) -> Line:
        status = None
        if line.row.does_not_apply is not None:
            status = DOES_NOT_APPLY
        elif line.runs and line.runs[0].recipe.backbone in self._absent:
            status = NO_WEIGHTS
        elif any(run.folder in done for run in line.runs):
            status = NO_COSINES
        found = {run.recipe.seed: metrics.get(run.folder) for run in line.runs}
        return line_of(self._experiment, line.row, line.column, found, status=status)

    def _with_all_rows(self, lines: list[Line]) -> list[Line]:
        """Say how many rows ``all`` training rows are, where that is a place on the axis."""
        head = self._experiment.x
        if head is None or not self.runs or all(line.cells[head] != "all" for line in lines):
            return lines
        rows = f"{int(load_task(self.runs[0].data.train).valid.sum())} (all)"
        return [
            dataclasses.replace(line, cells={**line.cells, head: rows})
            if line.cells[head] == "all"
            else line
            for line in lines
        ]


def plan_trained(experiment: Experiment, options: Options) -> tuple[TrainedLine, ...]:
    """List what an experiment trains or measures; nothing is run.

    A backbone of the papers is run in the rows where the paper has a number for it (with ``full``:
    in all), any other backbone in every row. Rows of backbones that are not asked for are there
    without runs where the paper has a number.
    """
    _check_overrides(experiment, options)
    tasks = dict.fromkeys(row.task for row in experiment.rows.values() if row.recipe)
    data = {task: data_files(task, options) for task in tasks}
    asked = {backbone.key: backbone for backbone in options.backbones}
    lines = []
    for row in experiment.rows.values():
        for backbone in {**PAPER_BACKBONES, **asked}.values():
            published = experiment.has_number(row.key, backbone.key)
            wanted = backbone.key in asked and (options.full or not row.full)
            if backbone.in_papers and experiment.published and not options.full:
                wanted = wanted and published
            if row.does_not_apply is not None and backbone.key in asked:
                lines.append(TrainedLine(row, backbone))
            elif wanted and row.recipe is not None:
                runs = _runs(experiment, row, backbone, options, data[row.task])
                lines.append(TrainedLine(row, backbone, runs))
            elif published:
                lines.append(TrainedLine(row, backbone))
    return tuple(lines)


def _check_overrides(experiment: Experiment, options: Options) -> None:
    if options.seeds is not None and options.seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {options.seeds}.")
    taken = {key.split(".")[0] for row in experiment.rows.values() for key in row.set}
    for text in options.overrides:
        key = text.partition("=")[0].strip().split(".")[0]
        if key in _DECIDED:
            raise InputError(f"--set {text!r}: '{key}' is decided by {_DECIDED[key]}.")
        if key in taken:
            raise InputError(
                f"--set {text!r}: the rows of {experiment.name} differ in '{key}', so it cannot be "
                "changed for all of them."
            )


def _runs(
    experiment: Experiment, row: Row, backbone: Column, options: Options, data: DataFiles
) -> tuple[TrainedRun, ...]:
    recipe = _recipe(row, backbone, options, data)
    if experiment.kind == "zero-shot":
        return (_zero_shot(recipe, options, data),)
    revisions = {"train_revision": data.train_revision, "dev_revision": data.dev_revision}
    seeds = range(recipe.seed, recipe.seed + (options.seeds or row.seeds))
    recipes = [recipe.replaced(seed=seed) for seed in seeds]
    return tuple(
        TrainedRun(run_folder(options.runs, one, **revisions), one, data) for one in recipes
    )


def _recipe(row: Row, backbone: Column, options: Options, data: DataFiles) -> Recipe:
    """The recipe of a row: its base recipe, then the row, the data and the command line."""
    base = str(row.recipe)
    changes: dict[str, object] = {**row.set, **row.set_for.get(backbone.key, {})}
    changes |= {"train": str(data.train), "dev": str(data.dev)}
    if backbone != DEFAULT_BACKBONE and not backbone.in_papers:
        changes["name"] = f"{backbone.key}-{base}"
    if not backbone.in_papers or base.startswith("stsb"):
        changes["backbone"] = backbone.model
    # JSON is YAML.
    texts = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    family, _, encoder = base.rpartition("-")
    file = _MINILM_FILES.get(base, f"stsb/{encoder}.yaml")
    if family != "stsb" and backbone.in_papers:
        file = f"{family or 'csts'}/{backbone.key}-{encoder}.yaml"
    return canonical(load_recipe(recipe_file(file), overrides=[*texts, *options.overrides]))


def _zero_shot(recipe: Recipe, options: Options, data: DataFiles) -> TrainedRun:
    """The backbone as it is: no layer that would have to be trained."""
    plain = recipe.replaced(transform=False)
    keys = ("backbone", "pooling", "order", "max_seq_length")
    code = digest(
        {key: getattr(plain, key) for key in keys}
        | {"zero-shot": data.dev_revision, "train": data.train_revision}
    )
    name = Path(recipe.backbone).name.lower()
    return TrainedRun(options.runs / f"{name}-zero-shot-{code}", plain, data, trained=False)


def _has_weights(backbone: str) -> bool:
    """Check that a backbone can be loaded; log the reason otherwise."""
    from condsim.model.builders import load_backbone, without_progress_bars

    try:
        with without_progress_bars():
            load_backbone(backbone)
    except ModelError as error:
        _LOGGER.warning("not run: %s", error)
        return False
    return True


def _score_untrained(run: TrainedRun) -> None:
    """Measure a backbone as it is, on pairs with a condition or without (C-STS, Table 2)."""
    from condsim.evaluation.evaluate import evaluate
    from condsim.model.baselines import ConditionOnlyScorer
    from condsim.model.builders import build_bi_encoder, without_progress_bars
    from condsim.model.torch import EncoderScorer

    recipe = run.recipe
    with without_progress_bars():
        model = build_bi_encoder(
            recipe.backbone, pooling=recipe.pooling, max_seq_length=recipe.max_seq_length
        )
    dev = load_task(run.data.dev, require_labels=True)
    baseline = ConditionOnlyScorer().fit_task(load_task(run.data.train, require_labels=True))
    report = evaluate(
        EncoderScorer(model, name=recipe.name, order=recipe.order), dev, condition_only=baseline
    )
    run.folder.mkdir(parents=True, exist_ok=True)
    report.to_json(run.folder / _REPORT)


_COSINES = "dev-cosines.npy"


def dev_cosines(run: TrainedRun, dev: Task) -> FloatArray | None:
    """The raw cosines of all dev rows, ``(n,)``, computed once; None without weights."""
    path = run.folder / _COSINES
    if path.is_file():
        kept: FloatArray = np.load(path)
        if kept.shape == (len(dev),):
            return kept
    from condsim.loading import load_scorer

    try:
        scorer = load_scorer(run.folder)
    except ModelError:
        return None
    cosines = scorer.score(dev.sentences1, dev.sentences2, dev.conditions, scale="raw")
    with replacing(path) as partial, partial.open("wb") as stream:
        np.save(stream, cosines)
    return cosines


def over_estimated(runs: Sequence[TrainedRun]) -> dict[Path, Mapping[str, Metric]]:
    """Count the pairs of finished runs by folder; runs without weights are left out."""
    counts: dict[Path, Mapping[str, Metric]] = {}
    if not runs:
        return counts
    dev = load_task(runs[0].data.dev)
    for run in runs:
        cosines = dev_cosines(run, dev)
        if cosines is None:
            continue
        found = over_estimation(cosines, dev)
        counts[run.folder] = {"over_estimated": Metric(float(found.either), math.nan, math.nan)}
    return counts


def plot_over_estimation(lines: Sequence[TrainedLine], results: Results, path: Path) -> None:
    """Draw the cosines of the first finished seed of each row; without any, the counts alone."""
    cosines: dict[str, FloatArray] = {}
    dev = None
    for line in lines:
        run = next((run for run in line.runs if run.report() is not None), None)
        if run is None:
            continue
        dev = dev or load_task(run.data.dev)
        values = dev_cosines(run, dev)
        if values is not None:
            objective = [*line.row.cells.values()][-1]
            cosines[f"{objective}, {line.column.label}, seed {run.recipe.seed}"] = values
    if dev is None or not cosines:
        plot_results(results, path)
    else:
        predicted_against_gold(cosines, dev, path)
