"""The files of a stage, with their manifests, and a line a reason for what is not in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.stages import Stage
from condsim.construction.annotation.store import Store
from condsim.construction.annotation.written import (
    WrittenCondition,
    conditions_of,
    ratings_of,
)
from condsim.construction.rows import Rating
from condsim.construction.tables import write_manifest, write_rows

__all__ = ["WrittenFile", "write_stage"]


@dataclass(frozen=True)
class WrittenFile:
    """A file of what counts.

    Attributes:
        path: The file.
        rows: Its rows.
        set_aside: Annotations that do not count: (reason, number), the most frequent first.
    """

    path: Path
    rows: int
    set_aside: tuple[tuple[str, int], ...]


def write_stage(
    store: Store, stage: Stage, folder: Path, output: Path | None = None
) -> WrittenFile | None:
    """Writes ``conditions.parquet`` or ``ratings.parquet`` and its manifest.

    Args:
        store: The store.
        stage: The stage; a qualification has no file.
        folder: Where the file goes if no other is named.
        output: The file, ``.parquet`` or ``.csv``.

    Returns:
        What was written; None for a qualification.

    Raises:
        InputError: If the file cannot be written.
        MissingExtraError: If it is Parquet and pyarrow is not installed.
    """
    if stage == "qualification":
        return None
    if stage == "conditions":
        path = output or folder / "conditions.parquet"
        rows = write_rows(conditions_of(store), path, kind=WrittenCondition)
    else:
        path = output or folder / "ratings.parquet"
        rows = write_rows(ratings_of(store), path, kind=Rating)
    outcome = outcome_of(store, stage)
    reasons = tuple(Counter(one.reason for one in outcome.set_aside).most_common())
    project = store.project(stage)
    models = Counter(one.model for one in store.proposals(stage))
    write_manifest(
        path,
        {
            "stage": stage,
            "rows": rows,
            "items": len(outcome.counted),
            "done": outcome.done,
            "annotators_per_item": outcome.wanted,
            "pool_only": project is not None and not project.anyone,
            "pool": sum(member.accepted for member in store.pool().values()),
            "set_aside": dict(reasons),
            "proposals_by_model": dict(sorted(models.items())),
        },
    )
    return WrittenFile(path, rows, reasons)
