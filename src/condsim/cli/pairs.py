"""Files of text pairs as people have them: any column names, conditions given once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, Self

from condsim.cli.files import open_stream
from condsim.cli.options import check_conditions
from condsim.data.files import ROWS_PER_BATCH, Batch, BlankRows, column_names, read_batches
from condsim.data.formats import STANDARD_INPUT
from condsim.data.labels import Labels, read_labels
from condsim.data.row import header_hint, join_names
from condsim.data.text import FileFormat, PeekedStream
from condsim.errors import InputError
from condsim.types import IntArray


class PairOptions(NamedTuple):
    """Columns, form and labels of a file of pairs, as the options of a command state them."""

    text1: str = "sentence1"
    text2: str = "sentence2"
    condition_column: str = "condition"
    conditions: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    strict: bool = False
    label: str = "label"
    positive: str | None = None
    label_scale: str | None = None

    @classmethod
    def labelled(cls, options: Mapping[str, Any]) -> Self:
        """Take the options of a command on labeled pairs, by the names of its parameters."""
        condition = options["condition"]
        return cls(
            **{name: options[name] for name in cls._fields if name in options},
            conditions=() if condition is None else (condition,),
            label_scale=options["scale"],
        )

    @property
    def file_format(self) -> FileFormat:
        """The form of the file; InputError if it is not possible."""
        return FileFormat.checked(self.separator, self.encoding)

    def labels(self, file: Path) -> Labels:
        """Read the labels of a file."""
        scale = None
        if self.label_scale is not None:
            low, high = self.label_scale.split("-")
            scale = float(low), float(high)
        return read_labels(
            file, self.label, positive=self.positive, scale=scale, file_format=self.file_format
        )


class PairTexts(NamedTuple):
    """Texts of some rows of a batch.

    Attributes:
        rows: The indices of the rows in the batch, ``(m,)``.
        conditions: A condition for each; None if there are several for all rows, or none.
    """

    rows: IntArray
    sentences1: list[str]
    sentences2: list[str]
    conditions: list[str] | None

    def iter_rows(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Yield the index, texts and condition of each row."""
        conditions = self.conditions or repeat(None)
        return zip(self.rows.tolist(), self.sentences1, self.sentences2, conditions, strict=False)


class PairColumns(NamedTuple):
    """Columns of a file of pairs.

    Attributes:
        condition: Column of the conditions; None if they are not in the file.
        conditions: Conditions for every row; empty if the file has a column of them, or if pairs
            are compared as a whole.
    """

    text1: str
    text2: str
    condition: str | None
    conditions: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        texts = (self.text1, self.text2)
        return texts if self.condition is None else (*texts, self.condition)

    @property
    def is_plain(self) -> bool:
        """True if pairs are compared without a condition."""
        return self.condition is None and not self.conditions

    def read(self, batch: Batch, blank: BlankRows) -> PairTexts:
        """Read the texts of the rows that have them, and count the others."""
        rows, (sentences1, sentences2, *cells) = blank.texts(
            batch, self.names, condition=self.condition
        )
        conditions = cells[0] if cells else None
        if len(self.conditions) == 1:
            conditions = list(self.conditions) * len(rows)
        return PairTexts(rows, sentences1, sentences2, conditions)


class SinglePair(NamedTuple):
    """Two texts, and one or more conditions under which to compare them."""

    sentence1: str
    sentence2: str
    conditions: tuple[str, ...]


def pair_arguments(
    sentence1: str | None,
    sentence2: str | None,
    condition: str | None,
    conditions: Sequence[str],
    file: Path | None,
) -> SinglePair | Path:
    """Return the pair, or the file of pairs, that a command is given.

    A file may take the place of the first text.
    """
    if file is None and sentence1 is not None and sentence2 is None and _is_file(sentence1):
        return Path(sentence1)
    if (file is not None and sentence1 is not None) or (condition is not None and conditions):
        raise InputError(
            "Give either two sentences or --file, and the condition either after the sentences or "
            "by --condition, not both."
        )
    if file is not None:
        return file
    conditions = conditions if condition is None else [condition]
    if sentence1 is None or sentence2 is None or not conditions:
        raise InputError(
            "Give two sentences and a condition, or --file. The condition says in which respect to "
            "compare, such as 'the sport'."
        )
    return SinglePair(sentence1, sentence2, tuple(conditions))


def _is_file(text: str) -> bool:
    # A long text is not a possible name.
    with suppress(OSError, ValueError):
        return text == "-" or Path(text).is_file()
    return False


def open_pairs(
    file: Path, options: PairOptions, *, size: int = ROWS_PER_BATCH, conditional: bool = False
) -> tuple[PairColumns, Iterator[Batch]]:
    """Open a file of pairs, or standard input for ``-``; return its columns and batches.

    With ``conditional``, a file without conditions is refused.
    """
    file_format = options.file_format
    source: Path | PeekedStream = file
    if str(file) == "-":
        stdin = open_stream(sys.stdin, "input")
        source = PeekedStream(STANDARD_INPUT, stdin.buffer, file_format)
        file = source.path
    names = column_names(source, file_format)
    columns = _chosen_columns(names, file, options)
    if columns.is_plain and not names:
        # The names cannot be read ahead; reading the rows reports why.
        columns = columns._replace(condition=options.condition_column)
    if columns.is_plain and conditional:
        raise InputError(
            f"{file}: has no column {options.condition_column!r}. Give --condition, or "
            "--condition-column."
        )
    return columns, read_batches(source, columns=columns.names, size=size, file_format=file_format)


def _chosen_columns(names: Sequence[str], file: Path, options: PairOptions) -> PairColumns:
    text1, text2, condition = (name.strip() for name in options[:3])
    check_conditions(options.conditions)
    required = {text1: "--text1", text2: "--text2"}
    if not options.conditions and condition != "condition":
        required[condition] = "--condition-column"
    missing = [name for name in required if name not in names]
    if names and missing:
        column = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{file}: no {column} {' or '.join(map(repr, missing))}; found {join_names(names)}."
            f"{header_hint(names)} Name yours with {' and '.join(required[n] for n in missing)}."
        )
    if options.conditions:
        return PairColumns(text1, text2, None, options.conditions)
    return PairColumns(text1, text2, condition if condition in names else None)


def iter_labelled_pairs(
    file: Path, options: PairOptions, blank: BlankRows, *, conditional: bool = False
) -> Iterator[tuple[int, tuple[str, str, str | None, float]]]:
    """Yield index, texts, condition and label of each row with texts; labels from 1 to 5 or NaN."""
    labels = options.labels(file).values
    columns, batches = open_pairs(file, options, conditional=conditional)
    start = 0
    for batch in batches:
        texts = columns.read(batch, blank)
        for index, sentence1, sentence2, condition in texts.iter_rows():
            row = start + index
            yield row, (sentence1, sentence2, condition, float(labels[row]))
        start += len(batch)
