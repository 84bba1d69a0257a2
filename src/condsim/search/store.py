"""The tables of an index in LanceDB, in a folder or at any address that LanceDB takes."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, ValidationError

from condsim import __version__
from condsim.cache import check_folder, digest, locked
from condsim.config import Settings
from condsim.data.row import join_names, short_repr
from condsim.errors import CondSimError, InputError, require
from condsim.model.embedding import EmbeddingScorer
from condsim.model.settings import name_of_folder, revision_of
from condsim.paths import expanded
from condsim.search.records import KEY, NUMBER, VECTOR, Kind
from condsim.types import FloatArray, IntArray

Model = str | Path | EmbeddingScorer | None
"""A model as `condsim.load` takes it, or a loaded one."""

FORMAT = 1
ROWS = "rows"
_METADATA = "about"
_MAPS = "maps"
# Learned maps are kept for the first conditions; each takes about a megabyte.
_MAX_MAPS = 32
# A map is learned again when the number of rows has changed by this factor.
_MAP_GROWTH = 2
_DISK_FULL = ("no space left", "disk quota", "file too large")
_NUMBERS_PER_FILTER = 10_000
_OBSOLETE_AFTER = timedelta(seconds=10)
# By default LanceDB may read 2 GB ahead.
_READ_AHEAD_BYTES = str(16 << 20)

FUNCTIONS = (
    "abs",
    "cast",
    "coalesce",
    "contains",
    "date_part",
    "ends_with",
    "length",
    "lower",
    "round",
    "starts_with",
    "upper",
)
"""Functions that a filter may call; none makes a long text of a short one."""

# Words that may stand before a bracket without being functions.
_LOGIC = ("and", "between", "ilike", "in", "like", "not", "or")
_MAX_CHARACTERS = 10_000
_TOKEN = re.compile(
    r"""\s+ | '(?:[^']|'')*' | "[^"]*" | `[^`]*` | \d[\w.]* | \w+
    | <=|>=|<>|!= | [=<>+\-*/%(),.]""",
    re.VERBOSE,
)
# LanceDB ends its messages with a place in its source.
_RUST_SOURCE = re.compile(r", \S*\.rs:\d+.*", re.DOTALL)


class IndexMetadata(Settings):
    """Description of an index, stored with it.

    Attributes:
        model: As `condsim.load` takes it.
        revision: Changes when the scores of the model may; None if unknown.
        first_stage: Name of the stored vectors.
        dimension: Length of a stored vector.
        text: Column of the texts.
        key: Column of the keys; None where rows are known by their number.
        source: Hash of the rows that the index was built from.
        complete: Whether it was built to the end.
        prepared: Tables of vectors, by condition.
        criteria: Learned criteria among these conditions, as JSON, by name.
    """

    subject: ClassVar[str] = "index"

    format: int = FORMAT
    condsim: str = __version__
    model: str
    revision: str | None
    first_stage: str
    dimension: int
    text: str
    key: str | None
    columns: dict[str, Kind]
    source: str
    complete: bool = False
    prepared: dict[str, str] = Field(default_factory=dict)
    criteria: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class AddResult:
    """Rows that were added, that replaced others with the same key, and that were present."""

    added: int = 0
    replaced: int = 0
    present: int = 0


def _check_folder(folder: Path) -> None:
    check_folder(folder, subject="index", own=[f"{_METADATA}.lance"])


class Store:
    """Open, read and write the tables; every error of LanceDB is one line."""

    def __init__(self, uri: str | Path) -> None:
        """Store the address; read and create nothing yet."""
        self.uri = str(uri)
        self.folder = None if "://" in self.uri else expanded(self.uri)
        self._tables: dict[str, Any] = {}
        self._row_ids: dict[str, tuple[int, IntArray, IntArray]] = {}
        self._opened: Any = None

    @property
    def _connection(self) -> Any:  # noqa: ANN401  (LanceDB)
        if self._opened is None:
            # Otherwise LanceDB logs warnings about normal operation.
            os.environ.setdefault("LANCEDB_LOG", "error")
            os.environ.setdefault("LANCE_DEFAULT_IO_BUFFER_SIZE", _READ_AHEAD_BYTES)
            library = require("lancedb", extra="search")
            self._opened = library.connect(str(self.folder or self.uri))
        return self._opened

    @contextmanager
    def errors(self, action: str, *, where: str | None = None) -> Iterator[None]:
        """Turn an error of LanceDB into one line; ``action`` is such as ``"read"``.

        An error of a read with a filter is the filter's, unless the rows cannot be read without it.
        """
        try:
            yield
        except CondSimError:
            raise
        except (OSError, ValueError, RuntimeError, KeyError, pa.ArrowException) as error:
            if where is not None:
                self.columns(ROWS, [NUMBER])
                columns = self.metadata().columns
                message = filter_message(where, short_reason(error), columns)
                raise InputError(message) from None
            message = (
                f"The index {self.uri} cannot be {action} ({short_reason(error)}). If files are "
                "missing or damaged, build the index again in another folder."
            )
            if any(phrase in str(error).lower() for phrase in _DISK_FULL):
                message = (
                    f"No space is left for the index {self.uri}. What was written before is "
                    "complete; free some space and run the same command again."
                )
            raise InputError(message) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes of this machine from writing."""
        if self.folder is None:
            lock = Path(tempfile.gettempdir(), f"condsim-{digest({'uri': self.uri})}.lock")
        else:
            _check_folder(self.folder)
            folder = self.folder.absolute()
            lock = folder.with_name(f"{folder.name}.lock")
        busy = f"Another process is writing the index {self.uri}. Try again when it has ended."
        with locked(lock, busy=busy):
            yield

    def find_metadata(self) -> IndexMetadata | None:
        """Read the description of the index; None if there is no index."""
        if self.folder is not None:
            _check_folder(self.folder)
            if not (self.folder / f"{_METADATA}.lance").is_dir():
                return None
        with self.errors("read"):
            connection = self._connection
            if self.folder is None and _METADATA not in connection.list_tables().tables:
                return None
            (content,) = connection.open_table(_METADATA).to_arrow()["json"].to_pylist()
        with suppress(ValidationError):
            metadata = IndexMetadata.model_validate_json(content)
            if metadata.format == FORMAT:
                return metadata
        if _format_of(content) > FORMAT:
            raise InputError(
                f"The index {self.uri} was made by a newer version of condsim (this one, "
                f"{__version__}, reads format {FORMAT}): pip install --upgrade condsim."
            )
        raise InputError(
            f"The index {self.uri} was made by another version of condsim (this one reads format "
            f"{FORMAT}); build it again."
        )

    def metadata(self) -> IndexMetadata:
        """Read the description of the index; raise `InputError` if there is no index."""
        metadata = self.find_metadata()
        if metadata is None:
            raise InputError(
                f"There is no index in {self.uri}; make one with condsim index build FILE --output."
            )
        return metadata

    def save_metadata(self, metadata: IndexMetadata) -> None:
        """Write the description of the index in one step."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        with self.errors("written"):
            table = pa.table({"json": [metadata.model_dump_json()]})
            self._connection.create_table(_METADATA, table, mode="overwrite")

    def table(self, name: str, schema: pa.Schema | None = None) -> Any:  # noqa: ANN401  (LanceDB)
        """Open a table; create it where a schema is given and it is missing."""
        if name not in self._tables:
            with self.errors("read"):
                self._tables[name] = (
                    self._connection.open_table(name)
                    if schema is None
                    else self._connection.create_table(name, schema=schema, exist_ok=True)
                )
        return self._tables[name]

    def row_count(self) -> int:
        """Return the number of rows."""
        with self.errors("read"):
            return int(self.table(ROWS).count_rows())

    def columns(self, name: str, columns: Sequence[str], where: str | None = None) -> pa.Table:
        """Read some columns of all rows of a table, and their ``_rowid``."""
        query = self.table(name).search().select(list(columns)).with_row_id(True)
        if where is not None:
            query = query.where(where)
        with self.errors("read", where=where):
            return query.to_arrow()

    def row_ids(self, name: str = ROWS) -> tuple[IntArray, IntArray]:
        """Return row numbers of a table, sorted, and their ids in LanceDB, ``(n,)`` each.

        They are cached until the table changes.
        """
        version = self.table(name).version
        if self._row_ids.get(name, (-1,))[0] != version:
            table = self.columns(name, [NUMBER])
            numbers = table[NUMBER].to_numpy()
            order = np.argsort(numbers, kind="stable")
            self._row_ids[name] = version, numbers[order], table["_rowid"].to_numpy()[order]
        return self._row_ids[name][1:]

    def rows(self, numbers: IntArray, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Read rows by their numbers, in that order."""
        sorted_numbers, ids = self.row_ids()
        row_ids = ids[np.searchsorted(sorted_numbers, numbers)].tolist()
        query = self.table(ROWS).take_row_ids(row_ids).select([*columns, NUMBER])
        with self.errors("read"):
            records = {record[NUMBER]: record for record in query.to_arrow().to_pylist()}
        return [records[number] for number in numbers.tolist()]

    def unprepared(self, name: str) -> IntArray:
        """Return the numbers of the rows that have no vector in a table."""
        rows = self.row_ids()[0]
        return np.setdiff1d(rows, self.row_ids(name)[0], assume_unique=True).astype(np.int64)

    def find_map(self, condition: str) -> FloatArray | None:
        """Return what `save_map` kept for a condition, unless the index has grown since."""
        with suppress(InputError), self.errors("read"):
            if _MAPS not in self._connection.list_tables().tables:
                return None
            kept = self._connection.open_table(_MAPS).search().where(_map_filter(condition))
            for record in kept.limit(1).to_arrow().to_pylist():
                ratio = self.row_count() / max(1, record["rows"])
                if 1 / _MAP_GROWTH < ratio < _MAP_GROWTH:
                    numbers = np.frombuffer(record["map"], np.float32)
                    size = math.isqrt(len(numbers) // 2)
                    return numbers.reshape(2, size, size)
        return None

    def save_map(self, condition: str, numbers: FloatArray) -> None:
        """Keep what a search has learned, ``(2, d, d)``; do without where that is not possible."""
        key, rows = digest({"condition": condition}), self.row_count()
        record = {"key": [key], "rows": [rows], "map": [numbers.tobytes()]}
        # Another process may be writing, or the folder may not be writable.
        with suppress(InputError, OSError), self.writing(), self.errors("written"):
            if _MAPS not in self._connection.list_tables().tables:
                self._connection.create_table(_MAPS, pa.table(record))
                return
            table = self._connection.open_table(_MAPS)
            table.delete(_map_filter(condition))
            if table.count_rows() < _MAX_MAPS:
                table.add(pa.table(record))

    def refresh(self) -> None:
        """Move to the latest version that other processes have written."""
        with self.errors("read"):
            for table in self._tables.values():
                table.checkout_latest()

    def is_approximate(self) -> bool:
        """Return whether LanceDB has an index of the stored vectors."""
        with self.errors("read"):
            return any(index.columns == [VECTOR] for index in self.table(ROWS).list_indices())

    def check_filter(self, where: str, columns: Mapping[str, Kind]) -> None:
        """Reject a filter that is not one expression of SQL, or names an unknown column."""
        try:
            check_expression(where)
            # LanceDB reads the first expression and ignores what comes after it.
            self.table(ROWS).search().where(f"({where})").explain_plan()
        except Exception as error:
            # A panic of LanceDB is of a class that it does not name.
            raise InputError(filter_message(where, short_reason(error), columns)) from None

    def add(
        self, name: str, rows: pa.Table | pa.RecordBatchReader, *, replace: bool = False
    ) -> None:
        """Add rows in one step; with ``replace``, in place of rows with the same keys."""
        table = self.table(name)
        with self.errors("written"):
            if replace:
                merge = table.merge_insert(KEY).when_matched_update_all()
                merge.when_not_matched_insert_all().execute(rows)
            else:
                table.add(rows)

    def compact(self, name: str) -> None:
        """Join the small files that many steps have left."""
        with self.errors("written"):
            self.table(name).optimize(cleanup_older_than=_OBSOLETE_AFTER)

    def remove(self, name: str, numbers: IntArray) -> None:
        """Delete rows of a table by their numbers."""
        with self.errors("written"):
            for start in range(0, len(numbers), _NUMBERS_PER_FILTER):
                batch = numbers[start : start + _NUMBERS_PER_FILTER].tolist()
                self.table(name).delete(f"{NUMBER} IN ({','.join(map(str, batch))})")


def _map_filter(condition: str) -> str:
    return f"key = '{digest({'condition': condition})}'"


def _format_of(content: str) -> int:
    """Return the format that a description states, 0 if it states none."""
    with suppress(ValueError, TypeError, KeyError):
        return int(json.loads(content)["format"])
    return 0


def model_name(model: Model) -> tuple[str, str | None]:
    """Return name and revision of a model; a loaded model without a folder has a name only."""
    if isinstance(model, EmbeddingScorer):
        if model.folder is None:
            return model.name, None
        model = name_of_folder(model.folder)
    name = "default" if model is None else model
    return str(name), revision_of(name)


def check_model(
    subject: str, stored: tuple[str, str | None], current: tuple[str, str | None]
) -> None:
    """Raise `InputError` if vectors are stored of another model, by name and revision."""
    comparable = stored[1] is not None and current[1] is not None
    if stored[1] == current[1] if comparable else stored[0] == current[0]:
        return
    raise InputError(
        f"The {subject} holds vectors of the model {stored[0]!r} (revision {stored[1]}), not of "
        f"{current[0]!r} ({current[1]}). Use that model, or build it again."
    )


def check_expression(where: str) -> None:
    """Raise ValueError unless a text is one expression of what a filter may hold.

    LanceDB panics at a placeholder, and its functions can take all memory.
    """
    if len(where) > _MAX_CHARACTERS:
        raise ValueError(f"it has {len(where):,} characters; at most {_MAX_CHARACTERS:,} are read")
    depth, position, word = 0, 0, ""
    while position < len(where):
        token = _TOKEN.match(where, position)
        if token is None or where.startswith(("--", "/*"), position):
            raise ValueError(f"unexpected {where[position : position + 2].strip()!r}")
        position, mark = token.end(), token[0]
        if mark.isspace():
            continue
        if mark == "(" and word and word not in (*FUNCTIONS, *_LOGIC):
            raise ValueError(f"the function {word!r} is not one of these")
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if depth < 0:
            raise ValueError("unexpected ')'")
        word = mark.lower() if re.match(r"[^\W\d]", mark) else ""
    if depth:
        raise ValueError("a bracket is not closed")


def filter_message(where: str, reason: str, columns: Iterable[str]) -> str:
    """Say why a filter cannot be used, and what one may hold."""
    cast = ""
    if "could not convert to literal" in reason:
        cast = " A column of text is compared with a text, or as cast(column AS double)."
    return (
        f"The filter {short_repr(where)} cannot be used: {reason}.{cast} It must be one condition "
        "in SQL, such as \"year > 2020 AND kind = 'review'\", with comparisons, AND, OR, NOT, IN, "
        "LIKE, BETWEEN, IS NULL, arithmetic and the functions "
        f"{', '.join(FUNCTIONS)}, on the columns {join_names(list(columns))}."
    )


def short_reason(error: BaseException) -> str:
    """Return the first words of an error of LanceDB, without the places in its source."""
    text = _RUST_SOURCE.sub("", str(error))
    text = " ".join(text.removeprefix("Invalid input, ").split()).rstrip(".")
    return text if len(text) <= 160 else f"{text[:157]}..."
