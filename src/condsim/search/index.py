"""An index of texts with all their columns and vectors, searched under any condition."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from condsim.console import Progress, silent
from condsim.data.batch import BlankRows
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError, require
from condsim.loading import load_encoder
from condsim.model.base import COLLECTION_SHARE, Condition, check_rows
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer
from condsim.model.legibility import collect_unread
from condsim.search.prefilter import Prefilter, VectorTable
from condsim.search.query import Conditions, Hit, Searcher, SearchQuery, condition_weights
from condsim.search.records import KEY, NUMBER, VECTOR, RowInput, RowReader, key_digest
from condsim.search.store import (
    ROWS,
    AddResult,
    IndexMetadata,
    Model,
    Store,
    check_model,
    model_name,
)
from condsim.search.writer import IndexWriter, key_digests
from condsim.types import FloatArray

_LOGGER = logging.getLogger(__name__)

_MIN_APPROXIMATE_ROWS = 10_000


class Index:
    """A collection of texts in LanceDB, searched under conditions given with the query.

    Example:
        >>> index = Index.build("tickets.csv", "tickets.index")  # doctest: +SKIP
        >>> for hit in index.search("It came late.", "the complaint"):  # doctest: +SKIP
        ...     print(f"{hit.score:.2f} {hit.text}")
    """

    _store: Store
    _writer: IndexWriter

    def __init__(self, uri: Path | str, *, model: Model = None) -> None:
        """Open an index; see `open`."""
        store = Store(uri)
        metadata = store.metadata()
        if not metadata.complete:
            raise InputError(
                f"The index {uri} was not built to the end. Run the command that built it again to "
                "continue."
            )
        model = metadata.model if model is None else model
        check_model(f"index {uri}", (metadata.model, metadata.revision), model_name(model))
        store.table(ROWS)
        self._store, self._writer = store, IndexWriter(store, metadata, model)

    @classmethod
    def _from_parts(cls, store: Store, metadata: IndexMetadata, model: Model) -> Index:
        """Make an index without reading the store, which may be new."""
        index = cls.__new__(cls)
        index._store, index._writer = store, IndexWriter(store, metadata, model)
        return index

    def __repr__(self) -> str:
        """Name the folder and the model."""
        return f"Index({str(self._store.uri)!r}, model={self.about.model!r})"

    @classmethod
    @collect_unread()
    def build(
        cls,
        rows: RowInput,
        output: Path | str,
        *,
        text: str = "text",
        key: str | None = None,
        condition: Condition | Sequence[Condition] = (),
        model: Model = None,
        blank: BlankRows | None = None,
        file_format: FileFormat = DETECTED,
        progress: Progress = silent,
    ) -> Index:
        """Build an index, or continue one that was stopped: rows already there stay.

        Args:
            rows: A data file, or a sequence of mappings.
            output: A folder, or an address that LanceDB takes, such as ``s3://bucket/name``.
            text: The column of the texts; all others are stored with them.
            key: A column that tells rows apart, needed to update them.
            condition: One or more conditions to prepare; see `prepare`.
            model: The model; the default model by default.
            blank: Counts rows without text, which are left out; by default they are rejected.
            file_format: Separator and encoding of a text file; detected by default.
            progress: Called with the stage, the rows done and their number.

        Returns:
            The index.

        Raises:
            InputError: If a row breaks a rule, ``output`` holds anything else, another process
                is writing it, or no space is left; what was written stays.
            ModelError: If the model cannot be loaded or gives scores only.
        """
        reader = RowReader(rows, text, key, blank, file_format)
        progress("reading the rows", 0, 0)
        summary = reader.summary()
        name, revision = model_name(model)
        encoder = load_encoder(model)
        metadata = IndexMetadata(
            model=name,
            revision=revision,
            first_stage=Prefilter.name,
            dimension=encoder.dimension,
            text=text,
            key=key,
            columns={column: kind or "text" for column, kind in summary.kinds.items()},
            source=summary.digest,
        )
        index = cls._from_parts(Store(output), metadata, encoder)
        with index._store.writing():
            index._writer.save_or_check_metadata()
            if not index.about.complete:
                index._writer.encode_missing(reader, summary.rows, progress)
                index._writer.replace_metadata(complete=True)
            elif len(index) != summary.rows:
                _LOGGER.warning(
                    "%s is built already (%d texts now); 'condsim index add' adds rows.",
                    output,
                    len(index),
                )
        for prepared in [condition] if isinstance(condition, str | Criterion) else condition:
            index.prepare(prepared, progress=progress)
        return index

    @classmethod
    def open(cls, uri: Path | str, *, model: Model = None) -> Index:
        """Open an index, as ``Index(uri)`` does.

        Args:
            uri: Its folder or address.
            model: The model it was built with; by default loaded by the name stored in the index.

        Returns:
            The index.

        Raises:
            InputError: If there is none, or it is damaged, not built to the end, of another format
                or of another model.
        """
        return cls(uri, model=model)

    def using(self, scorer: EmbeddingScorer) -> Index:
        """Return the same index with its model, loaded."""
        return Index._from_parts(self._store, self.about, scorer)

    def __len__(self) -> int:
        """Number of rows."""
        return self._store.row_count()

    @property
    def about(self) -> IndexMetadata:
        """The model, columns and conditions of the index."""
        return self._writer.metadata

    @property
    def is_approximate(self) -> bool:
        """True if the first stage compares only a part of the vectors; see `approximate`."""
        return self._store.is_approximate()

    def prepared(self) -> dict[str, int]:
        """Return the number of rows that have a vector under each prepared condition."""
        rows = len(self)
        return {
            condition: rows - len(self._store.unprepared(table))
            for condition, table in self.about.prepared.items()
        }

    @collect_unread()
    def add(
        self,
        rows: RowInput,
        *,
        blank: BlankRows | None = None,
        file_format: FileFormat = DETECTED,
        progress: Progress = silent,
    ) -> AddResult:
        """Add rows. Rows whose keys exist are left out, so a stopped call can be repeated.

        Without a key column, all rows are added in one step. Prepared conditions are extended.
        Arguments are as in `build`.

        Returns:
            How many rows were added.

        Raises:
            InputError: As `build`, or if a column is not one of the index.
        """
        reader = RowReader(rows, self.about.text, self.about.key, blank, file_format)
        return self._writer.add(reader, replace=False, progress=progress)

    @collect_unread()
    def update(
        self,
        rows: RowInput,
        *,
        blank: BlankRows | None = None,
        file_format: FileFormat = DETECTED,
        progress: Progress = silent,
    ) -> AddResult:
        """Add rows; a row whose key exists replaces the old one. Arguments are as in `build`.

        Returns:
            How many rows were added and replaced.

        Raises:
            InputError: As `add`, or if the index has no key column.
        """
        if self.about.key is None:
            raise InputError(
                f"The index {self._store.uri} has no keys, so rows cannot be updated. Build it "
                "with --key and the name of a column that tells rows apart."
            )
        reader = RowReader(rows, self.about.text, self.about.key, blank, file_format)
        return self._writer.add(reader, replace=True, progress=progress)

    def delete(self, keys: str | Sequence[str] = (), *, where: str | None = None) -> int:
        """Delete rows by their keys, or those that match a filter.

        Args:
            keys: One key or several; without a key column, numbers of rows as text.
            where: A filter in SQL on the columns.

        Returns:
            How many rows were deleted; keys that do not exist do not count.

        Raises:
            InputError: If neither or both are given, or the filter cannot be used.
        """
        keys = [keys] if isinstance(keys, str) else keys
        if bool(keys) == (where is not None):
            raise InputError("Give either keys or a filter of the rows to delete.")
        if where is not None:
            self._store.check_filter(where, self.about.columns)
        with self._store.writing():
            self._writer.refresh()
            rows = self._store.columns(ROWS, [NUMBER, KEY], where)
            numbers = rows[NUMBER].to_numpy()
            if keys:
                digests = [key_digest(str(key)) for key in keys]
                numbers = numbers[np.isin(key_digests(rows), digests)]
            # Rows last, so that no vector is ever without its row.
            for table in (*self.about.prepared.values(), ROWS):
                self._store.remove(table, numbers)
        return len(numbers)

    @collect_unread()
    def search(
        self,
        query: str,
        condition: Conditions | None = None,
        *,
        where: str | None = None,
        top: int = 10,
        at_least: float | None = None,
        rescore: int = 200,
        overall: float = COLLECTION_SHARE,
        plain: bool = False,
    ) -> list[Hit]:
        """Find the texts most similar to a query with respect to a condition.

        The ``rescore`` best by stored vectors are scored by the model under the condition. Under
        prepared conditions, all rows are compared instead.

        Args:
            condition: A condition, in words or learned, several, or a mapping of conditions to
                weights above 0, which are divided by their sum; None for the only one that is
                prepared.
            where: A filter in SQL on the columns, such as ``"year > 2020"``.
            at_least: The lowest score, in [0, 1].
            rescore: How many are scored in the second stage, at least ``top``.
            overall: Share of the similarity without the condition, in [0, 1]; its vectors are
                stored, so that it costs next to nothing. See `EmbeddingScorer.score`.
            plain: Whether to compare texts as a whole, without a condition.

        Returns:
            The texts with calibrated scores, best first.

        Raises:
            InputError: If an argument breaks a rule or the index is damaged.
        """
        if plain and condition is not None:
            raise InputError("Give either a condition, or 'plain' to compare texts as a whole.")
        weights: dict[str, float] = {}
        if not plain:
            prepared = list(self.about.prepared)
            weights = condition_weights(condition, prepared, self._writer.named)
        parsed = SearchQuery(query, weights, where, top, at_least or 0.0, rescore, overall)
        return self._searcher.search(parsed, self.about.prepared)

    @collect_unread()
    def prepare(self, condition: Condition, *, progress: Progress = silent) -> int:
        """Encode all rows under a condition; searches under it are exact from then on.

        A stopped call can be repeated; only rows that have no vector yet are encoded.

        Args:
            progress: As `build` takes it.

        Returns:
            How many rows were encoded.

        Raises:
            InputError: If the condition is empty, another process is writing the index, or no
                space is left; what was encoded stays.
        """
        check_rows(str(condition))
        with self._store.writing():
            self._writer.refresh()
            return self._writer.prepare(condition, progress)

    def vectors(self, condition: Condition) -> Iterator[tuple[list[str], FloatArray]]:
        """Yield the vectors under a prepared condition, in blocks.

        Args:
            condition: A prepared condition.

        Yields:
            Keys of some rows and their unit vectors, ``(m, dimension)``.

        Raises:
            InputError: If the condition is not prepared for all rows.
        """
        table = self.about.prepared.get(self._writer.named(condition))
        if table is None or len(self._store.unprepared(table)):
            raise InputError(
                f"The index {self._store.uri} is not prepared for {condition!r}. Run condsim index "
                f"prepare {self._store.uri} --condition {condition!r} first."
            )
        existing = self._store.row_ids()[0]
        for numbers, vectors in VectorTable(self._store, table, exact=True).read():
            present = np.isin(numbers, existing)
            records = self._store.rows(numbers[present], [KEY])
            yield [record[KEY] for record in records], vectors[present].astype(np.float32)

    def approximate(self) -> None:
        """Let LanceDB index the stored vectors, for collections too large for the memory.

        The first stage then compares a part of the vectors. Rows added later are compared one by
        one until this is called again.

        Raises:
            InputError: If there are fewer than 10,000 rows.
        """
        if len(self) < _MIN_APPROXIMATE_ROWS:
            raise InputError(
                f"An approximate index needs at least {_MIN_APPROXIMATE_ROWS:,} rows; "
                f"{self._store.uri} has {len(self):,}, and searching all of them is fast."
            )
        quantized_index = require("lancedb.index", extra="search").IvfRq
        with self._store.writing(), self._store.errors("written"):
            config = quantized_index(distance_type="dot", num_bits=4)
            self._store.table(ROWS).create_index(VECTOR, config=config, replace=True)

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._store, self.about, self._writer.scorer)
