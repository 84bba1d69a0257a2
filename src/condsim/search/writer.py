"""Writing an index: rows and vectors, batch by batch, so that a stopped call can be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from condsim.console import Progress
from condsim.data.row import Row
from condsim.errors import InputError
from condsim.loading import load_encoder
from condsim.model.base import Condition
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer
from condsim.search.query import prepared_table
from condsim.search.records import (
    KEY,
    ROWS_PER_BATCH,
    RowReader,
    key_digest,
    row_key,
    row_schema,
    row_table,
    stored_name,
    vector_schema,
    vector_table,
)
from condsim.search.store import ROWS, AddResult, IndexMetadata, Model, Store, check_model
from condsim.types import IntArray

"""Encode batches of row numbers and texts under a condition, in any order of the batches."""


class IndexWriter:
    """Description, rows and vectors of an index; the caller holds the lock of the store."""

    def __init__(self, store: Store, metadata: IndexMetadata, model: Model) -> None:
        self._store = store
        self._model = model
        self.metadata = metadata

    @cached_property
    def scorer(self) -> EmbeddingScorer:
        """The model, loaded at its first use."""
        return load_encoder(self._model)

    def named(self, condition: Condition) -> str:
        """Return the name of a condition; the criteria of the index are known by theirs."""
        for name, text in self.metadata.criteria.items():
            if name not in self.scorer.criteria:
                self.scorer.register(Criterion.from_json(text, source=name), name=name)
        return self.scorer.named(condition)

    def save_or_check_metadata(self) -> None:
        """Write the metadata of a new index, or check that the index there was built alike."""
        expected = self.metadata
        stored = self._store.find_metadata()
        if stored is None:
            self._store.save_metadata(expected)
            return
        self.metadata = stored
        made_with = stored.model, stored.revision
        check_model(f"index {self._store.uri}", made_with, (expected.model, expected.revision))
        if stored.source != expected.source:
            advice = "Add to it with condsim index add" if stored.complete else "Remove that folder"
            raise InputError(
                f"{self._store.uri} holds an index of other rows. {advice}, or give another folder."
            )
        changed = [
            f"{name} is {found!r}, not {value!r}"
            for name in ("text", "key", "dimension")
            if (found := getattr(stored, name)) != (value := getattr(expected, name))
        ]
        if changed:
            raise InputError(
                f"{self._store.uri} holds an index made with other options: {', '.join(changed)}. "
                "Give another folder, or the same options."
            )

    def replace_metadata(self, **values: object) -> None:
        """Change fields of the metadata, here and in the store."""
        self.metadata = self.metadata.replaced(**values)
        self._store.save_metadata(self.metadata)

    def refresh(self) -> None:
        """Move to the latest version that other processes have written."""
        self.metadata = self._store.metadata()
        self._store.refresh()

    def encode_missing(self, reader: RowReader, rows: int, progress: Progress) -> None:
        """Encode and commit batch by batch, from the first row that is missing."""
        metadata = self.metadata
        self._store.table(ROWS, row_schema(metadata.columns, metadata.dimension))
        done = self._store.row_count()
        progress("encoding", done, rows)
        for batch in reader.batches(skip=done):
            self._store.add(ROWS, self._encoded(batch, [row.number for row in batch]))
            done += len(batch)
            progress("encoding", done, rows)
        self._store.compact(ROWS)

    def _encoded(self, rows: Sequence[Row], row_numbers: Sequence[int]) -> pa.Table:
        """Encode rows, given their numbers in the table, without a condition, as stored."""
        metadata = self.metadata
        numbers = np.array(row_numbers, np.int64)
        texts = [row.text(metadata.text) for row in rows]
        vectors = self.scorer.encode(texts)
        if metadata.key is None:
            keys = [str(number) for number in numbers.tolist()]
        else:
            keys = [row_key(row, metadata.key) for row in rows]
        return row_table(rows, metadata.columns, keys, numbers, vectors)

    def add(self, reader: RowReader, *, replace: bool, progress: Progress) -> AddResult:
        """Add rows, and extend the prepared conditions by them; see `add` and `update`."""
        progress("reading the rows", 0, 0)
        summary = reader.summary(self.metadata.columns)
        with self._store.writing():
            self.refresh()
            if self.metadata.key is None:
                result = self._append(reader, summary.rows, progress)
            else:
                result = self._merge(reader, summary.rows, replace=replace, progress=progress)
            for condition in self.metadata.prepared:
                self.prepare(condition, progress)
        return result

    def _append(self, reader: RowReader, rows: int, progress: Progress) -> AddResult:
        """Add rows without keys in one step.

        If a part of them were added, a repeated call could not tell them from new rows.
        """
        last, metadata = self._next_number() - 1, self.metadata

        def batches() -> Iterator[pa.RecordBatch]:
            done = 0
            for batch in reader.batches():
                numbers = [last + row.number for row in batch]
                yield from self._encoded(batch, numbers).to_batches()
                done += len(batch)
                progress("encoding", done, rows)

        schema = row_schema(metadata.columns, metadata.dimension)
        self._store.add(ROWS, pa.RecordBatchReader.from_batches(schema, batches()))
        return AddResult(added=rows)

    def _merge(
        self, reader: RowReader, rows: int, *, replace: bool, progress: Progress
    ) -> AddResult:
        """Add rows with keys batch by batch."""
        key = str(reader.key)
        # One batch looks its keys up; for more, all that are stored are read once.
        stored = key_digests(self._store.columns(ROWS, [KEY])) if rows > ROWS_PER_BATCH else None
        first, done, present = self._next_number(), 0, 0
        for batch in reader.batches():
            keys = [row_key(row, key) for row in batch]
            found = self._find_keys(keys) if stored is None else stored
            exists = np.isin([key_digest(name) for name in keys], found)
            done, present = done + len(batch), present + int(exists.sum())
            new = [row for row, old in zip(batch, exists, strict=True) if replace or not old]
            if new:
                encoded = self._encoded(new, range(first, first + len(new)))
                first += len(new)
                self._store.add(ROWS, encoded, replace=replace)
            progress("encoding", done, rows)
        counts = {"replaced" if replace else "present": present}
        return AddResult(added=rows - present, **counts)

    def _find_keys(self, keys: Sequence[str]) -> IntArray:
        """Hash those keys that the index has."""
        quoted = ",".join(f"'{key.replace(chr(39), 2 * chr(39))}'" for key in keys)
        return key_digests(self._store.columns(ROWS, [KEY], f"{KEY} IN ({quoted})"))

    def _next_number(self) -> int:
        """Return the first number that no row has."""
        numbers = self._store.row_ids()[0]
        return int(numbers[-1]) + 1 if len(numbers) else 1

    def prepare(self, given: Condition, progress: Progress) -> int:
        """Encode the rows that have no vector under a condition; remove vectors without a row."""
        condition = self.named(given)
        name = prepared_table(condition)
        self._store.table(name, vector_schema(self.scorer.dimension_of(condition)))
        if condition not in self.metadata.prepared:
            criteria = dict(self.metadata.criteria)
            if condition in self.scorer.criteria:
                criteria[condition] = self.scorer.criteria[condition].to_json()
            prepared = {**self.metadata.prepared, condition: name}
            self.replace_metadata(prepared=prepared, criteria=criteria)
        rows = self._store.row_ids()[0]
        self._store.remove(name, np.setdiff1d(self._store.row_ids(name)[0], rows))
        missing = self._store.unprepared(name)
        done, stage = len(rows) - len(missing), f"preparing {condition!r}"
        progress(stage, done, len(rows))
        text = stored_name(self.metadata.text)
        for start in range(0, len(missing), ROWS_PER_BATCH):
            numbers = missing[start : start + ROWS_PER_BATCH]
            texts = [record[text] for record in self._store.rows(numbers, [text])]
            vectors = self.scorer.encode(texts, condition)
            self._store.add(name, vector_table(numbers, vectors))
            done += len(numbers)
            progress(stage, done, len(rows))
        if len(missing):
            self._store.compact(name)
        return len(missing)


def key_digests(rows: pa.Table) -> IntArray:
    """Hash the keys of rows, ``(n,)``."""
    return np.array([key_digest(key) for key in rows[KEY].to_pylist()], np.int64)
