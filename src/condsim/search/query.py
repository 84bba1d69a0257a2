"""Search in two stages, or exactly under conditions that are prepared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from condsim.cache import digest
from condsim.errors import InputError
from condsim.model.base import check_rows, rescaled
from condsim.model.embedding import EmbeddingScorer
from condsim.search.prefilter import FirstStage, Sample, Vectors, expected, mapped_vectors
from condsim.search.records import KEY, NUMBER, VECTOR, read_record
from condsim.search.store import ROWS, About, Store
from condsim.types import FloatArray, IntArray

Conditions = str | Sequence[str] | Mapping[str, float]
"""One condition, several of equal weight, or several with their weights."""

_SAMPLE = 1024  # texts that the first stage learns a condition from
_ROUNDS = 4  # of the second stage; more find little more, and small batches are slow
_POOL = 10  # times as many texts as are scored: what a round chooses from
_LEAST_GUIDED, _MOST_GUIDED = 80, 1000  # texts scored in rounds; all others at once
_PROBES, _REFINE = 64, 5  # of an approximate index: parts looked at, and how many times too many


@dataclass(frozen=True)
class Hit:
    """A text that was found.

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


@dataclass(frozen=True)
class Asked:
    """A checked query: weights sum to 1."""

    text: str
    weights: Mapping[str, float]
    where: str | None
    top: int
    at_least: float
    rescore: int

    @property
    def conditions(self) -> list[str]:
        """The conditions, in their order."""
        return list(self.weights)


def check_query(
    query: str,
    condition: Conditions | None,
    *,
    where: str | None,
    top: int,
    at_least: float | None,
    rescore: int,
    prepared: Sequence[str],
) -> Asked:
    """Checks a query; see `Index.search`."""
    if not isinstance(query, str) or not query.strip():
        raise InputError(f"The query must be a text that is not empty. Got {query!r}.")
    weights = _weights(condition, prepared)
    for one in weights:
        check_rows(one, query=query)
    if top < 1 or rescore < 1:
        raise InputError(f"'top' and 'rescore' must be 1 or more. Got {top} and {rescore}.")
    if at_least is not None and not 0 <= at_least <= 1:
        raise InputError(f"'at_least' must be a score from 0 to 1. Got {at_least!r}.")
    return Asked(query, weights, where, top, at_least or 0.0, max(top, rescore))


def _weights(condition: Conditions | None, prepared: Sequence[str]) -> dict[str, float]:
    """Weights that sum to 1, by condition."""
    if condition is None:
        if len(prepared) != 1:
            known = f" This index is prepared for: {', '.join(prepared)}." if prepared else ""
            raise InputError(
                "A search needs a condition, which says in which respect texts must be similar, "
                f"such as --condition 'the topic'.{known}"
            )
        condition = prepared[0]
    if isinstance(condition, str):
        condition = [condition]
    if not isinstance(condition, Mapping):
        condition = dict.fromkeys(condition, 1.0)
    if not condition:
        raise InputError("A search needs at least one condition. Got none.")
    for name, weight in condition.items():
        if not (isinstance(weight, int | float) and math.isfinite(weight) and weight > 0):
            raise InputError(f"The weight of {name!r} must be a number above 0. Got {weight!r}.")
    total = math.fsum(condition.values())
    return {name: weight / total for name, weight in condition.items()}


def prepared_table(condition: str) -> str:
    """Name of the table of vectors under a condition."""
    return f"prepared_{digest({'condition': condition})[:16]}"


class Searcher:
    """Searches the tables of an index; what it read is kept as long as they do not change."""

    def __init__(self, store: Store, about: About, scorer: EmbeddingScorer) -> None:
        """Reads nothing yet; of ``about``, the columns alone, which stay as they are."""
        self._store = store
        self._text = about.text
        self._columns = about.columns
        self._scorer = scorer
        self._stage = FirstStage(scorer)
        self._vectors: dict[str, Vectors] = {}

    def search(self, asked: Asked, prepared: Mapping[str, str]) -> list[Hit]:
        """Finds texts, best first, given the tables of vectors by condition."""
        self._store.refresh()
        if asked.where is not None:
            self._store.check_filter(asked.where, self._columns)
        allowed = self._allowed(asked.where)
        tables = [prepared.get(one) for one in asked.conditions]
        known = [table for table in tables if table is not None]
        if len(known) == len(tables) and not any(len(self._store.unprepared(one)) for one in known):
            return self._exact(asked, known, allowed)
        rows = self._store.places()[0] if allowed is None else allowed
        if len(rows) > asked.rescore:
            return self._two_stages(asked, allowed)
        if not len(rows):
            return []
        return self._hits(asked, rows, self._scores(asked, rows))

    def _allowed(self, where: str | None) -> IntArray | None:
        """Numbers of the rows that a filter lets through, sorted."""
        if where is None:
            return None
        found: IntArray = np.sort(self._store.column(ROWS, [NUMBER], where)[NUMBER].to_numpy())
        return found

    def _of(self, table: str) -> Vectors:
        if table not in self._vectors:
            # Those of one table in memory. In the first stage, a byte a number is exact enough.
            self._vectors = {table: Vectors(self._store, table, exact=table != ROWS)}
        return self._vectors[table]

    def _sample(self) -> Sample:
        """Some rows: their texts and stored vectors."""
        rows = self._store.places()[0]
        drawn = np.random.default_rng(0).permutation(len(rows))[:_SAMPLE]
        found = self._store.rows(rows[np.sort(drawn)], [self._text, VECTOR])
        vectors = np.array([record[VECTOR] for record in found], np.float32)
        return [record[self._text] for record in found], vectors

    def _two_stages(self, asked: Asked, allowed: IntArray | None) -> list[Hit]:
        """Scores the best texts of the first stage in rounds, each of which guides the next."""
        # NumPy's threads keep a processor busy for 25 ms after each product: as long as a round.
        with _libraries().limit(limits=1, user_api="blas"):
            return self._in_rounds(asked, allowed)

    def _in_rounds(self, asked: Asked, allowed: IntArray | None) -> list[Hit]:
        vector, weights = np.zeros(1, np.float32), np.zeros(1, np.float32)
        for condition, share in asked.weights.items():
            parts = self._stage.query(asked.text, condition, self._sample)
            vector, weights = vector + share * parts[0], weights + share * parts[1]  # (d,), (d, d)
        guided = _LEAST_GUIDED <= asked.rescore <= _MOST_GUIDED
        looked_at = asked.rescore * (_POOL if guided else 1)
        numbers, vectors = self._nearest(vector, looked_at, asked, allowed)
        if not guided or vectors is None:
            numbers = numbers[: asked.rescore]
            return self._hits(asked, numbers, self._scores(asked, numbers))
        near, mapped = vectors @ vector, mapped_vectors(vectors, weights)
        left, scored = np.arange(len(numbers)), np.empty(0, np.int64)
        scores = np.empty((len(asked.weights), 0), np.float32)
        for some in np.array_split(left[: asked.rescore], _ROUNDS):
            if len(scored):
                guess = expected(near, mapped, scored, self._combined(asked, scores))
                left = left[np.argsort(-guess[left], kind="stable")]
            chosen, left = left[: len(some)], left[len(some) :]
            more = self._scores(asked, numbers[chosen])
            scored, scores = np.append(scored, chosen), np.append(scores, more, axis=1)
        return self._hits(asked, numbers[scored], scores)

    def _nearest(
        self, vector: FloatArray, top: int, asked: Asked, allowed: IntArray | None
    ) -> tuple[IntArray, FloatArray | None]:
        """The first stage: numbers of the rows nearest to the query, and their vectors."""
        table = self._store.table(ROWS)
        if not self._store.is_approximate():
            return self._of(ROWS).best_vectors(vector, top, allowed=allowed)
        query = table.search(vector, vector_column_name=VECTOR).distance_type("dot")
        query = query.nprobes(_PROBES).refine_factor(_REFINE).limit(top)
        query = query.select([NUMBER, "_distance"])
        with self._store.told("read"):
            found = (query if asked.where is None else query.where(asked.where)).to_arrow()
        return found[NUMBER].to_numpy(), None

    def _scores(self, asked: Asked, numbers: IntArray) -> FloatArray:
        """The second stage: scores of m rows under each condition, ``(k, m)``."""
        texts = [record[self._text] for record in self._store.rows(numbers, [self._text])]
        queries = [asked.text] * len(texts)
        return np.stack([self._scorer.score(queries, texts, one) for one in asked.conditions])

    def _exact(self, asked: Asked, tables: Sequence[str], allowed: IntArray | None) -> list[Hit]:
        """Compares vectors under the conditions of all rows."""
        queries = self._scorer.encode([asked.text] * len(tables), asked.conditions)  # (k, d)
        rows = self._store.places()[0]
        if len(tables) == 1:
            stale = len(self._store.numbers(tables[0])) > len(rows)  # rows deleted since
            allowed = rows if stale and allowed is None else allowed
            numbers, cosines = self._of(tables[0]).best(queries[0], asked.top, allowed=allowed)
            return self._hits(asked, numbers, self._calibrated(cosines)[None])
        wanted = rows if allowed is None else allowed
        scores = np.zeros((len(tables), len(wanted)), np.float32)
        for vectors, query, table in zip(scores, queries, tables, strict=True):
            numbers, cosines = self._of(table).best(query, len(wanted), allowed=wanted)
            vectors[np.searchsorted(wanted, numbers)] = self._calibrated(cosines)
        best = np.argsort(-self._combined(asked, scores), kind="stable")[: asked.top]
        return self._hits(asked, wanted[best], scores[:, best])

    def _calibrated(self, cosines: FloatArray) -> FloatArray:
        return rescaled(np.clip(cosines, -1, 1), self._scorer.calibration, "unit")

    def _combined(self, asked: Asked, scores: FloatArray) -> FloatArray:
        """Weighted mean over the conditions: ``(k, m)`` to ``(m,)``."""
        weights = np.array(list(asked.weights.values()), np.float32)
        combined: FloatArray = weights @ scores
        return combined

    def _hits(self, asked: Asked, numbers: IntArray, scores: FloatArray) -> list[Hit]:
        """Reads the columns of the best rows, given their scores under each condition."""
        combined = self._combined(asked, scores)
        order = np.lexsort((numbers, -combined))[: asked.top]
        order = order[combined[order] >= asked.at_least]
        records = self._store.rows(numbers[order], [*self._columns, KEY]) if len(order) else []
        return [
            Hit(
                key=record[KEY],
                text=record[self._text],
                score=float(combined[place]),
                scores=dict(zip(asked.conditions, map(float, scores[:, place]), strict=True)),
                columns=read_record(record, self._columns),
            )
            for place, record in zip(order, records, strict=True)
        ]


@cache
def _libraries() -> ThreadpoolController:
    """The libraries of this process that run threads of their own."""
    return ThreadpoolController()
