"""Verdicts on new texts against a store of known ones: candidates by search, then the judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from condsim.console import Progress, silent
from condsim.errors import InputError, check_at_least
from condsim.loading import load_encoder
from condsim.model.base import check_fraction, check_rows
from condsim.model.embedding import EmbeddingScorer
from condsim.model.finding import Finding, find_verdict
from condsim.model.judge import Judge
from condsim.search.index import Index
from condsim.search.match import best_columns
from condsim.search.vectors import encode_texts

CANDIDATES = 8
"""Nearest known texts that the judge reads for each new one."""

_TEXTS_PER_BLOCK = 256


def find_verdicts(
    texts: Sequence[str],
    known: Sequence[str] | Index,
    judge: Judge,
    *,
    scorer: EmbeddingScorer | None = None,
    condition: str | None = None,
    candidates: int = CANDIDATES,
    merged_from: float = 0.0,
    about: bool = False,
    progress: Progress = silent,
) -> Iterator[Finding]:
    """Say what each new text is to a collection of known texts.

    Args:
        texts: New texts, length n; they are not compared with each other.
        known: Known texts, whose vectors are in memory, or an index of them.
        judge: The judge that reads each new text with its candidates.
        scorer: The bi- or tri-encoder that finds candidates in memory; the default model if None.
        condition: Respect in which texts are compared; None for all that they say.
        candidates: Nearest known texts that the judge reads, 1 or more.
        merged_from: Least probability of a merge; see `Verdict.merged_from`.
        about: Whether to name the words that decided.
        progress: Called with the stage, what is done and what there is.

    Returns:
        A finding for each new text, in order, as it is made.

    Raises:
        InputError: If the input breaks a rule.
    """
    check_at_least(1, candidates=candidates)
    check_fraction("probability", merged_from=merged_from)
    if isinstance(texts, str) or isinstance(known, str):
        raise InputError("Give two collections of texts, not a single text.")
    news = list(check_rows(None, texts=texts).sentences[0])
    if isinstance(known, Index):
        nearest = _in_index(news, known, condition, candidates)
    else:
        stored = list(check_rows(None, known=known).sentences[0])
        nearest = _in_memory(news, stored, load_encoder(scorer), condition, candidates, progress)

    def findings() -> Iterator[Finding]:
        for done, (text, found) in enumerate(zip(news, nearest, strict=True)):
            progress("judging", done, len(news))
            yield find_verdict(text, found, judge, condition, merged_from=merged_from, about=about)

    return findings()


_Candidates = Iterator[list[tuple[int | str, str]]]


def _in_memory(
    texts: Sequence[str],
    known: Sequence[str],
    scorer: EmbeddingScorer,
    condition: str | None,
    number: int,
    progress: Progress,
) -> _Candidates:
    if not known:
        yield from ([] for _ in texts)
        return
    vectors = encode_texts(scorer, known, condition, 0.0, progress)
    for start in range(0, len(texts), _TEXTS_PER_BLOCK):
        block = list(texts[start : start + _TEXTS_PER_BLOCK])
        cosines = encode_texts(scorer, block, condition, 0.0, silent) @ vectors.T
        for rows in best_columns(cosines, min(number, len(known))).tolist():
            yield [(row, known[row]) for row in rows]


def _in_index(
    texts: Sequence[str], index: Index, condition: str | None, number: int
) -> _Candidates:
    for text in texts:
        hits = index.search(text, condition, top=number, plain=condition is None)
        yield [(hit.key, hit.text) for hit in hits]
