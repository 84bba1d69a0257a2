"""Extra rows to fit on, drawn so that the condition alone does not tell whether it applies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.tasks.applicability import load_applicability
from condsim.types import Task

__all__ = ["SAMPLE", "load_extra"]

SAMPLE = 12_000
"""Most extra rows that are kept, unless asked otherwise."""


def load_extra(
    paths: Sequence[Path | str], *, sample: int = SAMPLE, seed: int = 0, exclude: Task | None = None
) -> Task:
    """Loads extra rows: of each condition as many that it applies to as not.

    Args:
        paths: Files as `condsim.tasks.applicability.load_applicability` reads them, one or more;
            one may hold the rows that apply and another those that do not.
        sample: Most rows to keep, 2 or more.
        seed: Seed of the draw.
        exclude: Rows none of whose sentences may be kept: those that are measured on.

    Returns:
        The rows drawn, in the order of the files.

    Raises:
        InputError: If a file breaks a rule, or no condition has rows of both kinds.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    if sample < 2:
        raise InputError(f"The 'sample' of extra rows must be 2 or more. Got {sample}.")
    tasks = [load_applicability(path, require_both=False) for path in paths]
    joined = Task(
        name=" + ".join(task.name for task in tasks),
        revision=" + ".join(task.revision for task in tasks),
        sentences1=tuple(text for task in tasks for text in task.sentences1),
        sentences2=tuple(text for task in tasks for text in task.sentences2),
        conditions=tuple(text for task in tasks for text in task.conditions or ()),
        labels=np.concatenate([task.labels for task in tasks]),
        label_range=(0.0, 1.0),
    )
    kept_apart = set() if exclude is None else {*exclude.sentences1, *exclude.sentences2}
    rows_of: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    conditions = joined.conditions or ()
    random = np.random.default_rng(seed)
    for row in random.permutation(len(joined)).tolist():
        if kept_apart.isdisjoint((joined.sentences1[row], joined.sentences2[row])):
            rows_of[conditions[row].casefold()][int(joined.labels[row])].append(row)
    pairs = [
        pair
        for condition in sorted(rows_of)
        for pair in zip(*rows_of[condition], strict=False)  # the rest of the more frequent kind
    ]
    if not pairs:
        raise InputError(
            f"{joined.name}: some condition must have a row that it applies to (label 1 to 5) and "
            "one that it does not (label -1), sentences of the rows measured on left out. Give "
            "both files of 'condsim build weak --absent'."
        )
    drawn = random.permutation(len(pairs))[: sample // 2]
    return joined.take(np.sort(np.array([pairs[number] for number in drawn]).ravel()))
