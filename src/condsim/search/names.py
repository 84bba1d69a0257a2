"""Names of clusters: values of a criterion, phrases under a condition, or frequent words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from condsim.errors import requires_extra
from condsim.model.criterion import Criterion
from condsim.types import Float64Array, FloatArray, IntArray

with requires_extra("search"):
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

_WORDS_PER_NAME = 4
_APOSTROPHE = "['\N{RIGHT SINGLE QUOTATION MARK}]"
# Words but the parts of "don't" and "we've".
_TOKEN = rf"(?<!{_APOSTROPHE})\b[^\W\d_]\w+\b(?!{_APOSTROPHE}(?:d|ll|m|re|t|ve)\b)"


_PHRASE = r"(?u)\b[^\W\d_][\w'-]*\b"
_MAX_WORDS_OF_PHRASE = 3
_CANDIDATES = 40
_PHRASES_PER_NAME = 3
# Weight of how much more often a phrase occurs in its cluster, next to two cosines.
_FREQUENCY_WEIGHT = 0.3


def cluster_words(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Find up to four words of each group by class-based TF-IDF, the best first.

    A word weighs ``share · log(1 + mean / total)``: its share of the words of the group, the mean
    number of words of a group, and how often it occurs in all of them (Grootendorst, 2022,
    BERTopic, section 3.3). Unlike there, a word counts once in a text, and one that occurs in a
    single text of a group names it only where no word occurs in two. Stop words are left out.
    """
    if not groups:
        return []
    counter = CountVectorizer(stop_words="english", token_pattern=_TOKEN, binary=True)
    try:
        counter.fit([text for group in groups for text in group])
    except ValueError:
        # All words are stop words.
        return [()] * len(groups)
    totals = [np.asarray(counter.transform(group).sum(axis=0))[0] for group in groups]
    counts = np.stack(totals).astype(np.float64)  # (g, words)
    sizes = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(sizes, 1)
    weights = shares * np.log1p(sizes.mean() / counts.sum(axis=0))
    vocabulary = counter.get_feature_names_out()
    weights[(counts < 2) & (counts > 1).any(axis=1, keepdims=True)] = 0
    best = np.argsort(-weights, axis=1, kind="stable")[:, :_WORDS_PER_NAME]
    return [
        tuple(str(vocabulary[word]) for word in row if weight[word] > 0)
        for row, weight in zip(best, weights, strict=True)
    ]


def condition_phrases(
    groups: Sequence[Sequence[str]], centers: FloatArray, encode: Callable[[list[str]], FloatArray]
) -> list[tuple[str, ...]]:
    """Find up to three words or phrases of each group that answer the condition, the best first.

    Candidates are phrases of up to three words that are more frequent in the group than in the
    others. Under the condition, by which ``encode`` encodes it, a good one is near to the center of
    its group, one of ``centers``, ``(k, d)``, and far from every other. No two phrases of a name
    share a word.
    """
    phrases, excess = _candidates(groups)
    chosen = [np.flatnonzero(row > 0)[np.argsort(-row[row > 0])][:_CANDIDATES] for row in excess]
    used = np.unique(np.concatenate(chosen))
    if not len(used):
        return cluster_words(groups)
    cosines = encode([phrases[index] for index in used]) @ centers.T  # (m, k)
    names = []
    for group, candidates in enumerate(chosen):
        rows = np.searchsorted(used, candidates)
        own = cosines[rows, group]
        others = np.delete(cosines[rows], group, axis=1).max(axis=1, initial=-1)
        scores = 2 * own - others + _FREQUENCY_WEIGHT * excess[group, candidates]
        ranked = [phrases[candidates[index]] for index in np.argsort(-scores, kind="stable")]
        names.append(_without_repeated_words(ranked))
    return names


def _candidates(groups: Sequence[Sequence[str]]) -> tuple[list[str], Float64Array]:
    """List phrases, and how much larger their share of the texts of each group is, ``(k, m)``."""
    counter = CountVectorizer(
        token_pattern=_PHRASE, ngram_range=(1, _MAX_WORDS_OF_PHRASE), binary=True
    )
    try:
        counter.fit([text for group in groups for text in group])
    except ValueError:
        # No text has a word.
        return [], np.zeros((len(groups), 0))
    phrases = [str(phrase) for phrase in counter.get_feature_names_out()]
    totals = [np.asarray(counter.transform(group).sum(axis=0))[0] for group in groups]
    counts = np.stack(totals).astype(np.float64)
    sizes = np.array([len(group) for group in groups], np.float64)[:, None]
    rest = np.maximum(sizes.sum() - sizes, 1)
    excess = counts / sizes - (counts.sum(axis=0) - counts) / rest
    is_name = np.array([_can_name(phrase) for phrase in phrases])
    excess[:, ~is_name] = 0
    # A phrase of a single text names a group only where no phrase occurs in two.
    repeated = (counts > 1) & is_name
    excess[(counts < 2) & repeated.any(axis=1, keepdims=True)] = 0
    return phrases, excess


def _can_name(phrase: str) -> bool:
    words = phrase.split()
    return len(phrase) > 2 and not {words[0], words[-1]} & ENGLISH_STOP_WORDS


def _without_repeated_words(phrases: Sequence[str]) -> tuple[str, ...]:
    name: list[str] = []
    words: set[str] = set()
    for phrase in phrases:
        if not words & set(phrase.split()):
            name.append(phrase)
            words |= set(phrase.split())
        if len(name) == _PHRASES_PER_NAME:
            break
    return tuple(name)


def value_names(
    criterion: Criterion, vectors: FloatArray, labels: IntArray, count: int
) -> list[tuple[str, ...]]:
    """Name each of k clusters by the value that most of its texts are assigned."""
    values = criterion.likeliest(vectors)  # (n,)
    names: list[tuple[str, ...]] = []
    for number in range(count):
        counts = np.bincount(values[labels == number], minlength=len(criterion.values))
        names.append((criterion.values[int(counts.argmax())],))
    return names
