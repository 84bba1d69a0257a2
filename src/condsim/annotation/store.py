"""What was handed out and what came back: one SQLite file beside the data set."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from condsim.annotation.stages import STAGES, Answer, Item, Stage
from condsim.errors import InputError
from condsim.io import Closing

VERSION = 1
_FILE = "annotation.sqlite"  # in the folder of a data set


class Project(NamedTuple):
    """Where a stage is annotated; two projects never share a source."""

    server: str  # base URL, or "mturk"
    project: int  # its number there
    source: str  # what its annotations are kept under
    annotators: int  # answers wanted for each item
    anyone: bool  # answers count whoever gives them; else only those of the pool


class Annotation(NamedTuple):
    """One answer of one annotator to one item."""

    source: str  # the project on a server, or "mturk"
    annotation: str  # its id there
    item: str
    annotator: str
    answer: Answer
    seconds: float | None  # None where it is not known
    created: str  # ISO 8601
    updated: str
    prefilled_by: str = ""  # the model whose answer was on the page, changed or not
    cancelled: bool = False  # the annotator skipped the item


class Proposal(NamedTuple):
    """What a model says of an item, for annotators to start from."""

    item: str
    model: str
    answer: Answer
    sent: bool = False


class PoolMember(NamedTuple):
    """Whether the answers of an annotator are taken, and why."""

    annotator: str
    accepted: bool
    decided_by: str
    condition_score: float | None = None
    rating_score: float | None = None


class AnnotationStore(Closing):
    """The annotation of one data set in a folder; use it as a context manager.

    Args:
        folder: The folder of the data set.
        make: Whether to make folder and store if they are missing.

    Raises:
        InputError: If there is no store, or the file is no store of this version.
    """

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        path = folder / _FILE
        if not make and not path.is_file():
            raise InputError(
                f"There is no {path}: begin with 'condsim build push' or name the folder that was "
                "pushed from with --folder."
            )
        self.path = path
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=60)
            (version,) = self._connection.execute("pragma user_version").fetchone()
            known = self._connection.execute("select count(*) from sqlite_schema").fetchone()[0]
            if version not in (0, VERSION) or (version == 0 and known):
                raise InputError(
                    f"{path} is no annotation store that this condsim reads (version {version}). "
                    "Give another --folder."
                )
            schema = resources.files("condsim.annotation") / "store.sql"
            self._connection.executescript(schema.read_text(encoding="utf-8"))
            self._connection.execute(f"pragma user_version = {VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{path} cannot be used as an annotation store: {error}.") from error

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Writes what is changed inside whole or, on an error, not at all.

        Raises:
            InputError: If the file cannot be written.
        """
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
                f"{self.path} cannot be written: {error}. Nothing was changed; make room, or wait "
                "until another process is done with it."
            ) from error

    def project(self, stage: Stage) -> Project | None:
        """Gives the project of a stage; None if it was not pushed."""
        row = self._connection.execute(
            "select server, project, source, annotators, anyone from projects where stage = ?",
            (stage,),
        ).fetchone()
        return None if row is None else Project._make((*row[:4], bool(row[4])))

    def set_project(self, stage: Stage, project: Project) -> None:
        """Writes where a stage is annotated."""
        self._write("projects", [(stage, *project)])

    def sources(self) -> set[str]:
        """Gives the sources that annotations were ever taken from."""
        return {row[0] for row in self._connection.execute("select source from annotations")}

    def stages(self) -> tuple[Stage, ...]:
        """Gives the stages that have items, in their order."""
        found = {row[0] for row in self._connection.execute("select distinct stage from items")}
        return tuple(stage for stage in STAGES if stage in found)

    def add_items(self, stage: Stage, items: Iterable[Item]) -> int:
        """Adds the items that are not there yet and gives their number."""
        there = self.items(stage)
        fresh = {one.item_id: one for one in items if one.item_id not in there}
        self._write(
            "items",
            (
                (stage, item_id, place, _to_json(one.shown), _to_json(one.facts), None)
                for place, (item_id, one) in enumerate(fresh.items(), start=len(there))
            ),
        )
        return len(fresh)

    def items(self, stage: Stage) -> dict[str, Item]:
        """Gives the items of a stage by id, in the order in which they were handed out."""
        rows = self._connection.execute(
            "select item, shown, facts, task from items where stage = ? order by place", (stage,)
        )
        return {
            item: Item(item, json.loads(shown), json.loads(facts), task)
            for item, shown, facts, task in rows
        }

    def set_shown(self, stage: Stage, item: str, shown: Mapping[str, str]) -> None:
        """Writes what annotators now see of an item."""
        self._connection.execute(
            "update items set shown = ? where stage = ? and item = ?",
            (_to_json(shown), stage, item),
        )

    def set_tasks(self, stage: Stage, tasks: Iterable[tuple[str, int | None]]) -> None:
        """Writes which task on the server an item is; None for none."""
        self._connection.executemany(
            "update items set task = ? where stage = ? and item = ?",
            ((task, stage, item) for item, task in tasks),
        )

    def put_annotations(self, stage: Stage, annotations: Iterable[Annotation]) -> None:
        """Writes annotations; one with the same source and id is replaced."""
        self._write(
            "annotations", ((stage, *one[:4], *one.answer, *one[5:], False) for one in annotations)
        )

    def set_removed(self, stage: Stage, source: str, annotations: Iterable[str]) -> None:
        """Marks annotations that are no longer on the server; they stay in the file."""
        self._connection.executemany(
            "update annotations set removed = 1 where stage = ? and source = ? and annotation = ?",
            ((stage, source, annotation) for annotation in annotations),
        )

    def annotations(self, stage: Stage, *, source: str | None = None) -> list[Annotation]:
        """Gives the annotations of a stage that still stand, the earliest first."""
        rows = self._connection.execute(
            "select source, annotation, item, annotator, high, low, rating, seconds, created, "
            "updated, prefilled_by, cancelled from annotations where stage = ? and not removed "
            "order by created, source, annotation",
            (stage,),
        )
        return [
            Annotation._make((*row[:4], Answer(*row[4:7]), *row[7:11], bool(row[11])))
            for row in rows
            if source in (None, row[0])
        ]

    def put_proposals(self, stage: Stage, proposals: Iterable[Proposal]) -> None:
        """Writes what models say; a model's new answer to an item replaces its old one."""
        self._write(
            "proposals", ((stage, one.item, one.model, *one.answer, one.sent) for one in proposals)
        )

    def proposals(self, stage: Stage) -> list[Proposal]:
        """Gives what models say of the items of a stage."""
        rows = self._connection.execute(
            "select item, model, high, low, rating, sent from proposals where stage = ? "
            "order by model, item",
            (stage,),
        )
        return [Proposal(row[0], row[1], Answer(*row[2:5]), bool(row[5])) for row in rows]

    def put_pool(self, members: Sequence[PoolMember]) -> None:
        """Writes who is in the pool; a decision by hand is not replaced by one of the test."""
        by_hand = {name for name, one in self.pool().items() if one.decided_by == "hand"}
        self._write(
            "pool",
            (one for one in members if one.decided_by == "hand" or one.annotator not in by_hand),
        )

    def pool(self) -> dict[str, PoolMember]:
        """Gives the decisions about annotators by name."""
        rows = self._connection.execute("select * from pool order by annotator")
        return {row[0]: PoolMember(row[0], bool(row[1]), *row[2:]) for row in rows}

    def _write(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Puts rows into a table; one with the same key is replaced."""
        (width,) = self._connection.execute(
            "select count(*) from pragma_table_info(?)", (table,)
        ).fetchone()
        marks = ", ".join("?" * width)
        self._connection.executemany(f"insert or replace into {table} values ({marks})", rows)


def _to_json(content: Mapping[str, object]) -> str:
    return json.dumps(dict(content), ensure_ascii=False)
