"""Over-estimated pairs of finished runs (CCL, Appendix A), from cosines kept in their folders."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.errors import ModelError
from condsim.evaluation import Metric, over_estimation, predicted_against_gold
from condsim.files import replacing, write_text
from condsim.tasks import load_task
from condsim.types import FloatArray, Task
from experiments.plots import plot_results
from experiments.results import Results

if TYPE_CHECKING:
    from experiments.trained import TrainedLine, TrainedRun

_COSINES = "dev-cosines.npy"
_COUNTS = "over-estimation.json"


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
    """Counts the pairs of finished runs by folder; runs without weights are left out.

    The counts are kept as JSON in the folders.
    """
    counts: dict[Path, Mapping[str, Metric]] = {}
    if not runs:
        return counts
    dev = load_task(runs[0].data.dev)
    for run in runs:
        cosines = dev_cosines(run, dev)
        if cosines is None:
            continue
        found = over_estimation(cosines, dev)
        text = json.dumps(asdict(found), indent=2) + "\n"
        path = run.folder / _COUNTS
        if not path.is_file() or path.read_text("utf-8") != text:
            write_text(path, text)
        counts[run.folder] = {"over_estimated": Metric(float(found.either), math.nan, math.nan)}
    return counts


def plot_over_estimation(lines: Sequence[TrainedLine], results: Results, path: Path) -> None:
    """Draws the cosines of the first finished seed of each row; without any, the counts alone."""
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
