"""An index: texts with all their columns and vectors, searched under any condition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from condsim.cache import changed_values
from condsim.console import Progress, silent
from condsim.data.row import Row
from condsim.errors import InputError, require
from condsim.loading import load_encoder
from condsim.model.base import check_rows
from condsim.model.embedding import EmbeddingScorer
from condsim.search.prefilter import FirstStage, Vectors
from condsim.search.query import Conditions, Hit, Searcher, check_query, prepared_table
from condsim.search.records import (
    BATCH,
    KEY,
    NUMBER,
    VECTOR,
    Given,
    Source,
    check_columns,
    digest_of,
    key_of,
    row_table,
    schema_of,
    vector_schema,
    vector_table,
)
from condsim.search.store import ROWS, About, Added, Model, Store, check_model, named
from condsim.types import FloatArray, IntArray

_LOGGER = logging.getLogger("condsim")

Part = tuple[IntArray, list[str]]
Encoding = Callable[[Iterable[Part], str], Iterable[tuple[IntArray, FloatArray]]]
"""Encodes parts of the rows, numbers and texts, under a condition; in any order of the parts."""

_FEWEST = 10_000  # rows for an approximate index


class Index:
    """A collection of texts in LanceDB, searched under conditions given with the query.

    Example:
        >>> index = Index.build("tickets.csv", "tickets.index")  # doctest: +SKIP
        >>> for hit in index.search("It came late.", "the complaint"):  # doctest: +SKIP
        ...     print(f"{hit.score:.2f} {hit.text}")
    """

    def __init__(self, store: Store, about: About, model: Model) -> None:
        """Used by `build` and `open`."""
        self._store = store
        self._about = about
        self._model = model

    @classmethod
    def build(
        cls,
        given: Given,
        output: Path | str,
        *,
        text: str = "text",
        key: str | None = None,
        conditions: Sequence[str] = (),
        model: Model = None,
        progress: Progress = silent,
    ) -> Index:
        """Makes an index, or goes on with one that was stopped: a row that is there stays.

        Args:
            given: A file as `condsim.data.reading.iter_rows` reads it, or a sequence of mappings.
            output: A folder, or an address that LanceDB takes, such as ``s3://bucket/name``.
            text: The column of the texts; all others are kept beside them.
            key: A column that tells rows apart, needed to update them.
            conditions: Conditions to prepare; see `prepare`.
            model: The model; the one that ships by default.
            progress: Called with the stage, the rows done and their number.

        Returns:
            The index.

        Raises:
            InputError: If a row breaks a rule, ``output`` holds anything else, another process
                writes it, or no space is left; what was written is kept.
            ModelError: If the model cannot be loaded or gives scores only.
        """
        source = Source(given, text, key)
        progress("reading the rows", 0, 0)
        found = source.survey()
        name, revision = named(model)
        encoder = load_encoder(model)
        about = About(
            model=name,
            revision=revision,
            first_stage=FirstStage.name,
            dimension=encoder.dimension,
            text=text,
            key=key,
            columns={column: kind or "text" for column, kind in found.kinds.items()},
            source=found.digest,
        )
        index = cls(Store(output), about, encoder)
        with index._store.writing():
            index._begin()
            if index._about.complete and len(index) != found.rows:  # rows were added or deleted
                _LOGGER.warning(
                    "%s is built already (%d texts now); 'condsim index add' adds rows.",
                    output,
                    len(index),
                )
            if not index._about.complete:
                index._fill(source, found.rows, progress)
                index._change(complete=True)
        for condition in conditions:
            index.prepare(condition, progress=progress)
        return index

    @classmethod
    def open(cls, uri: Path | str, *, model: Model = None) -> Index:
        """Opens an index.

        Args:
            uri: Its folder or address.
            model: The model it was built with; loaded by the name that the index keeps if None.

        Returns:
            The index.

        Raises:
            InputError: If there is none, it is damaged, not built to the end, of another format or
                of another model.
        """
        store = Store(uri)
        about = store.about()
        if not about.complete:
            raise InputError(
                f"The index {uri} was not built to the end. Run the command that built it again; "
                "it goes on where it stopped."
            )
        model = about.model if model is None else model
        check_model(store, about, *named(model))
        store.table(ROWS)
        return cls(store, about, model)

    def using(self, scorer: EmbeddingScorer) -> Index:
        """Gives the same index with its model, loaded."""
        return Index(self._store, self._about, scorer)

    def __len__(self) -> int:
        """Number of rows."""
        with self._store.told("read"):
            return int(self._store.table(ROWS).count_rows())

    @property
    def about(self) -> About:
        """What the index keeps of its model, columns and conditions."""
        return self._about

    @property
    def is_approximate(self) -> bool:
        """Whether the first stage looks at a part of the vectors only; see `approximate`."""
        return self._store.is_approximate()

    def prepared(self) -> dict[str, int]:
        """The prepared conditions, and how many rows have a vector under each."""
        rows = len(self)
        return {
            condition: rows - len(self._store.unprepared(table))
            for condition, table in self._about.prepared.items()
        }

    def add(self, given: Given, *, progress: Progress = silent) -> Added:
        """Adds rows. A row whose key is there is left out, so that a stopped call can be repeated.

        Without a key column, all rows are added in one step. Prepared conditions are extended.

        Args:
            given: As `build` takes it, with columns of the index.
            progress: As `build` takes it.

        Returns:
            How many rows were added.

        Raises:
            InputError: As `build`, or if a column is not one of the index.
        """
        return self._add(given, replace=False, progress=progress)

    def update(self, given: Given, *, progress: Progress = silent) -> Added:
        """Adds rows; one whose key is there replaces the old one.

        Args:
            given: As `add` takes it.
            progress: As `build` takes it.

        Returns:
            How many rows were added and replaced.

        Raises:
            InputError: As `add`, or if the index has no key column.
        """
        if self._about.key is None:
            raise InputError(
                f"The index {self._store.uri} has no keys, so rows cannot be updated. Build it "
                "with --key and the name of a column that tells rows apart."
            )
        return self._add(given, replace=True, progress=progress)

    def delete(self, keys: Sequence[str] = (), *, where: str | None = None) -> int:
        """Deletes rows by their keys, or those that a filter names.

        Args:
            keys: Keys; without a key column, numbers of rows as text.
            where: A filter in SQL on the columns.

        Returns:
            How many rows were deleted; keys that are not there do not count.

        Raises:
            InputError: If neither or both are given, or the filter cannot be used.
        """
        if bool(keys) == (where is not None):
            raise InputError("Give either keys or a filter of the rows to delete.")
        if where is not None:
            self._store.check_filter(where, self._about.columns)
        with self._store.writing():
            self._refresh()
            found = self._store.column(ROWS, [NUMBER, KEY], where)
            numbers = found[NUMBER].to_numpy()
            if keys:
                numbers = numbers[np.isin(_digests(found), [digest_of(str(one)) for one in keys])]
            for table in (*self._about.prepared.values(), ROWS):  # rows last: no vector without one
                self._store.remove(table, numbers)
        return len(numbers)

    def search(
        self,
        query: str,
        condition: Conditions | None = None,
        *,
        where: str | None = None,
        top: int = 10,
        at_least: float | None = None,
        rescore: int = 200,
    ) -> list[Hit]:
        """Finds the texts most similar to a query with respect to a condition.

        The ``rescore`` best by stored vectors are scored by the model under the condition. Under
        prepared conditions, all rows are compared instead.

        Args:
            condition: A condition, several, or a mapping of conditions to weights above 0, which
                are divided by their sum; None for the only one that is prepared.
            where: A filter in SQL on the columns, such as ``"year > 2020"``.
            at_least: The lowest score, in [0, 1].
            rescore: How many are scored in the second stage, at least ``top``.

        Returns:
            The texts with calibrated scores, best first.

        Raises:
            InputError: If an argument breaks a rule or the index is damaged.
        """
        asked = check_query(
            query,
            condition,
            where=where,
            top=top,
            at_least=at_least,
            rescore=rescore,
            prepared=list(self._about.prepared),
        )
        return self._searcher.search(asked, self._about.prepared)

    def prepare(
        self, condition: str, *, encoding: Encoding | None = None, progress: Progress = silent
    ) -> int:
        """Encodes all rows under a condition; searches under it are exact from then on.

        A stopped call goes on where it was; only rows that are new since the last one are encoded.

        Args:
            encoding: Encodes the texts, such as a `RayEncoding`; this process by default.
            progress: As `build` takes it.

        Returns:
            How many rows were encoded.

        Raises:
            InputError: If the condition is empty, another process writes the index, or no space is
                left; what was encoded is kept.
        """
        check_rows(condition)
        with self._store.writing():
            self._refresh()
            return self._prepare(condition, encoding or self._encode, progress)

    def vectors(self, condition: str) -> Iterator[tuple[list[str], FloatArray]]:
        """Gives the vectors under a prepared condition, in blocks.

        Args:
            condition: A prepared condition.

        Yields:
            Keys of some rows and their vectors of length 1, ``(m, dimension)``.

        Raises:
            InputError: If the condition is not prepared for all rows.
        """
        table = self._about.prepared.get(condition)
        if table is None or len(self._store.unprepared(table)):
            raise InputError(
                f"The index {self._store.uri} is not prepared for {condition!r}. Run condsim index "
                f"prepare {self._store.uri} --condition {condition!r} first."
            )
        alive = self._store.places()[0]
        for numbers, vectors in Vectors(self._store, table, exact=True).read():
            kept = np.isin(numbers, alive)
            records = self._store.rows(numbers[kept], [KEY])
            yield [record[KEY] for record in records], vectors[kept].astype(np.float32)

    def approximate(self) -> None:
        """Lets LanceDB index the stored vectors, for collections too large for the memory.

        The first stage then looks at a part of the vectors. Rows added later are compared one by
        one until this is called again.

        Raises:
            InputError: If there are fewer than 10,000 rows.
        """
        if len(self) < _FEWEST:
            raise InputError(
                f"An approximate index needs at least {_FEWEST:,} rows. {self._store.uri} has "
                f"{len(self):,}; searching all of them is fast."
            )
        kind = require("lancedb.index", extra="search").IvfRq
        with self._store.writing(), self._store.told("written"):
            config = kind(distance_type="dot", num_bits=4)
            self._store.table(ROWS).create_index(VECTOR, config=config, replace=True)

    @cached_property
    def _scorer(self) -> EmbeddingScorer:
        return load_encoder(self._model)

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._store, self._about, self._scorer)

    def _begin(self) -> None:
        """Writes what the index says of itself, or checks that it is the same as wanted."""
        wanted = self._about
        if self._store.find() is None:
            self._store.keep(wanted)
            return
        self._about = found = self._store.about()
        check_model(self._store, found, wanted.model, wanted.revision)
        if found.source != wanted.source:
            do = "Add to it with condsim index add" if found.complete else "Remove that folder"
            raise InputError(
                f"{self._store.uri} holds an index of other rows. {do}, or give another folder."
            )
        same = {name: getattr(wanted, name) for name in ("text", "key", "dimension")}
        if changed := changed_values(same, found.model_dump()):
            raise InputError(
                f"{self._store.uri} holds an index made otherwise: {', '.join(changed)}. Give "
                "another folder, or the same options."
            )

    def _change(self, **values: object) -> None:
        self._about = self._about.replaced(**values)
        self._store.keep(self._about)

    def _refresh(self) -> None:
        """Goes on to what other processes have written."""
        self._about = self._store.about()
        self._store.refresh()

    def _fill(self, source: Source, rows: int, progress: Progress) -> None:
        """Encodes and commits batch by batch, from the first row that is not there."""
        about = self._about
        self._store.table(ROWS, schema_of(about.columns, about.dimension))
        done = len(self)
        progress("encoding", done, rows)
        for batch in source.batches(after=done):
            self._store.add(ROWS, self._encoded(batch, done + 1))
            done += len(batch)
            progress("encoding", done, rows)
        self._store.tidy(ROWS)

    def _encoded(self, rows: Sequence[Row], first: int) -> pa.Table:
        """Rows as the table holds them, numbered from ``first``."""
        about = self._about
        numbers = np.arange(first, first + len(rows), dtype=np.int64)
        vectors = self._scorer.encode([row.text(about.text) for row in rows])
        keys = (
            [str(number) for number in numbers.tolist()]
            if about.key is None
            else [key_of(row, about.key) for row in rows]
        )
        return row_table(rows, about.columns, keys, numbers, vectors)

    def _add(self, given: Given, *, replace: bool, progress: Progress) -> Added:
        source = Source(given, self._about.text, self._about.key)
        progress("reading the rows", 0, 0)
        found = source.survey()
        check_columns(found, self._about.columns)
        with self._store.writing():
            self._refresh()
            if self._about.key is None:
                added = self._append(source, found.rows, progress)
            else:
                added = self._merge(source, found.rows, replace=replace, progress=progress)
            for condition in self._about.prepared:
                self._prepare(condition, self._encode, progress)
        return added

    def _append(self, source: Source, rows: int, progress: Progress) -> Added:
        """Adds rows without keys in one step, for half of them could not be told from new ones."""
        start, about = self._next(), self._about

        def batches() -> Iterator[pa.RecordBatch]:
            done = 0
            for batch in source.batches():
                yield from self._encoded(batch, start + done).to_batches()
                done += len(batch)
                progress("encoding", done, rows)

        schema = schema_of(about.columns, about.dimension)
        self._store.add(ROWS, pa.RecordBatchReader.from_batches(schema, batches()))
        return Added(added=rows)

    def _merge(self, source: Source, rows: int, *, replace: bool, progress: Progress) -> Added:
        """Adds rows with keys batch by batch."""
        key = str(source.key)
        known = _digests(self._store.column(ROWS, [KEY]))
        start, done, there = self._next(), 0, 0
        for batch in source.batches():
            found = np.isin([digest_of(key_of(row, key)) for row in batch], known)
            done, there = done + len(batch), there + int(found.sum())
            new = [row for row, old in zip(batch, found, strict=True) if replace or not old]
            if new:
                encoded = self._encoded(new, start)
                start += len(new)
                self._store.add(ROWS, encoded, replace=replace)
            progress("encoding", done, rows)
        counts = {"replaced" if replace else "present": there}
        return Added(added=rows - there, **counts)

    def _next(self) -> int:
        """The first number that no row has."""
        numbers = self._store.places()[0]
        return int(numbers[-1]) + 1 if len(numbers) else 1

    def _prepare(self, condition: str, encoding: Encoding, progress: Progress) -> int:
        name = prepared_table(condition)
        self._store.table(name, vector_schema(self._about.dimension))
        if condition not in self._about.prepared:
            self._change(prepared={**self._about.prepared, condition: name})
        rows = self._store.places()[0]
        self._store.remove(name, np.setdiff1d(self._store.numbers(name), rows))
        missing = self._store.unprepared(name)
        done, stage = len(rows) - len(missing), f"preparing {condition!r}"
        progress(stage, done, len(rows))
        for numbers, vectors in encoding(self._parts(missing), condition):
            self._store.add(name, vector_table(numbers, vectors))
            done += len(numbers)
            progress(stage, done, len(rows))
        if len(missing):
            self._store.tidy(name)
        return len(missing)

    def _parts(self, numbers: IntArray) -> Iterator[Part]:
        for start in range(0, len(numbers), BATCH):
            some = numbers[start : start + BATCH]
            records = self._store.rows(some, [self._about.text])
            yield some, [record[self._about.text] for record in records]

    def _encode(
        self, parts: Iterable[Part], condition: str
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Encodes in this process."""
        for numbers, texts in parts:
            yield numbers, self._scorer.encode(texts, condition)


def _digests(found: pa.Table) -> IntArray:
    return np.array([digest_of(key) for key in found[KEY].to_pylist()], np.int64)
