"""The tables of an index in LanceDB, in a folder or at any address that LanceDB takes."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, ValidationError

from condsim import __version__
from condsim.cache import digest, locked
from condsim.config import Settings
from condsim.errors import CondSimError, InputError, require
from condsim.io import check_folder, expanded
from condsim.model.embedding import EmbeddingScorer
from condsim.model.settings import revision_of
from condsim.search.records import KEY, NUMBER, VECTOR, Kind
from condsim.types import IntArray

Model = str | Path | EmbeddingScorer | None
"""A model as `condsim.load` takes it, or one that is loaded."""

FORMAT = 1
ROWS = "rows"
_ABOUT = "about"
_FULL = ("no space left", "disk quota", "file too large")
_RUST = re.compile(r", \S*\.rs:\d+.*", re.DOTALL)  # a place in the source of LanceDB
_AT_ONCE = 10_000  # numbers in one filter
_OLD = timedelta(seconds=10)  # versions of a table that nobody reads any more
_AHEAD = str(16 << 20)  # bytes that LanceDB reads ahead; by default it may be 2 GB


class About(Settings):
    """What an index says of itself."""

    what: ClassVar[str] = "index"

    format: int = FORMAT
    condsim: str = __version__
    model: str  # as `condsim.load` takes it
    revision: str | None  # changes when the scores of the model may; None if unknown
    first_stage: str  # name of the stored vectors
    dimension: int  # of a stored vector
    text: str  # the column of the texts
    key: str | None  # the column of the keys; None where rows are known by their number
    columns: dict[str, Kind]
    source: str  # stands for the rows it is built of
    complete: bool = False  # built to the end
    prepared: dict[str, str] = Field(default_factory=dict)  # tables of vectors, by condition


@dataclass(frozen=True)
class Added:
    """What became of rows that were added.

    Attributes:
        replaced: Rows in the place of others with their keys.
        present: Rows that were left out, for their keys were there.
    """

    added: int = 0
    replaced: int = 0
    present: int = 0


class Store:
    """Opens, reads and writes the tables; every error of LanceDB is one line."""

    def __init__(self, uri: str | Path) -> None:
        """Keeps the address; nothing is read or made yet."""
        self.uri = str(uri)
        self.folder = None if "://" in self.uri else expanded(self.uri)
        self._tables: dict[str, Any] = {}
        self._numbers: dict[str, tuple[int, IntArray]] = {}
        self._places: tuple[int, IntArray, IntArray] | None = None
        self._opened: Any = None

    @property
    def _connection(self) -> Any:  # noqa: ANN401  (LanceDB)
        if self._opened is None:
            os.environ.setdefault("LANCEDB_LOG", "error")  # or it logs what is no fault
            os.environ.setdefault("LANCE_DEFAULT_IO_BUFFER_SIZE", _AHEAD)
            library = require("lancedb", extra="search")
            self._opened = library.connect(str(self.folder or self.uri))
        return self._opened

    @contextmanager
    def told(self, doing: str) -> Iterator[None]:
        """Turns an error of LanceDB into one line; ``doing`` is such as ``"read"``."""
        try:
            yield
        except CondSimError:
            raise
        except (OSError, ValueError, RuntimeError, KeyError, pa.ArrowException) as error:
            reason = short(error)
            if any(word in str(error).lower() for word in _FULL):
                raise InputError(
                    f"No space is left for the index {self.uri}. What was written before is whole; "
                    "make room and run the same command again."
                ) from error
            raise InputError(
                f"The index {self.uri} cannot be {doing} ({reason}). If files of it are missing or "
                "damaged, build it anew in another folder."
            ) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps other processes of this machine from writing."""
        if self.folder is None:
            lock = Path(tempfile.gettempdir(), f"condsim-{digest({'uri': self.uri})}.lock")
        else:
            folder = self.folder.absolute()
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{self.folder} is a file; an index is a folder.")
            lock = folder.with_name(f"{folder.name}.lock")
        busy = f"Another process writes the index {self.uri}. Run the command again when it ended."
        with locked(lock, busy=busy):
            yield

    def find(self) -> About | None:
        """Reads what the index says of itself; None if there is none."""
        if self.folder is not None:
            check_folder(self.folder, what="index", own=[f"{_ABOUT}.lance"])
            if not (self.folder / f"{_ABOUT}.lance").is_dir():
                return None
        with self.told("read"):
            connection = self._connection
            if self.folder is None and _ABOUT not in connection.list_tables().tables:
                return None
            (content,) = connection.open_table(_ABOUT).to_arrow()["json"].to_pylist()
        try:
            return About.model_validate_json(content)
        except ValidationError as error:
            raise InputError(
                f"The index {self.uri} was made by another version of condsim (format {FORMAT} is "
                "needed); build it anew."
            ) from error

    def about(self) -> About:
        """As `find`; raises `InputError` if there is none."""
        about = self.find()
        if about is None:
            raise InputError(
                f"There is no index in {self.uri}; make one with condsim index build FILE --output."
            )
        if about.format != FORMAT:
            raise InputError(
                f"The index {self.uri} has format {about.format}; this condsim reads {FORMAT}. "
                f"Build it anew, or install condsim {about.condsim}."
            )
        return about

    def keep(self, about: About) -> None:
        """Writes what the index says of itself, in one step."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        with self.told("written"):
            table = pa.table({"json": [about.model_dump_json()]})
            self._connection.create_table(_ABOUT, table, mode="overwrite")

    def table(self, name: str, schema: pa.Schema | None = None) -> Any:  # noqa: ANN401  (LanceDB)
        """Opens a table; makes it where a schema is given and it is missing."""
        if name not in self._tables:
            with self.told("read"):
                self._tables[name] = (
                    self._connection.open_table(name)
                    if schema is None
                    else self._connection.create_table(name, schema=schema, exist_ok=True)
                )
        return self._tables[name]

    def column(self, name: str, columns: Sequence[str], where: str | None = None) -> pa.Table:
        """Reads some columns of all rows of a table, and their ``_rowid``."""
        query = self.table(name).search().select(list(columns)).with_row_id(True)
        with self.told("read"):
            return (query if where is None else query.where(where)).to_arrow()

    def numbers(self, name: str) -> IntArray:
        """Reads the numbers that a table of vectors has; they are kept until it changes."""
        version = self.table(name).version
        if self._numbers.get(name, (-1,))[0] != version:
            self._numbers[name] = version, self.column(name, [NUMBER])[NUMBER].to_numpy()
        return self._numbers[name][1]

    def places(self) -> tuple[IntArray, IntArray]:
        """Numbers of all rows, sorted, and where LanceDB has them, ``(n,)`` each."""
        version = self.table(ROWS).version
        if self._places is None or self._places[0] != version:
            found = self.column(ROWS, [NUMBER])
            numbers = found[NUMBER].to_numpy()
            order = np.argsort(numbers)
            self._places = version, numbers[order], found["_rowid"].to_numpy()[order]
        return self._places[1:]

    def rows(self, numbers: IntArray, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Reads rows by their numbers, in that order."""
        known, ids = self.places()
        wanted = ids[np.searchsorted(known, numbers)].tolist()
        query = self.table(ROWS).take_row_ids(wanted).select([*columns, NUMBER])
        with self.told("read"):
            found = {record[NUMBER]: record for record in query.to_arrow().to_pylist()}
        return [found[number] for number in numbers.tolist()]

    def unprepared(self, name: str) -> IntArray:
        """Numbers of the rows that have no vector in a table."""
        rows = self.places()[0]
        return np.setdiff1d(rows, self.numbers(name), assume_unique=True).astype(np.int64)

    def refresh(self) -> None:
        """Goes on to what other processes have written."""
        with self.told("read"):
            for table in self._tables.values():
                table.checkout_latest()

    def is_approximate(self) -> bool:
        """Whether LanceDB has an index of the stored vectors."""
        with self.told("read"):
            return any(one.columns == [VECTOR] for one in self.table(ROWS).list_indices())

    def check_filter(self, where: str, columns: Mapping[str, Kind]) -> None:
        """Refuses a filter that is no SQL, or names a column that there is not."""
        rows = self.table(ROWS)
        try:
            rows.search().where(where).explain_plan()
        except (ValueError, RuntimeError) as error:
            known = ", ".join(columns)
            raise InputError(
                f"The filter {where!r} cannot be used: {short(error)}. It must be a condition in "
                f"SQL, such as \"year > 2020 AND kind = 'review'\", on the columns {known}."
            ) from None

    def add(
        self, name: str, rows: pa.Table | pa.RecordBatchReader, *, replace: bool = False
    ) -> None:
        """Adds rows to a table in one step; if ``replace``, in the place of those of their keys."""
        table = self.table(name)
        with self.told("written"):
            if replace:
                merge = table.merge_insert(KEY).when_matched_update_all()
                merge.when_not_matched_insert_all().execute(rows)
            else:
                table.add(rows)

    def tidy(self, name: str) -> None:
        """Joins the small files of a table that many steps made."""
        with self.told("written"):
            self.table(name).optimize(cleanup_older_than=_OLD)

    def remove(self, name: str, numbers: IntArray) -> None:
        """Deletes rows of a table by their numbers."""
        with self.told("written"):
            for start in range(0, len(numbers), _AT_ONCE):
                some = ",".join(map(str, numbers[start : start + _AT_ONCE].tolist()))
                self.table(name).delete(f"{NUMBER} IN ({some})")


def short(error: BaseException) -> str:
    """The first words of an error of LanceDB, without the places in its source."""
    text = _RUST.sub("", str(error))
    text = " ".join(text.removeprefix("Invalid input, ").split()).rstrip(".")
    return text if len(text) <= 160 else f"{text[:157]}..."


def named(model: Model) -> tuple[str, str | None]:
    """Name and revision of a model; a loaded one has a name only."""
    if isinstance(model, EmbeddingScorer):
        return model.name, None
    given = "default" if model is None else model
    return str(given), revision_of(given)


def check_model(store: Store, about: About, name: str, revision: str | None) -> None:
    """Raises `InputError` for a model that is not the one of an index."""
    known = revision is not None and about.revision is not None
    if revision == about.revision if known else name == about.model:
        return
    raise InputError(
        f"The index {store.uri} holds vectors of the model {about.model!r} (revision "
        f"{about.revision}), not of {name!r} ({revision}). Give that model, or build the index "
        "anew."
    )
