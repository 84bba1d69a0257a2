"""Search in two stages, or exactly under conditions that are prepared.

An index stores vectors without a condition, and a query names one that nothing is encoded under.
Encoding every text under it would take minutes, so:

1. *Ridge map.* A sample of 1,024 texts is encoded under the condition, and ridge regression learns
   a linear map from stored vectors to those under the condition (`Prefilter`). It is kept with the
   index. By it, the query becomes one vector, whose dot product with the stored ones ranks all
   texts; the best ten times as many as are to be scored are candidates.
2. *Rounds.* The model scores a quarter of what may be scored: the first of that ranking. Gaussian
   process regression then predicts the scores of all candidates from those known, along the
   ranking and among mapped vectors that are near, and the best predicted are scored next
   (`predict_scores`), four times in all.

Under prepared conditions, every text has its vector, and each table ranks all rows. With several
conditions the best mean is found by Fagin's threshold algorithm: read all rankings from the top,
compare what was met in every table, and stop once the mean at the current depth, which no row
further down can exceed, is below the best that were found (`Searcher._search_prepared`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from condsim.cache import digest
from condsim.errors import InputError, check_at_least
from condsim.model.base import Condition, check_fraction, check_rows
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer
from condsim.search.prefilter import Prefilter, Sample, VectorTable, map_vectors, predict_scores
from condsim.search.records import KEY, NUMBER, VECTOR, stored_name, user_columns
from condsim.search.store import ROWS, IndexMetadata, Store
from condsim.search.vectors import cosine_scores
from condsim.types import FloatArray, IntArray, html_table, shortened

Conditions = Condition | Sequence[Condition] | Mapping[str, float]
"""One condition, several of equal weight, or several with their weights."""

# Texts that the first stage learns a condition from.
_SAMPLE_TEXTS = 1024
# More rounds of the second stage gain little, and small batches are slow.
_ROUNDS = 4
# A round chooses among this many times as many texts as are scored.
_CANDIDATES_PER_SCORED = 10
# Fewer or more texts than these are scored at once, without rounds.
_MIN_GUIDED, _MAX_GUIDED = 80, 1000
# Rows that each ranking of prepared vectors begins with, and the factor by which it grows.
_RANKED_PER_HIT = 8
# Tables of vectors in memory.
_CACHED_TABLES = 3
# Cells that a search in an approximate index visits, and the factor of candidates it refines.
_PROBES, _REFINE_FACTOR = 64, 5


@dataclass(frozen=True)
class Hit:
    """A text found by a search.

    Attributes:
        key: Its key; without a key column the number of its row, from 1.
        text: The text.
        score: Its score, in [0, 1]; with several conditions their weighted mean.
        scores: Its score under each condition.
        columns: All columns of its row.
    """

    key: str
    text: str
    score: float
    scores: Mapping[str, float]
    columns: Mapping[str, object]

    def __repr__(self) -> str:
        """Give the score, the beginning of the text and the key."""
        return f"Hit({self.score:.2f}, {shortened(self.text, 60)!r}, key={self.key!r})"

    def _repr_html_(self) -> str:
        cells = {**self.scores, **self.columns, "text": self.text}
        return html_table(f"{self.score:.2f} (key {self.key})", ("", "value"), cells.items())


@dataclass(frozen=True)
class SearchQuery:
    """A query; its weights sum to 1. See `Index.search`."""

    text: str
    weights: Mapping[str, float]
    where: str | None
    top: int
    at_least: float
    rescore: int
    overall: float

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InputError(f"The query must be a text that is not empty; got {self.text!r}.")
        for condition in self.weights:
            check_rows(condition, query=self.text)
        check_at_least(1, top=self.top, rescore=self.rescore)
        check_fraction("score", at_least=self.at_least)
        check_fraction("share", overall=self.overall)

    @property
    def scored(self) -> int:
        """Number of texts to score in the second stage."""
        return max(self.top, self.rescore)

    @property
    def conditions(self) -> list[str]:
        """The conditions, in their order."""
        return list(self.weights)

    def combined(self, scores: FloatArray) -> FloatArray:
        """Return the weighted mean over the conditions: ``(k, m)`` to ``(m,)``."""
        weights = np.array(list(self.weights.values()), np.float32)
        return weights @ scores


class _EncodedQuery:
    """A query whose text is encoded once under each condition, and once without."""

    def __init__(self, query: SearchQuery, scorer: EmbeddingScorer) -> None:
        self.query = query
        self._scorer = scorer
        self._vectors: dict[str | None, FloatArray] = {}

    def vector(self, condition: str | None) -> FloatArray:
        """Return the vector of the text, ``(d,)``."""
        if condition not in self._vectors:
            (vector,) = self._scorer.encode([self.query.text], condition)
            self._vectors[condition] = vector
        return self._vectors[condition]

    def scores(self, cosines: FloatArray, plain: FloatArray) -> FloatArray:
        """Score texts by their cosines under each condition, ``(k, m)``, and without, ``(m,)``."""
        scores = []
        for name, row in zip(self.query.conditions, cosines, strict=True):
            # A learned criterion has its own share.
            share = 0.0 if name in self._scorer.criteria else self.query.overall
            shared = (1 - share) * row + share * plain
            scores.append(cosine_scores(self._scorer, shared, name))
        return np.stack(scores)


def condition_weights(
    condition: Conditions | None, prepared: Sequence[str], named: Callable[[Condition], str]
) -> dict[str, float]:
    """Return weights that sum to 1, by name of condition; None stands for the only prepared one."""
    if condition is None and len(prepared) == 1:
        condition = prepared[0]
    if isinstance(condition, str | Criterion):
        condition = [condition]
    if not condition:
        names = f" This index is prepared for: {', '.join(prepared)}." if prepared else ""
        raise InputError(
            "A search needs a condition, such as 'the topic': the respect in which texts must be "
            f"similar.{names}"
        )
    if not isinstance(condition, Mapping):
        condition = dict.fromkeys(map(named, condition), 1.0)
    for name, weight in condition.items():
        if not (isinstance(weight, int | float) and math.isfinite(weight) and weight > 0):
            raise InputError(f"The weight of {name!r} must be a number above 0; got {weight!r}.")
    total = math.fsum(condition.values())
    return {named(name): weight / total for name, weight in condition.items()}


def prepared_table(condition: str) -> str:
    """Return the name of the table of vectors under a condition."""
    return f"prepared_{digest({'condition': condition})[:16]}"


class Searcher:
    """Search the tables of an index; what was read is cached until they change."""

    def __init__(self, store: Store, metadata: IndexMetadata, scorer: EmbeddingScorer) -> None:
        """Open no tables; of ``metadata``, only the columns are used, which never change."""
        self._store = store
        self._text = stored_name(metadata.text)
        self._columns = metadata.columns
        self._scorer = scorer
        self._prefilter = Prefilter(scorer, store)
        self._vectors: dict[str, VectorTable] = {}

    def search(self, query: SearchQuery, prepared: Mapping[str, str]) -> list[Hit]:
        """Find texts, best first, given the tables of vectors by condition."""
        self._store.refresh()
        # Numbers of the rows that the filter lets through, sorted.
        allowed: IntArray | None = None
        if query.where is not None:
            self._store.check_filter(query.where, self._columns)
            rows_read = self._store.columns(ROWS, [NUMBER], query.where)
            allowed = np.sort(rows_read[NUMBER].to_numpy())
        encoded = _EncodedQuery(query, self._scorer)
        if not query.weights:
            return self._search_plain(encoded, allowed)
        tables = [prepared[name] for name in query.conditions if name in prepared]
        if len(tables) == len(query.conditions):
            if not any(len(self._store.unprepared(table)) for table in tables):
                return self._search_prepared(encoded, tables, allowed)
        rows = self._store.row_ids()[0] if allowed is None else allowed
        if len(rows) > query.scored:
            # NumPy's threads spin for 25 ms after each product, which is as long as a round.
            with _thread_pools().limit(limits=1, user_api="blas"):
                return self._search_in_rounds(encoded, allowed)
        return self._hits(query, rows, self._scores(encoded, rows)) if len(rows) else []

    def _search_plain(self, encoded: _EncodedQuery, allowed: IntArray | None) -> list[Hit]:
        """Find the texts nearest as a whole, by the stored vectors."""
        query = encoded.query
        numbers, _ = self._nearest(encoded.vector(None), 2 * query.top, query, allowed)
        if not len(numbers):
            return []
        # The vectors in memory are rounded.
        records = self._store.rows(numbers, [VECTOR])
        vectors = np.array([record[VECTOR] for record in records], np.float32)
        scores = cosine_scores(self._scorer, vectors @ encoded.vector(None))
        return self._hits(query, numbers, scores[None], combined=scores)

    def _vectors_of(self, table: str) -> VectorTable:
        recent = [name for name in self._vectors if name != table][1 - _CACHED_TABLES :]
        # The first stage needs a byte a number only.
        vectors = self._vectors.get(table) or VectorTable(self._store, table, exact=table != ROWS)
        self._vectors = {**{name: self._vectors[name] for name in recent}, table: vectors}
        return vectors

    def _sample(self) -> Sample:
        """Return the texts and stored vectors of some rows."""
        rows = self._store.row_ids()[0]
        drawn = np.random.default_rng(0).permutation(len(rows))[:_SAMPLE_TEXTS]
        records = self._store.rows(rows[np.sort(drawn)], [self._text, VECTOR])
        vectors = np.array([record[VECTOR] for record in records], np.float32)
        return [record[self._text] for record in records], vectors

    def _search_in_rounds(self, encoded: _EncodedQuery, allowed: IntArray | None) -> list[Hit]:
        """Score the best texts of the first stage in rounds, each of which guides the next."""
        query = encoded.query
        vector, maps = np.zeros(1, np.float32), list[FloatArray]()
        for condition, share in query.weights.items():
            plain, under = encoded.vector(None), encoded.vector(condition)
            ranking, learned = self._prefilter.query(plain, under, condition, self._sample)
            vector = vector + share * ranking  # (d,)
            maps.append(share * learned)  # (d, width of the condition)
        guided = _MIN_GUIDED <= query.scored <= _MAX_GUIDED
        candidates = query.scored * (_CANDIDATES_PER_SCORED if guided else 1)
        numbers, vectors = self._nearest(vector, candidates, query, allowed)
        if not guided or vectors is None:
            numbers = numbers[: query.scored]
            return self._hits(query, numbers, self._scores(encoded, numbers))
        near, mapped = vectors @ vector, map_vectors(vectors, np.concatenate(maps, axis=1))
        waiting, scored = np.arange(len(numbers)), np.empty(0, np.int64)
        scores = np.empty((len(query.weights), 0), np.float32)
        for batch in np.array_split(waiting[: query.scored], _ROUNDS):
            if len(scored):
                predicted = predict_scores(near, mapped, scored, query.combined(scores))
                waiting = waiting[np.argsort(-predicted[waiting], kind="stable")]
            chosen, waiting = waiting[: len(batch)], waiting[len(batch) :]
            batch_scores = self._scores(encoded, numbers[chosen])
            scored, scores = np.append(scored, chosen), np.append(scores, batch_scores, axis=1)
        return self._hits(query, numbers[scored], scores)

    def _nearest(
        self, vector: FloatArray, top: int, query: SearchQuery, allowed: IntArray | None
    ) -> tuple[IntArray, FloatArray | None]:
        """Return the numbers of the rows nearest to the query, and their vectors."""
        if not self._store.is_approximate():
            return self._vectors_of(ROWS).best_vectors(vector, top, allowed=allowed)
        search = self._store.table(ROWS).search(vector, vector_column_name=VECTOR)
        search = search.distance_type("dot").nprobes(_PROBES).refine_factor(_REFINE_FACTOR)
        search = search.limit(top).select([NUMBER, "_distance"])
        if query.where is not None:
            search = search.where(query.where)
        with self._store.errors("read", where=query.where):
            rows = search.to_arrow()
        return rows[NUMBER].to_numpy(), None

    def _scores(self, encoded: _EncodedQuery, numbers: IntArray) -> FloatArray:
        """Score m rows under each condition, ``(k, m)``."""
        texts = [record[self._text] for record in self._store.rows(numbers, [self._text])]
        cosines = [
            self._scorer.encode(texts, name) @ encoded.vector(name)
            for name in encoded.query.conditions
        ]
        return encoded.scores(np.stack(cosines), self._plain_cosines(encoded, numbers))

    def _plain_cosines(self, encoded: _EncodedQuery, numbers: IntArray) -> FloatArray:
        """Compare the query without a condition to stored vectors, where it has a share."""
        if not encoded.query.overall:
            return np.zeros(len(numbers), np.float32)
        records = self._store.rows(numbers, [VECTOR])
        vectors = np.array([record[VECTOR] for record in records], np.float32)
        return vectors @ encoded.vector(None)

    def _search_prepared(
        self, encoded: _EncodedQuery, tables: Sequence[str], allowed: IntArray | None
    ) -> list[Hit]:
        """Find the best of all rows by their vectors under the conditions.

        Each table ranks the rows by itself. The first ones of every ranking are compared in all
        tables, until no row further down can be among the best (the threshold algorithm of Fagin,
        Lotem and Naor, 2003).
        """
        query, rows = encoded.query, self._store.row_ids()[0]
        # A table still holds the vectors of rows that were deleted since.
        stale = any(len(self._store.row_ids(table)[0]) > len(rows) for table in tables)
        allowed = rows if stale and allowed is None else allowed
        count = len(rows if allowed is None else allowed)
        vectors = {
            table: encoded.vector(name)
            for table, name in zip(tables, query.conditions, strict=True)
        }
        if query.overall:
            vectors[ROWS] = encoded.vector(None)
        if not count:
            return []
        depth, conditions = _RANKED_PER_HIT * query.top, len(tables)
        while True:
            rankings = [
                self._vectors_of(table).best(vector, depth, allowed=allowed)
                for table, vector in vectors.items()
            ]
            numbers = np.unique(np.concatenate([ranked for ranked, _ in rankings]))
            cosines = np.stack([self._cosines(*item, numbers) for item in vectors.items()])
            plain = cosines[conditions:].sum(axis=0)
            scores = query.combined(encoded.scores(cosines[:conditions], plain))
            # No row that is left out has a higher score than the last ones of the rankings have.
            last = np.array([[ranked[-1]] for _, ranked in rankings])  # (tables, 1)
            plain = last[conditions:].sum(axis=0)
            bound = query.combined(encoded.scores(last[:conditions], plain))[0]
            if depth >= count or (scores >= bound).sum() >= query.top:
                break
            depth *= _RANKED_PER_HIT
        # More than are asked for, as the plain vectors in memory are rounded.
        best = np.argsort(-scores, kind="stable")[: 2 * query.top]
        plain = self._plain_cosines(encoded, numbers[best])
        return self._hits(query, numbers[best], encoded.scores(cosines[:conditions, best], plain))

    def _cosines(self, table: str, vector: FloatArray, numbers: IntArray) -> FloatArray:
        """Compare the vectors of rows in a table with one of the query, in the order of rows."""
        best, cosines = self._vectors_of(table).best(vector, len(numbers), allowed=numbers)
        compared = np.zeros(len(numbers), np.float32)
        compared[np.searchsorted(numbers, best)] = cosines
        return compared

    def _hits(
        self,
        query: SearchQuery,
        numbers: IntArray,
        scores: FloatArray,
        *,
        combined: FloatArray | None = None,
    ) -> list[Hit]:
        """Read the columns of the best rows, given their scores under each condition."""
        combined = query.combined(scores) if combined is None else combined
        order = np.lexsort((numbers, -combined))[: query.top]
        order = order[combined[order] >= query.at_least]
        records = self._store.rows(numbers[order], [*self._columns, KEY]) if len(order) else []
        return [
            Hit(
                key=record[KEY],
                text=record[self._text],
                score=float(combined[index]),
                scores=dict(zip(query.conditions, map(float, scores[:, index]), strict=False)),
                columns=user_columns(record, self._columns),
            )
            for index, record in zip(order, records, strict=True)
        ]


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the libraries of this process that run their own threads."""
    return ThreadpoolController()
