"""Rows that pass from step to step: `Candidate`, `Condition`, `Rating`, `DatasetRow`."""

# Their fields are the columns of the file, in order. Beside ``pairs.parquet`` lies
# ``pairs.manifest.json``: what it was made of.

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, astuple, dataclass, fields
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from condsim import __version__
from condsim.console import Progress
from condsim.data.reading import iter_rows
from condsim.data.row import Row, shown
from condsim.errors import InputError, require
from condsim.evaluation.report import write_json
from condsim.io import replacing, sha256_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Intended: TypeAlias = Literal["high", "low"]
"""Which of the two conditions of a pair: C-High or C-Low (C-STS §2.2.2, stage 2)."""

DOES_NOT_APPLY = -1
"""Label of a rating that says the condition does not apply to the pair."""

HUMAN = "human"
"""Origin of what a person wrote or rated; otherwise the origin is the name of a model."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """Any row that has a file of its own."""


@dataclass(frozen=True, slots=True)
class Candidate(TableRow):
    """A sentence pair that may be annotated."""

    pair_id: str  # see `pair_id_of`
    source: str  # name of the collection that both sentences are from
    item1: str  # item of the first sentence
    item2: str  # item of the second sentence, another one
    sentence1: str
    sentence2: str
    # Cosine of the two items' embeddings, -1 to 1; None where there are none.
    similarity: float | None = None
    # Intersection over union of the bags of words, 0 to 1; None until filtered.
    iou: float | None = None
    # Cosine of the two sentences' embeddings, -1 to 1; None until filtered.
    text_cosine: float | None = None
    # Words of the shorter by words of the longer, 0 to 1; None until filtered.
    length_ratio: float | None = None
    min_length: int | None = None  # characters of the shorter; None until filtered


@dataclass(frozen=True, slots=True)
class Condition(TableRow):
    """A condition that was written for a pair."""

    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended  # whether the pair is meant to be alike ("high") or not ("low") under it
    annotator: str  # who wrote it
    seconds: float | None = None  # time it took; None where it is not known
    origin: str = HUMAN  # `HUMAN`, or the name of the model that proposed it and whose words stayed
    # The model whose proposal the annotator was shown, changed or not; empty for none.
    prefilled_by: str = ""

    def __post_init__(self) -> None:
        _check_intended(self.intended)


@dataclass(frozen=True, slots=True)
class Rating(TableRow):
    """What one annotator says of one pair under one condition.

    The key is (`row_id`, `annotator`): a later rating with the same key replaces the earlier one.
    """

    row_id: str  # see `row_id_of`
    pair_id: str
    sentence1: str
    sentence2: str
    condition: str
    intended: Intended  # what the condition was written for
    annotator: str  # who rated
    label: int  # similarity from 1 to 5, or `DOES_NOT_APPLY`
    seconds: float | None = None  # time it took; None where it is not known
    origin: str = HUMAN  # `HUMAN`, or the name of the model that rated
    updated_at: str = ""  # when the rating was last changed, ISO 8601 in UTC; empty where not known
    # The model whose rating the annotator was shown, changed or not; empty for none.
    prefilled_by: str = ""
    # `HUMAN`, or the name of the model that proposed the condition, changed or not.
    condition_origin: str = HUMAN

    def __post_init__(self) -> None:
        _check_intended(self.intended)
        check_label(self.label, what="'label' of a rating")


@dataclass(frozen=True, slots=True)
class DatasetRow(TableRow):
    """A row of the finished data set; the first four columns are those of the C-STS release."""

    sentence1: str
    sentence2: str
    condition: str
    label: float  # similarity from 1 to 5
    pair_id: str
    origin: str  # `HUMAN`, or the names of the models that had a hand in the row
    split: str  # such as ``"train"``


def columns_of(kind: type[TableRow]) -> tuple[str, ...]:
    """Names the columns of a file of such rows."""
    return tuple(field.name for field in fields(kind))


def pair_id_of(source: str, sentence1: str, sentence2: str) -> str:
    """Names a sentence pair by what it is, the same in every run and in either order.

    Returns:
        16 hexadecimal digits.

    Example:
        >>> pair_id_of("demo", "A cat.", "A dog.") == pair_id_of("demo", "A dog.", "A cat.")
        True
    """
    first, second = sorted((sentence1, sentence2))
    return hashlib.sha256(f"{source}\0{first}\0{second}".encode()).hexdigest()[:16]


def row_id_of(pair_id: str, condition: str) -> str:
    """Names a pair under a condition.

    Args:
        pair_id: See `pair_id_of`.

    Returns:
        The id of the pair, a hyphen and 8 hexadecimal digits.

    Example:
        >>> row_id_of("0123456789abcdef", "The color")[:17]
        '0123456789abcdef-'
    """
    return f"{pair_id}-{hashlib.sha256(condition.encode()).hexdigest()[:8]}"


def _check_intended(intended: str) -> None:
    if intended not in get_args(Intended):
        raise InputError(f"'intended' must be 'high' or 'low'. Got {intended!r}.")


def check_label(label: int, *, what: str) -> None:
    """Refuses what is no answer of an annotator."""
    if label != DOES_NOT_APPLY and not 1 <= label <= 5:
        raise InputError(
            f"{what} must be a whole number from 1 to 5, or {DOES_NOT_APPLY} where the condition "
            f"does not apply. Got {label!r}."
        )


T = TypeVar("T")
RowT = TypeVar("RowT", bound=TableRow)

BLOCK = 4096  # rows
_BATCH = 10_000  # rows of a Parquet row group


def in_blocks(rows: Iterable[T]) -> Iterator[list[T]]:
    """Cuts rows into lists."""
    remaining = iter(rows)
    while block := list(islice(remaining, BLOCK)):
        yield block


def counted(rows: Iterable[T], total: int, progress: Progress) -> Iterator[T]:
    """Passes rows on and tells the progress how many."""
    for number, row in enumerate(rows, start=1):
        yield row
        if number % BLOCK == 0 or number == total:
            progress("rows", number, total)


def plain_values(result: DataclassInstance) -> dict[str, object]:
    """Turns a result into values that JSON can hold.

    Args:
        result: A dataclass of numbers, texts, tuples, mappings and dataclasses.

    Returns:
        Its fields by name; tuples are lists and NaN is None.
    """
    return {name: _plain(value) for name, value in asdict(result).items()}


def _plain(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def read_rows(
    path: Path | str, kind: type[RowT], *, names: Mapping[str, str] | None = None
) -> Iterator[RowT]:
    """Streams the rows of a file in bounded memory.

    Args:
        path: File with the columns of ``kind``; formats as `iter_rows` reads them.
            Columns whose field has a default may be absent.
        names: What a column is called in the file, by field, where it is not the field's name.

    Yields:
        The rows in file order.

    Raises:
        InputError: If the file cannot be read or a cell is empty or of the wrong type; names the
            file, the row and the column.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path, plain = Path(path), _plain_types(kind)
    columns = [((names or {}).get(one.name, one.name), one) for one in fields(kind)]
    rows = iter_rows(
        path,
        columns=[column for column, one in columns if one.default is MISSING],
        optional=[column for column, one in columns if one.default is not MISSING],
    )
    for row in rows:
        values: dict[str, Any] = {
            one.name: _value(row, column, plain[one.name])
            for column, one in columns
            if one.default is MISSING or row.cells[column] not in (None, "")
        }
        try:
            made = kind(**values)
        except InputError as error:
            raise InputError(f"{row.place()}: {error}") from None
        yield made


def write_rows(rows: Iterable[RowT], path: Path, *, kind: type[RowT]) -> int:
    """Writes rows to a file in one step, whatever their number in bounded memory.

    Args:
        path: A ``.parquet`` or ``.csv`` file in a folder that exists.

    Returns:
        Number of rows written.

    Raises:
        InputError: If the suffix is another one or the file cannot be written.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    writers = {".parquet": _write_parquet, ".csv": _write_csv}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise InputError(
            f"{path}: rows are written to a file that ends in {' or '.join(writers)}. Got "
            f"{path.suffix!r}; give another name."
        )
    with replacing(path) as partial:
        return writer(iter(rows), partial, kind)


def parquet_schema(kind: type[TableRow]) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Gives the Parquet columns of a type of rows."""
    arrow = require("pyarrow", extra="build")
    known = {str: arrow.string(), float: arrow.float32(), int: arrow.int32()}
    return arrow.schema([(name, known[plain]) for name, plain in _plain_types(kind).items()])


def manifest_of(path: Path) -> Path:
    """Names the manifest of a file: ``pairs.manifest.json`` for ``pairs.parquet``."""
    return path.with_name(f"{path.stem}.manifest.json")


def revisions_of(paths: Iterable[Path]) -> dict[str, str]:
    """Gives the first 12 characters of the SHA-256 of each file, by its name."""
    # Files of one name, such as ``train.csv``, are told apart by their folders.
    given = list(paths)
    names = [path.name for path in given]
    return {
        str(path) if names.count(path.name) > 1 else path.name: sha256_of(path)[:12]
        for path in given
    }


def write_manifest(path: Path, content: Mapping[str, object]) -> None:
    """Writes the manifest of a file."""
    write_json(content, manifest_of(path))


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Reads the manifest of a file.

    Returns:
        Its content, or None if it is missing.

    Raises:
        InputError: If it is damaged.
    """
    manifest = manifest_of(path)
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError("it holds no mapping")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{manifest} cannot be read ({error}). Remove it and make {path.name} again."
        ) from error
    return content


def _plain_types(kind: type[TableRow]) -> dict[str, type[str] | type[float] | type[int]]:
    """What each column holds; a Literal is a text."""
    return {
        name: next((one for one in (float, int) if one in (hint, *get_args(hint))), str)
        for name, hint in get_type_hints(kind).items()
    }


def _value(row: Row, column: str, wanted: type) -> str | float | int:
    """Turns a cell into what the field holds."""
    cell = row.cells[column]
    if cell is None or cell == "":
        raise InputError(
            f"{row.place(column)}: must not be empty. Write the value, or remove the row."
        )
    if wanted is str:
        return str(cell)
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (wanted is int and not number.is_integer()):
        rule = "a whole number" if wanted is int else "a number"
        raise InputError(f"{row.place(column)}: must be {rule}, got {shown(cell)}. Correct it.")
    return int(number) if wanted is int else number


def _write_parquet(rows: Iterator[TableRow], path: Path, kind: type[TableRow]) -> int:
    arrow = require("pyarrow", extra="build")
    parquet = require("pyarrow.parquet", extra="build")
    schema = parquet_schema(kind)
    written = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = zip(*map(astuple, batch), strict=True)
            arrays = [arrow.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            writer.write_table(arrow.table(arrays, schema=schema))
            written += len(batch)
    return written


def _write_csv(rows: Iterator[TableRow], path: Path, kind: type[TableRow]) -> int:
    written, cells = 0, attrgetter(*columns_of(kind))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns_of(kind))
        for row in rows:
            writer.writerow(cells(row))
            written += 1
    return written


@dataclass(frozen=True, slots=True)
class TrainingRow(TableRow):
    """A row of training data."""

    sentence1: str  # the first sentence, or a short answer in its place
    sentence2: str  # the second, likewise
    condition: str
    label: float  # similarity from 1 to 5
    origin: str  # where the label is from, such as ``given``, or ``model:`` and the names of models


@dataclass(frozen=True, slots=True)
class WeakRow(TrainingRow):
    """A weakly labelled row; -1 where the attribute is absent. Its origin names the function."""

    label: int


@dataclass(frozen=True, slots=True)
class AnsweredRow(WeakRow):
    """A weakly labelled row with what was read from each sentence; empty if absent."""

    answer1: str
    answer2: str


def write_provenance(
    output: Path, *, kind: str, made_from: Sequence[Path], facts: Mapping[str, object]
) -> None:
    """Writes the manifest of a file that is finished."""
    content = {
        "kind": kind,
        "sha256": sha256_of(output),
        "made_from": revisions_of(made_from),
        **facts,
        "condsim": __version__,
    }
    write_manifest(output, content)
