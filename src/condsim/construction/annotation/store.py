"""What was given out and what came back: one SQLite file beside the data set."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from condsim.construction.annotation.stages import STAGES, Answer, Stage, Work
from condsim.errors import InputError
from condsim.files import Closing

VERSION = 1

SCHEMA = """
create table if not exists projects (
    stage text primary key,
    server text not null,              -- base URL, no secret in it
    project integer not null,          -- its number on the server
    source text not null,              -- what its annotations are kept under
    annotators integer not null,       -- wanted for each item
    anyone integer not null            -- 1: answers count whoever gives them; 0: the pool's only
);
create table if not exists items (
    stage text not null,
    item text not null,
    place integer not null,            -- order in which items were given out
    shown text not null,               -- JSON: what annotators see
    facts text not null,               -- JSON: what they must not see
    task integer,                      -- number on the server; null: not there, or not yet known
    primary key (stage, item)
);
create table if not exists annotations (
    stage text not null,
    source text not null,              -- the project on a server, or 'mturk'
    annotation text not null,          -- its id there
    item text not null,
    annotator text not null,
    high text,
    low text,
    rating integer,
    seconds real,
    created text not null,             -- ISO 8601
    updated text not null,
    prefilled_by text not null,        -- model whose answer was on the page; '' for none
    cancelled integer not null,        -- 1: the annotator skipped the item
    removed integer not null,          -- 1: no longer on the server
    primary key (stage, source, annotation)
);
create table if not exists proposals (
    stage text not null,
    item text not null,
    model text not null,
    high text,
    low text,
    rating integer,
    sent integer not null,             -- 1: on the server
    primary key (stage, item, model)
);
create table if not exists pool (
    annotator text primary key,
    accepted integer not null,
    decided_by text not null,          -- 'test' or 'hand'; the hand goes first
    condition_score real,              -- share in [0, 1] of written conditions that will do
    rating_score real                  -- share in [0, 1] of ratings near the right answer
);
"""


class Project(NamedTuple):
    """Where a stage is annotated.

    Attributes:
        server: Base URL of the Label Studio server.
        project: Number of the project there.
        source: What its annotations are kept under; two projects never share one, even where a
            server that was set up anew gives the same number.
        annotators: Answers wanted for each item.
        anyone: Whether answers count whoever gives them; else only those of the pool.
    """

    server: str
    project: int
    source: str
    annotators: int
    anyone: bool


class StoredWork(NamedTuple):
    """An item that was given out.

    Attributes:
        work: The item.
        task: Its number on the server; None where it is not known to be there.
    """

    work: Work
    task: int | None


class Annotation(NamedTuple):
    """One answer of one annotator to one item.

    Attributes:
        source: The project on a server, or ``"mturk"``.
        annotation: Its id there.
        item: The item.
        annotator: Who gave it.
        answer: What.
        seconds: Time it took; None where it is not known.
        created: When it was first given, ISO 8601.
        updated: When it was last changed.
        prefilled_by: The model whose answer was on the page, changed or not; empty for none.
        cancelled: Whether the annotator skipped the item.
    """

    source: str
    annotation: str
    item: str
    annotator: str
    answer: Answer
    seconds: float | None
    created: str
    updated: str
    prefilled_by: str = ""
    cancelled: bool = False


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


STORE = "annotation.sqlite"
"""Name of the file in the folder of a data set."""


class Store(Closing):
    """The annotation of one data set; use it as a context manager.

    What `changes` wraps is written whole or not at all.
    """

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        """Opens the store of a folder.

        Args:
            folder: The folder of the data set.
            make: Whether to make folder and store if they are not there.

        Raises:
            InputError: If there is none, or the file is no store of this version.
        """
        path = folder / STORE
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
            self._connection.executescript(SCHEMA)
            self._connection.execute(f"pragma user_version = {VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{path} cannot be used as an annotation store: {error}.") from error

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Makes one step of what is written inside; an error takes all of it back.

        Yields:
            None.

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
        return None if row is None else Project(row[0], row[1], row[2], row[3], bool(row[4]))

    def set_project(self, stage: Stage, project: Project) -> None:
        """Writes where a stage is annotated."""
        self._connection.execute(
            "insert or replace into projects values (?, ?, ?, ?, ?, ?)", (stage, *project)
        )

    def sources(self) -> set[str]:
        """Gives the sources that annotations were ever taken from."""
        return {row[0] for row in self._connection.execute("select source from annotations")}

    def stages(self) -> tuple[Stage, ...]:
        """Gives the stages that have items, in their order."""
        found = {row[0] for row in self._connection.execute("select distinct stage from items")}
        return tuple(stage for stage in STAGES if stage in found)

    def add_items(self, stage: Stage, works: Iterable[Work]) -> int:
        """Adds items; those that are there stay as they are.

        Returns:
            Number of items added.
        """
        there = self.items(stage)
        fresh = {work.item_id: work for work in works if work.item_id not in there}
        texts = [
            (item, len(there) + place, _to_json(dict(work.shown)), _to_json(dict(work.facts)))
            for place, (item, work) in enumerate(fresh.items())
        ]
        self._connection.executemany(
            "insert into items values (?, ?, ?, ?, ?, null)", ((stage, *text) for text in texts)
        )
        return len(fresh)

    def items(self, stage: Stage) -> dict[str, StoredWork]:
        """Gives the items of a stage by id, in the order in which they were given out."""
        rows = self._connection.execute(
            "select item, shown, facts, task from items where stage = ? order by place", (stage,)
        )
        return {
            item: StoredWork(Work(item, json.loads(shown), json.loads(facts)), task)
            for item, shown, facts, task in rows
        }

    def set_shown(self, stage: Stage, item: str, shown: Mapping[str, str]) -> None:
        """Writes what annotators now see of an item."""
        self._connection.execute(
            "update items set shown = ? where stage = ? and item = ?",
            (_to_json(dict(shown)), stage, item),
        )

    def set_tasks(self, stage: Stage, tasks: Iterable[tuple[str, int | None]]) -> None:
        """Writes which task on the server an item is; None for none."""
        self._connection.executemany(
            "update items set task = ? where stage = ? and item = ?",
            ((task, stage, item) for item, task in tasks),
        )

    def put_annotations(self, stage: Stage, annotations: Iterable[Annotation]) -> None:
        """Writes annotations; one with the same source and id replaces its old self."""
        self._connection.executemany(
            "insert or replace into annotations values (?,?,?,?,?,?,?,?,?,?,?,?,?,0)",
            (
                (
                    stage,
                    one.source,
                    one.annotation,
                    one.item,
                    one.annotator,
                    one.answer.high,
                    one.answer.low,
                    one.answer.rating,
                    one.seconds,
                    one.created,
                    one.updated,
                    one.prefilled_by,
                    one.cancelled,
                )
                for one in annotations
            ),
        )

    def set_removed(self, stage: Stage, source: str, annotations: Iterable[str]) -> None:
        """Marks annotations that are no longer on the server; they stay in the file."""
        self._connection.executemany(
            "update annotations set removed = 1 where stage = ? and source = ? and annotation = ?",
            ((stage, source, annotation) for annotation in annotations),
        )

    def annotations(self, stage: Stage) -> list[Annotation]:
        """Gives the annotations of a stage that still stand, the earliest first."""
        rows = self._connection.execute(
            "select source, annotation, item, annotator, high, low, rating, seconds, created, "
            "updated, prefilled_by, cancelled from annotations where stage = ? and not removed "
            "order by created, source, annotation",
            (stage,),
        )
        return [
            Annotation(
                source=row[0],
                annotation=row[1],
                item=row[2],
                annotator=row[3],
                answer=Answer(row[4], row[5], row[6]),
                seconds=row[7],
                created=row[8],
                updated=row[9],
                prefilled_by=row[10],
                cancelled=bool(row[11]),
            )
            for row in rows
        ]

    def put_proposals(self, stage: Stage, proposals: Iterable[Proposal]) -> None:
        """Writes what models say; a model's new answer to an item replaces its old one."""
        self._connection.executemany(
            "insert or replace into proposals values (?, ?, ?, ?, ?, ?, ?)",
            (
                (stage, one.item, one.model, *_fields(one.answer), int(one.sent))
                for one in proposals
            ),
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
        self._connection.executemany(
            "insert or replace into pool values (?, ?, ?, ?, ?)",
            (one for one in members if one.decided_by == "hand" or one.annotator not in by_hand),
        )

    def pool(self) -> dict[str, PoolMember]:
        """Gives the decisions about annotators by name."""
        rows = self._connection.execute("select * from pool order by annotator")
        return {row[0]: PoolMember(row[0], bool(row[1]), *row[2:]) for row in rows}


def _to_json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)


def _fields(answer: Answer) -> tuple[str | None, str | None, int | None]:
    return answer.high, answer.low, answer.rating
