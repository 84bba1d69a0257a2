"""Read files of text pairs with any column names, and with conditions given once."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from condsim.cli import options
from condsim.cli.command import OptionGroup
from condsim.cli.files import open_stream
from condsim.cli.options import check_column, check_conditions
from condsim.cli.process import print_note
from condsim.data.batch import ROWS_PER_BATCH, Batch, BlankRows
from condsim.data.files import DataFile, column_names
from condsim.data.labels import LIKERT, Labels, Scale, parse_scale, read_labels
from condsim.data.row import header_hint, missing_columns
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.types import IntArray, Task


@dataclass(frozen=True)
class PairFile(OptionGroup):
    """Options of a file of pairs: its columns and its form."""

    text1: options.Text1 = "sentence1"
    text2: options.Text2 = "sentence2"
    condition_column: options.ConditionColumn = "condition"
    separator: options.Separator = None
    encoding: options.Encoding = None
    strict: options.Strict = False

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions for every row, in place of a column."""
        return ()

    @property
    def file_format(self) -> FileFormat:
        """The form of the file; InputError if it is not possible."""
        return FileFormat.checked(self.separator, self.encoding)


@dataclass(frozen=True)
class PairsUnderConditions(PairFile):
    """Options of a file of pairs and of any number of conditions for all rows."""

    given_conditions: options.Conditions = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions for every row, in place of a column."""
        return tuple(self.given_conditions or ())


@dataclass(frozen=True)
class PairsUnderOne(PairFile):
    """Options of a file of pairs and of a condition for all rows."""

    given_condition: options.Condition = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """The condition for every row, if there is one, in place of a column."""
        return () if self.given_condition is None else (self.given_condition,)


@dataclass(frozen=True)
class LabeledPairs(PairsUnderOne):
    """Options of a file of labeled pairs."""

    label: options.LabelColumn = "label"
    positive: options.Positive = None
    scale: options.LabelScale = None

    @property
    def are_usual(self) -> bool:
        """True if the options name no column, condition, form or word."""
        return replace(self, strict=False, scale=None) == LabeledPairs()

    @property
    def label_scale(self) -> Scale | None:
        """The scale that is stated; InputError if it is not possible."""
        return None if self.scale is None else parse_scale(self.scale)

    def labels(self, file: Path) -> Labels:
        """Read the labels of a file."""
        return read_labels(
            file,
            self.label,
            positive=self.positive,
            scale=self.label_scale,
            file_format=self.file_format,
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

    def added(self, kind: str) -> dict[str | None, str]:
        """Name the columns that are added for each of several conditions, or for all pairs.

        Without --condition, the file has a condition for each row, or pairs have none.
        """
        if len(self.conditions) < 2:
            return dict.fromkeys(self.conditions or (None,), kind)
        return {condition: f"{kind}: {condition}" for condition in self.conditions}

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
    if file is None and sentence1 is not None and sentence2 is None and is_file(sentence1):
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


def is_file(text: str) -> bool:
    """Check that a text is the name of a file, or of standard input."""
    # A long text is not a possible name.
    with suppress(OSError, ValueError):
        return text == "-" or Path(text).is_file()
    return False


def open_pairs(
    file: Path, pairs: PairFile, *, size: int = ROWS_PER_BATCH, conditional: bool = False
) -> tuple[PairColumns, Iterator[Batch]]:
    """Open a file of pairs, or standard input for ``-``; return its columns and batches.

    With ``conditional``, a file without conditions is refused.
    """
    is_stdin = str(file) == "-"
    source = open_stream(sys.stdin, "input").buffer if is_stdin else file
    rows = DataFile(source, pairs.file_format)
    names = rows.names()
    columns = _chosen_columns(names, rows.path, pairs)
    if columns.is_plain and not names:
        # The names cannot be read ahead; reading the rows reports why.
        columns = columns._replace(condition=pairs.condition_column)
    if columns.is_plain and conditional:
        advice = " Give --condition, or --condition-column."
        raise missing_columns(str(rows.path), [pairs.condition_column], names, advice=advice)
    return columns, rows.batches(columns.names, size=size)


def _chosen_columns(names: Sequence[str], file: Path, pairs: PairFile) -> PairColumns:
    columns = (pairs.text1, pairs.text2, pairs.condition_column)
    text1, text2, condition = (name.strip() for name in columns)
    check_conditions(pairs.conditions)
    required = [text1, text2]
    if not pairs.conditions and condition != "condition":
        required.append(condition)
    missing = [name for name in required if name not in names]
    if names and missing:
        raise missing_columns(str(file), missing, names, hint=header_hint(names))
    if pairs.conditions:
        return PairColumns(text1, text2, None, pairs.conditions)
    return PairColumns(text1, text2, condition if condition in names else None)


def iter_labeled_pairs(
    file: Path, pairs: LabeledPairs, blank: BlankRows, *, conditional: bool = False
) -> Iterator[tuple[int, tuple[str, str, str | None, float]]]:
    """Yield index, texts, condition and label of each row with texts; labels from 1 to 5 or NaN.

    A file has no labels if it has no column of the usual name.
    """
    labels = None
    if pairs.label != LabeledPairs.label or pairs.label in column_names(file, pairs.file_format):
        labels = pairs.labels(file).likert
    columns, batches = open_pairs(file, pairs, conditional=conditional)
    start = 0
    for batch in batches:
        texts = columns.read(batch, blank)
        for index, sentence1, sentence2, condition in texts.iter_rows():
            row = start + index
            label = math.nan if labels is None else float(labels[row])
            yield row, (sentence1, sentence2, condition, label)
        start += len(batch)


def load_pairs_as_task(
    file: Path, *, pairs: LabeledPairs, consequence: str, require_labels: bool = True
) -> Task:
    """Load pairs whose columns are the usual ones or given as options, or another kind of file.

    Rows without a text are left out; a note says how many, and the consequence.
    """
    from condsim.data.csts import CSTS_COUNTS
    from condsim.data.load import load_task
    from condsim.data.tasks import compare_split, make_task

    blank = BlankRows(strict=pairs.strict)
    if pairs.are_usual:
        scale = pairs.label_scale
        task = load_task(file, require_labels=require_labels, blank=blank, scale=scale)
    else:
        if require_labels:
            pairs.labels(file)
        rows = (fields for _, fields in iter_labeled_pairs(file, pairs, blank))
        task = make_task(file, rows, label_range=LIKERT, name=None)
        if file.name.startswith("csts_"):
            compare_split(file, rows=len(task) + blank.count, published=CSTS_COUNTS)
    print_note(blank.note(consequence))
    return task


class LabeledVerdicts(NamedTuple):
    """Right verdicts, and the texts they are about, of the rows that have texts.

    Attributes:
        conditions: A condition for each row; None if there are none.
    """

    right: list[str]
    first: list[str]
    second: list[str]
    conditions: list[str] | None


def read_verdicts(file: Path, pairs: PairsUnderOne) -> LabeledVerdicts:
    """Read a file of pairs with the right verdict in the column ``verdict``."""
    from condsim.model.judge import VERDICTS

    column = "verdict"
    check_column(file, column, pairs.file_format, advice=" It holds the right verdicts.")
    columns, _ = open_pairs(file, pairs)
    batches = DataFile(file, pairs.file_format).batches((*columns.names, column))
    blank = BlankRows(strict=pairs.strict)
    found = LabeledVerdicts([], [], [], None if columns.is_plain else [])
    for batch in batches:
        texts = columns.read(batch, blank)
        found.first.extend(texts.sentences1)
        found.second.extend(texts.sentences2)
        if found.conditions is not None:
            found.conditions.extend(texts.conditions or ())
        for row in texts.rows.tolist():
            verdict = batch.rows[row].text(column).strip().lower()
            if verdict not in VERDICTS:
                where, names = batch.rows[row].location(), ", ".join(VERDICTS)
                raise InputError(f"{where}: {column!r} must be one of {names}; got {verdict!r}.")
            found.right.append(verdict)
    if not found.right:
        raise InputError(f"{file}: has no row with both texts.")
    return found
