"""Tasks of mteb with your own data, so that neither the Hub nor a network is needed."""

from __future__ import annotations

from typing import cast

import mteb
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskSTS

from condsim.errors import InputError, unknown_name
from condsim.integrations.mteb.csts import CSTS, AbsTaskConditionalSTS
from condsim.types import Task


def local_task(task: str | AbsTaskSTS, rows: Task, *, split: str | None = None) -> AbsTaskSTS:
    """Return an STS task of mteb with your own rows in place of those of the Hub.

    The revision of the data in results becomes ``local-`` and that of the rows. mteb's cache
    ignores it: evaluate with ``cache=None``, or with a folder for such results alone.

    Args:
        task: Name of a task of mteb, such as ``STS12``, or ``CSTS``; or a task, which is changed.
        rows: The rows; those without a label are left out. Only C-STS takes rows with conditions.
        split: The one split that the task evaluates from then on; its first by default.

    Raises:
        InputError: If there is no such task, it is none of STS or has several subsets, there is no
            labelled row, a label is out of its range, or only one of task and rows has conditions.
    """
    loaded = _task(task) if isinstance(task, str) else task
    name = loaded.metadata.name
    if not isinstance(loaded, AbsTaskSTS) or loaded.metadata.is_multilingual:
        raise InputError(
            f"{name} must be an STS task of one subset, such as STS12, STSBenchmark or CSTS."
        )
    labelled = rows.labelled()
    if not len(labelled):
        raise InputError(f"{name}: none of the {len(rows)} rows of {rows.name} has a label.")
    low, high = float(labelled.labels.min()), float(labelled.labels.max())
    if low < loaded.min_score or high > loaded.max_score:
        raise InputError(
            f"{name}: labels must be from {loaded.min_score} to {loaded.max_score}; those of "
            f"{rows.name} are from {low:g} to {high:g}."
        )
    first, second = (str(column) for column in loaded.column_names)
    columns: dict[str, object] = {
        first: list(labelled.sentences1),
        second: list(labelled.sentences2),
        "score": labelled.labels.astype(float).tolist(),
    }
    conditional = isinstance(loaded, AbsTaskConditionalSTS)
    if conditional != (labelled.conditions is not None):
        raise InputError(
            f"{name} needs rows {'with' if conditional else 'without'} conditions; those of "
            f"{rows.name} have {'none' if conditional else 'some'}."
        )
    if isinstance(loaded, AbsTaskConditionalSTS):
        columns[loaded.condition_column] = list(labelled.conditions or ())
    split = split or loaded.eval_splits[0]
    # As mteb does for cleaned data: an attribute of the object hides that of the class.
    loaded.metadata = loaded.metadata.model_copy(
        update={"dataset": {**loaded.metadata.dataset, "revision": f"local-{rows.revision}"}}
    )
    loaded.dataset = cast(
        "dict[str, DatasetDict]", DatasetDict({split: Dataset.from_dict(columns)})
    )
    loaded.data_loaded = True
    return loaded.filter_eval_splits([split])


def _task(name: str) -> AbsTaskSTS:
    if name == CSTS.metadata.name:
        return CSTS()
    try:
        return cast("AbsTaskSTS", mteb.get_task(name))
    except KeyError:
        names = [task.metadata.name for task in mteb.get_tasks(task_types=["STS"])]
        raise unknown_name("task of mteb", name, [*names, CSTS.metadata.name]) from None
