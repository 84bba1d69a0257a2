"""The raw cosines of finished runs on their dev rows, kept beside them for over-estimation."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from condsim.errors import ModelError
from condsim.evaluation import Metric, over_estimation
from condsim.files import replacing
from condsim.tasks import load_task
from condsim.types import FloatArray, Task
from experiments.plan import PlannedRun

_COSINES = "dev-cosines.npy"
_COUNTS = "over-estimation.json"


def dev_cosines(run: PlannedRun, dev: Task) -> FloatArray | None:
    """The raw cosines of a finished run, computed once.

    Args:
        run: A finished run.
        dev: Its dev rows.

    Returns:
        The cosines of all rows, ``(n,)``; None if the folder holds a report and no weights.

    Raises:
        MissingExtraError: If they are still to be computed and torch is not installed.
    """
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


def counted(runs: Sequence[PlannedRun]) -> dict[Path, Metric]:
    """Counts the over-estimated pairs of finished runs; each count is kept as JSON in its folder.

    Args:
        runs: Finished runs of one dev file.

    Returns:
        The number of over-estimated pairs by folder, without an interval; runs without weights are
        left out.

    Raises:
        InputError: If the dev file has no pair of rows whose labels differ.
    """
    counts: dict[Path, Metric] = {}
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
            with replacing(path) as partial:
                partial.write_text(text, encoding="utf-8")
        counts[run.folder] = Metric(float(found.either), math.nan, math.nan)
    return counts
