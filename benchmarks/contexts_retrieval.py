"""Retrieval of text chunks for SSBC, against scikit-learn and sparse_dot_topn."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sparse_dot_topn import sp_matmul_topn  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from benchmarks.contexts_text import sentences
from benchmarks.machine import version_of
from benchmarks.result import Result
from condsim.types import FloatArray, IntArray
from condsim_contexts.index import TfidfIndex

__all__ = ["BAR", "check_equal", "run"]

BAR = 5.0

_CHUNKS = 200_000
_CHUNK_SENTENCES = 10
_QUERIES = 200
_TOP = (20_000, 1_000)
_MIN_DF = 2
# Both sides add the float32 numbers of a cosine in different orders.
_TOLERANCE = 2e-6

Found = list[tuple[IntArray, FloatArray]]


def run(*, quick: bool) -> list[Result]:
    """Compare building, and searching for 200 sentences.

    Args:
        quick: Whether to search 10,000 chunks rather than 200,000, once rather than three times.

    Returns:
        One result a comparison.

    Raises:
        AssertionError: If the two sides do not find the same chunks, up to ties.
    """
    source, origin = sentences()
    random = np.random.default_rng(0)
    count = 10_000 if quick else _CHUNKS
    rows = random.integers(len(source), size=(count, _CHUNK_SENTENCES)).tolist()
    texts = [" ".join(source[place] for place in row) for row in rows]
    queries = [source[place] for place in random.integers(len(source), size=_QUERIES).tolist()]
    note = f"{count:,} chunks of {_CHUNK_SENTENCES} of {origin}"
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        index, ours = _timed(
            lambda: TfidfIndex.build(texts, Path(folder, "index"), revision="", min_df=_MIN_DF)
        )
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=_MIN_DF, dtype=np.float32)
        matrix, theirs = _timed(lambda: vectorizer.fit_transform(texts))
        built = _result("building", version_of("scikit-learn"), ours, theirs, None, (note,))
        searches = _Searches(index, vectorizer, matrix, queries)
        found = [searches.compare(top, repeats=1 if quick else 3) for top in _TOP]
    return [built, *(result for results in found for result in results)]


class _Searches:
    """The same search by us, by scikit-learn as one writes it, and by two faster peers."""

    def __init__(
        self,
        index: TfidfIndex,
        vectorizer: TfidfVectorizer,
        matrix: Any,  # noqa: ANN401  (scipy has no types)
        queries: list[str],
    ) -> None:
        self._index = index
        self._vectorizer = vectorizer
        self._matrix = matrix  # (chunks, terms) CSR
        self._turned = matrix.T.tocsr()  # (terms, chunks) CSR
        self._queries = queries

    def compare(self, top: int, *, repeats: int) -> list[Result]:
        searches: dict[str, Callable[[], Found]] = {
            "ours": lambda: self._index.search(self._queries, top_n=top),
            "plain": lambda: self._scikit_learn(self._matrix.T, top),
            "turned": lambda: self._scikit_learn(self._turned, top),
            "top_n": lambda: self._sparse_dot_topn(top),
        }
        # The first run warms up.
        found = {name: search() for name, search in searches.items()}
        for name in ("plain", "turned", "top_n"):
            check_equal(found["ours"], found[name])
        del found
        times = [
            {name: _timed(search)[1] for name, search in searches.items()} for _ in range(repeats)
        ]
        seconds = {name: min(time[name] for time in times) for name in searches}
        ours, what = seconds["ours"], f"{_QUERIES} sentences, top {top:,}"
        sklearn = version_of("scikit-learn")
        note = "one thread, TF-IDF of the sentences included; equal top-n sets up to ties"
        return [
            _result(what, f"{sklearn}, dot, argpartition", ours, seconds["plain"], BAR, (note,)),
            _result(what, f"{sklearn}, matrix turned before", ours, seconds["turned"], None, ()),
            _result(what, version_of("sparse-dot-topn"), ours, seconds["top_n"], None, ()),
        ]

    def _scikit_learn(self, matrix: Any, top: int) -> Found:  # noqa: ANN401  (scipy has no types)
        scores = self._vectorizer.transform(self._queries) @ matrix
        found = []
        for row in range(scores.shape[0]):
            part = slice(scores.indptr[row], scores.indptr[row + 1])
            values, chunks = scores.data[part], scores.indices[part]
            if len(values) > top:
                best = np.argpartition(values, -top)[-top:]
                values, chunks = values[best], chunks[best]
            found.append((chunks, values))
        return found

    def _sparse_dot_topn(self, top: int) -> Found:
        vectors = self._vectorizer.transform(self._queries)
        scores = sp_matmul_topn(vectors, self._turned, top_n=top)
        parts = [slice(*scores.indptr[row : row + 2]) for row in range(scores.shape[0])]
        return [(scores.indices[part], scores.data[part]) for part in parts]


def check_equal(ours: Found, theirs: Found) -> None:
    """Check that two searches found the same chunks; those that tie with the last may differ.

    Args:
        ours: Chunks and scores of each sentence, best first.
        theirs: The other's, in any order.

    Raises:
        AssertionError: If they did not.
    """
    for number, ((chunks, scores), (other, values)) in enumerate(zip(ours, theirs, strict=True)):
        assert len(chunks) == len(other), f"sentence {number}: {len(chunks)} and {len(other)}"
        if not len(chunks):
            continue
        assert np.allclose(scores, np.sort(values)[::-1], rtol=0, atol=_TOLERANCE)
        last = scores[-1] + _TOLERANCE
        differ = np.setdiff1d(chunks[scores > last], other).size
        differ += np.setdiff1d(other[values > last], chunks).size
        assert not differ, f"sentence {number}: {differ} chunks that do not tie are not shared"


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Run on one thread and count its processor's time, which no other process adds to."""
    with threadpool_limits(1):
        start = time.process_time()
        value = work()
        return value, time.process_time() - start


def _result(
    measured: str,
    peer: str,
    ours: float,
    theirs: float,
    bar: float | None,
    notes: tuple[str, ...],
) -> Result:
    return Result(
        benchmark="contexts_retrieval",
        measured=measured,
        peer=peer,
        unit="CPU s",
        ours=ours,
        theirs=theirs,
        ratio=theirs / ours,
        bar=bar,
        notes=notes,
    )
