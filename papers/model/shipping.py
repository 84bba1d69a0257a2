"""From the folder of a run to a folder to ship: int8 weights, calibration, applicability."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx.external_data_helper import set_external_data

from condsim.data.csts import load_applicability
from condsim.data.load import load_task
from condsim.data.tasks import join_tasks, make_task
from condsim.evaluation.suite_data import GROUPS, load_criteria_sets
from condsim.model.calibration import Calibration, fit_calibration
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import MODEL_FILE, Fact, ModelSettings
from condsim.training.applicability import fit_head, load_extra
from condsim.training.export import export_onnx, write_card
from condsim.types import FloatArray, Task
from papers.model.applicability import write_applicability
from papers.model.balanced import trainable_sets
from papers.model.draws import natural_groups
from papers.model.groups import Group, read_groups
from papers.model.natural import graded_tests
from papers.model.sources import ROOT, Sources, open_sets
from papers.model.split import open_split

_LOGGER = logging.getLogger("condsim")

SAMPLES_PER_SOURCE = 40
FILE_BYTES = 100_000_000
"""Largest file of weights; GitHub takes files of up to 100 MiB."""

HEAD = "applicability.json"
HEAD_ROWS = 14_000
NATURAL_DRAWS_PER_SET = 60
CALIBRATION_ROWS = 2000
"""Rows drawn of a task at most, which take the large model some minutes."""

GRADED_CALIBRATION_TESTS = ("patent phrases", "activities")
TRAINING_DATA = (
    "labeled texts of open sets, C-STS, captions, graded pairs, NLI and questions about negation; "
    "texts, pairs and rules written for condsim"
)

LabeledPair = tuple[str, str, str | None, float]
"""Two texts, a condition and a label in [0, 1]."""


@dataclass(frozen=True)
class ShippedModel:
    """Name of a model, the backbone that it was first made from, and its longest input."""

    name: str
    base: str
    max_seq_length: int


SMALL = ShippedModel("condsim-minilm", "sentence-transformers/all-MiniLM-L6-v2", 256)
LARGE = ShippedModel("condsim-large", "sentence-transformers/all-mpnet-base-v2", 384)


def ship(model: ShippedModel, folder: Path, output: Path, sources: Sources, rows: Path) -> Path:
    """Write what ships of a run's folder, or what is missing of it; the head is written last."""
    if (output / HEAD).is_file():
        return output
    facts = {
        "base_model": model.base,
        "training_data": TRAINING_DATA,
        "criteria_sets": ", ".join(trainable_sets(sources.data / "criteria")),
    }
    export_onnx(folder, output, samples=input_samples(rows), name=model.name, facts=facts)
    split_weights(output)
    replace(ModelSettings.load(output), max_seq_length=model.max_seq_length).save(output)
    scorer = OnnxScorer(output)
    calibration, errors = calibrate(scorer, calibration_tasks(sources))
    settings = scorer.settings
    # The run's own dev file says little next to these figures.
    kept = {name: value for name, value in settings.facts.items() if not name.startswith("dev_")}
    settings = replace(settings, calibration=calibration, facts=kept | errors)
    settings.save(output)
    # The export's own card has the longest input and the dev figures of the run.
    write_card(settings, output)
    applies = rows / "applicability"
    if not (applies / "train.csv").is_file():
        write_applicability(sources.data, applies)
    labeled = load_applicability(sources.data / "csts-reannotated" / "dev.csv")
    extra = load_extra([applies / "train.csv"], sample=HEAD_ROWS, exclude=labeled)
    fit_head(OnnxScorer(output), labeled, extra=extra).save(output / HEAD)
    return output


def input_samples(rows: Path) -> list[tuple[str, str]]:
    """Texts and conditions of the training rows of all sources, for the quantization."""
    pairs = []
    for path in sorted(rows.glob("*.jsonl.gz")):
        groups = islice(read_groups(path), 0, 100 * SAMPLES_PER_SOURCE, 100)
        inputs = [group.inputs[0] for group in groups]
        pairs += [(text, condition) for condition, text in inputs if condition is not None]
    return pairs


def split_weights(folder: Path, *, most: int = FILE_BYTES) -> None:
    """Move the weights of a graph that is too large a file into files next to it."""
    path = folder / MODEL_FILE
    if path.stat().st_size <= most:
        return
    graph = onnx.load(str(path))
    number, size = 0, 0
    for tensor in graph.graph.initializer:
        if len(tensor.raw_data) < 1024:
            continue
        if size and size + len(tensor.raw_data) > most:
            number, size = number + 1, 0
        set_external_data(tensor, f"weights-{number}.bin")
        size += len(tensor.raw_data)
    onnx.save(graph, str(path))


def calibration_tasks(sources: Sources) -> dict[str, list[Task]]:
    """Dev rows by prior: balanced under each condition, and as they come."""
    sets = load_criteria_sets(sources.data / "criteria")
    # Some sets are for evaluation only.
    trainable = [item.task for item in sets if item.group != GROUPS[2]]
    files = (
        sources.data / "csts-reannotated" / "dev.csv",
        ROOT / "data" / "written" / "dev.txt",
        ROOT / "data" / "everyday" / "dev.txt",
    )
    balanced = [load_task(path, require_labels=True).labeled() for path in files]
    return {
        "balanced": [*balanced, join_tasks(trainable, name="criteria")],
        "natural": [_natural_task(sources), _graded_task(sources.data)],
    }


def _natural_task(sources: Sources) -> Task:
    """Natural draws of the dev texts of the open sets; rows with a silent text are left out."""
    rows: list[LabeledPair] = []
    for table in open_sets(sources, "dev"):
        draw = random.Random(table.name)
        groups = natural_groups(table, sources.plain, draw, {}, number=NATURAL_DRAWS_PER_SET)
        rows += [row for group in groups for row in _labeled_pairs(group)]
    return make_task(
        sources.data / "criteria", rows, label_range=(0, 1), name="open sets", revision=""
    )


def _labeled_pairs(group: Group) -> Iterator[LabeledPair]:
    for (condition, text1), (_, text2), label in group.spoken_rows():
        yield text1, text2, condition, label


def _task(rows: Sequence[LabeledPair], *, name: str) -> Task:
    return make_task(Path(name), rows, label_range=(0, 1), name=name, revision="")


def _graded_task(data: Path) -> Task:
    rows: list[LabeledPair] = []
    for test in graded_tests(open_split(data, "dev")):
        if test.spec.title.startswith(GRADED_CALIBRATION_TESTS):
            for row in test.rows:
                texts = (str(row["text1"]), str(row["text2"]), str(row["condition"]))
                rows.append((*texts, (float(str(row["label"])) - 1) / 4))
    return _task(rows, name="graded")


def calibrate(
    scorer: OnnxScorer, tasks: Mapping[str, Sequence[Task]]
) -> tuple[Calibration, dict[str, Fact]]:
    """Fit scores on as many rows of each prior, and of each task of a prior.

    Returns:
        The calibration, and the calibration error by prior, of rows that a fit on the other half
        of the rows has not seen.
    """
    columns = {prior: _even_rows(scorer, own) for prior, own in tasks.items()}
    most = max(len(raw) for raw, _ in columns.values())

    def fitted(half: slice) -> Calibration:
        sides = [
            [np.resize(side[half], most) for side in column] for column in columns.values()
        ]  # (priors, 2, rows)
        raw, gold = np.concatenate(sides, axis=1)
        return fit_calibration(raw, gold)

    errors: dict[str, Fact] = {}
    halves = slice(0, None, 2), slice(1, None, 2)
    for prior, (raw, gold) in columns.items():
        parts = [
            calibration_error(fitted(other).apply(raw[own]), gold[own])
            for own, other in (halves, halves[::-1])
        ]
        errors[f"calibration_error_{prior}"] = round(sum(parts) / 2, 3)
    return fitted(slice(None)), errors


def _even_rows(scorer: OnnxScorer, tasks: Sequence[Task]) -> tuple[FloatArray, FloatArray]:
    """Raw scores and gold of tasks in a random order, with as many rows of each task."""
    draw = np.random.default_rng(0)
    most = min(CALIBRATION_ROWS, max(len(task) for task in tasks))
    raws, golds = [], []
    for task in tasks:
        rows = draw.permutation(len(task))[:most]
        drawn = task.take(rows)
        raw = scorer.score(drawn.sentences1, drawn.sentences2, drawn.conditions, scale="raw")
        raws.append(np.resize(raw, most))
        golds.append(np.resize(drawn.gold, most))
    order = draw.permutation(most * len(tasks))
    return np.concatenate(raws)[order], np.concatenate(golds)[order]


def calibration_error(scores: ArrayLike, gold: ArrayLike, *, bins: int = 10) -> float:
    """Compute how far the mean label is from the score, on average.

    The expected calibration error of Naeini et al. (2015), over bins of as many rows each.

    Example:
        >>> calibration_error([0.0, 0.5, 0.5, 1.0], [0.0, 0.0, 1.0, 0.5], bins=2)
        0.125
    """
    values, labels = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    _, tied = np.unique(values, return_inverse=True)
    # Otherwise the order of equal scores would count.
    labels = (np.bincount(tied, labels) / np.bincount(tied))[tied]
    parts = np.array_split(np.argsort(values, kind="stable"), min(bins, values.size))
    return float(sum(abs((values[rows] - labels[rows]).sum()) for rows in parts) / values.size)
