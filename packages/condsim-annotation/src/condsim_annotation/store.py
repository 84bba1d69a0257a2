"""Store of an annotation project: one SQLite file next to the data set."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import TypeAdapter

from condsim.errors import InputError, one_line
from condsim_annotation.stages import STAGES, Item, Stage, TaskAnswer
from condsim_llm.database import open_database

STORE_VERSION = 2
_FILE_NAME = "annotation.sqlite"
# The content is JSON with the fields of the types below; rows of a key keep their place.
_SCHEMA = """create table if not exists rows (
    kind text, stage text, key text, content text not null, primary key (kind, stage, key)
)"""
_UPSERT = "insert into rows values (?, ?, ?, ?) on conflict do update set content=excluded.content"


@dataclass(frozen=True)
class Project:
    """The project of a stage: base URL or "mturk", and number on the server.

    Two projects never have the same source. ``annotators`` are the answers for each item, and
    ``anyone`` tells whether answers of people outside the pool count.
    """

    server: str
    project: int
    source: str
    annotators: int
    anyone: bool


@dataclass(frozen=True)
class Annotation:
    """One answer of one annotator to one item; times are ISO 8601.

    ``annotation`` is its key within the source, the same after an edit; ``prefilled_by`` the model
    whose answer was on the page, changed or not. A canceled item was skipped by the annotator.
    """

    source: str
    annotation: str
    item: str
    annotator: str
    answer: TaskAnswer
    seconds: float | None
    created: str
    updated: str
    prefilled_by: str = ""
    canceled: bool = False
    removed: bool = False


@dataclass(frozen=True)
class Proposal:
    """The answer of a model to an item, for annotators to start from."""

    item: str
    model: str
    answer: TaskAnswer
    sent: bool = False


@dataclass(frozen=True)
class PoolMember:
    """Decision about an annotator, by the "test" or by "hand"."""

    annotator: str
    accepted: bool
    decided_by: str
    condition_score: float | None = None
    rating_score: float | None = None


StoredRow: TypeAlias = Project | Item | Annotation | Proposal | PoolMember
RowT = TypeVar("RowT", bound=StoredRow)
_ADAPTERS: dict[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind) for kind in (Project, Item, Annotation, Proposal, PoolMember)
}


class AnnotationStore(AbstractContextManager["AnnotationStore"]):
    """The annotation of one data set in its folder; use it as a context manager."""

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        self.path = folder / _FILE_NAME
        if not make and not self.path.is_file():
            raise InputError(
                f"There is no {self.path}. Run 'condsim build push' first, or give the --folder of "
                "the data set."
            )
        self._connection = open_database(
            self.path, _SCHEMA, version=STORE_VERSION, subject="an annotation store"
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, stage: Stage, rows: Iterable[StoredRow]) -> None:
        """Write rows together or, on an error, not at all; those with the same key are replaced.

        The key is the id of an item, the source and key of an annotation, the model and item of a
        proposal, the name of a pool member; a stage has one project.
        """
        cells = []
        for row in rows:
            content = _ADAPTERS[type(row)].dump_json(row).decode()
            cells.append((type(row).__name__, stage, _key_of(row), content))
        message = f"{self.path} cannot be written"
        with one_line(message, sqlite3.Error, advice="Nothing was changed."), self._connection:
            self._connection.executemany(_UPSERT, cells)

    def _read(self, kind: type[RowT], stage: Stage) -> list[RowT]:
        """Read rows in the order in which they were added."""
        rows = self._connection.execute(
            "select content from rows where kind = ? and stage = ? order by rowid",
            (kind.__name__, stage),
        )
        return [_ADAPTERS[kind].validate_json(content) for (content,) in rows]

    def project(self, stage: Stage) -> Project | None:
        """Return the project of a stage; None if it was not pushed."""
        return next(iter(self._read(Project, stage)), None)

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that have items, in their order."""
        return tuple(stage for stage in STAGES if self._read(Item, stage))

    def items(self, stage: Stage) -> dict[str, Item]:
        """Return the items of a stage by id."""
        return {item.item_id: item for item in self._read(Item, stage)}

    def pushed_items(self, stage: Stage) -> dict[str, Item]:
        """Return the items of a stage by id; InputError if there are none yet."""
        items = self.items(stage)
        if not items:
            raise InputError(
                f"The stage {stage!r} has no items; run 'condsim build push {stage}' or 'condsim "
                f"build mturk form {stage}' first."
            )
        return items

    def add_items(self, stage: Stage, items: Iterable[Item]) -> int:
        """Add the items that are not in the store, and return their number."""
        stored = self.items(stage)
        fresh = {item.item_id: item for item in items if item.item_id not in stored}
        self.write(stage, fresh.values())
        return len(fresh)

    def annotations(self, stage: Stage, *, source: str | None = None) -> list[Annotation]:
        """Return the annotations of a stage without the removed ones, earliest first."""
        rows = [
            row
            for row in self._read(Annotation, stage)
            if not row.removed and source in (None, row.source)
        ]
        return sorted(rows, key=lambda row: (row.created, row.source, row.annotation))

    def proposals(self, stage: Stage) -> list[Proposal]:
        """Return the answers of models to the items of a stage."""
        return self._read(Proposal, stage)

    def pool(self) -> dict[str, PoolMember]:
        """Return the decisions about annotators by name."""
        return {row.annotator: row for row in self._read(PoolMember, "qualification")}


def _key_of(row: StoredRow) -> str:
    match row:
        case Item():
            return row.item_id
        case Annotation():
            return f"{row.source} {row.annotation}"
        case Proposal():
            return f"{row.model} {row.item}"
        case PoolMember():
            return row.annotator
    return ""
