"""Store of an annotation project: one SQLite file next to the data set."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from condsim.annotation.stages import STAGES, Item, Stage, TaskAnswer
from condsim.errors import InputError
from condsim.io import Closing

STORE_VERSION = 1
_FILE_NAME = "annotation.sqlite"
# The columns are those of the types below; `task` is null if the item is not known to be on the
# server, `removed` is 1 if the annotation was deleted there, `sent` is 1 if a proposal is there.
_SCHEMA = """
create table if not exists projects (
    stage text primary key, server text not null, project integer not null, source text not null,
    annotators integer not null, anyone integer not null
);
create table if not exists items (
    stage text not null, item text not null, place integer not null, shown text not null,
    facts text not null, task integer, primary key (stage, item)
);
create table if not exists annotations (
    stage text not null, source text not null, annotation text not null, item text not null,
    annotator text not null, high text, low text, rating integer, seconds real,
    created text not null, updated text not null, prefilled_by text not null,
    cancelled integer not null, removed integer not null,
    primary key (stage, source, annotation)
);
create table if not exists proposals (
    stage text not null, item text not null, model text not null, high text, low text,
    rating integer, sent integer not null, primary key (stage, item, model)
);
create table if not exists pool (
    annotator text primary key, accepted integer not null, decided_by text not null,
    condition_score real, rating_score real
);
"""


class Project(NamedTuple):
    """The project of a stage: base URL or "mturk", and number on the server.

    Two projects never have the same source. ``annotators`` are the answers for each item, and
    ``anyone`` tells whether answers of people outside the pool count.
    """

    server: str
    project: int
    source: str
    annotators: int
    anyone: bool


class Annotation(NamedTuple):
    """One answer of one annotator to one item; times are ISO 8601.

    ``prefilled_by`` is the model whose answer was on the page, changed or not; a cancelled item was
    skipped by the annotator.
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
    cancelled: bool = False


class Proposal(NamedTuple):
    """The answer of a model to an item, for annotators to start from."""

    item: str
    model: str
    answer: TaskAnswer
    sent: bool = False


class PoolMember(NamedTuple):
    """Decision about an annotator, by the "test" or by "hand"."""

    annotator: str
    accepted: bool
    decided_by: str
    condition_score: float | None = None
    rating_score: float | None = None


class AnnotationStore(Closing):
    """The annotation of one data set in its folder; use it as a context manager."""

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        self.path = folder / _FILE_NAME
        if not make and not self.path.is_file():
            raise InputError(
                f"There is no {self.path}. Run 'condsim build push' first, or give the --folder of "
                "the data set."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=60)
            (version,) = self._connection.execute("pragma user_version").fetchone()
            (tables,) = self._connection.execute("select count(*) from sqlite_schema").fetchone()
            if version not in (0, STORE_VERSION) or (version == 0 and tables):
                raise InputError(
                    f"{self.path} is not an annotation store of this version of condsim (its "
                    f"version is {version})."
                )
            self._connection.executescript(_SCHEMA)
            self._connection.execute(f"pragma user_version = {STORE_VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"{self.path} cannot be used as an annotation store: {error}."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Write the changes inside the block together or, on an error, not at all."""
        try:
            self._connection.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path} cannot be written: {error}. Nothing was changed."
            ) from error

    def project(self, stage: Stage) -> Project | None:
        """Return the project of a stage; None if it was not pushed."""
        row = self._connection.execute(
            "select server, project, source, annotators, anyone from projects where stage = ?",
            (stage,),
        ).fetchone()
        return None if row is None else Project._make((*row[:4], bool(row[4])))

    def set_project(self, stage: Stage, project: Project) -> None:
        """Write the project of a stage."""
        self._replace("projects", [(stage, *project)])

    def sources(self) -> set[str]:
        """Return the keys of all projects that annotations were pulled from."""
        return {row[0] for row in self._connection.execute("select source from annotations")}

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages that have items, in their order."""
        rows = self._connection.execute("select distinct stage from items")
        names = {row[0] for row in rows}
        return tuple(stage for stage in STAGES if stage in names)

    def add_items(self, stage: Stage, items: Iterable[Item]) -> int:
        """Add the items that are not in the store, and return their number."""
        stored = self.items(stage)
        fresh = {item.item_id: item for item in items if item.item_id not in stored}
        rows = [
            (stage, item_id, index, _to_json(item.shown), _to_json(item.facts), None)
            for index, (item_id, item) in enumerate(fresh.items(), start=len(stored))
        ]
        self._replace("items", rows)
        return len(fresh)

    def items(self, stage: Stage) -> dict[str, Item]:
        """Return the items of a stage by id, in the order in which they were added."""
        rows = self._connection.execute(
            "select item, shown, facts, task from items where stage = ? order by place", (stage,)
        )
        return {
            item: Item(item, json.loads(texts), json.loads(facts), task)
            for item, texts, facts, task in rows
        }

    def set_shown(self, stage: Stage, item: str, texts: Mapping[str, str]) -> None:
        """Write the texts that annotators see of an item."""
        self._connection.execute(
            "update items set shown = ? where stage = ? and item = ?",
            (_to_json(texts), stage, item),
        )

    def set_tasks(self, stage: Stage, tasks: Iterable[tuple[str, int | None]]) -> None:
        """Write the numbers of items on the server; None for items that are not there."""
        self._connection.executemany(
            "update items set task = ? where stage = ? and item = ?",
            ((task, stage, item) for item, task in tasks),
        )

    def put_annotations(self, stage: Stage, annotations: Iterable[Annotation]) -> None:
        """Write annotations; the same source and id replace an earlier one."""
        self._replace(
            "annotations", ((stage, *row[:4], *row.answer, *row[5:], False) for row in annotations)
        )

    def set_removed(self, stage: Stage, source: str, annotations: Iterable[str]) -> None:
        """Mark annotations that were deleted on the server; they stay in the file."""
        self._connection.executemany(
            "update annotations set removed = 1 where stage = ? and source = ? and annotation = ?",
            ((stage, source, annotation) for annotation in annotations),
        )

    def annotations(self, stage: Stage, *, source: str | None = None) -> list[Annotation]:
        """Return the annotations of a stage without the removed ones, earliest first."""
        rows = self._connection.execute(
            "select source, annotation, item, annotator, high, low, rating, seconds, created, "
            "updated, prefilled_by, cancelled from annotations where stage = ? and not removed "
            "order by created, source, annotation",
            (stage,),
        )
        return [
            Annotation._make((*row[:4], TaskAnswer(*row[4:7]), *row[7:11], bool(row[11])))
            for row in rows
            if source in (None, row[0])
        ]

    def put_proposals(self, stage: Stage, proposals: Iterable[Proposal]) -> None:
        """Write answers of models; a model's new answer to an item replaces its old one."""
        self._replace(
            "proposals", ((stage, row.item, row.model, *row.answer, row.sent) for row in proposals)
        )

    def proposals(self, stage: Stage) -> list[Proposal]:
        """Return the answers of models to the items of a stage."""
        rows = self._connection.execute(
            "select item, model, high, low, rating, sent from proposals where stage = ? "
            "order by model, item",
            (stage,),
        )
        return [Proposal(row[0], row[1], TaskAnswer(*row[2:5]), bool(row[5])) for row in rows]

    def put_pool(self, members: Sequence[PoolMember]) -> None:
        """Write decisions; the test does not replace a decision by hand."""
        by_hand = {name for name, row in self.pool().items() if row.decided_by == "hand"}
        self._replace(
            "pool",
            (row for row in members if row.decided_by == "hand" or row.annotator not in by_hand),
        )

    def pool(self) -> dict[str, PoolMember]:
        """Return the decisions about annotators by name."""
        rows = self._connection.execute("select * from pool order by annotator")
        return {row[0]: PoolMember(row[0], bool(row[1]), *row[2:]) for row in rows}

    def _replace(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Insert rows into a table, or replace those with the same key."""
        (width,) = self._connection.execute(
            "select count(*) from pragma_table_info(?)", (table,)
        ).fetchone()
        marks = ", ".join("?" * width)
        self._connection.executemany(f"insert or replace into {table} values ({marks})", rows)


def _to_json(content: Mapping[str, object]) -> str:
    return json.dumps(dict(content), ensure_ascii=False)
