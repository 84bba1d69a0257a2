"""Names of clusters: the words that are frequent in one and rare in the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

_WORDS = 4  # of a name
_MARK = "['\N{RIGHT SINGLE QUOTATION MARK}]"
_TOKEN = rf"(?<!{_MARK})\b[^\W\d_]\w+\b(?!{_MARK}(?:d|ll|m|re|t|ve)\b)"  # not "don't", "we've"


def cluster_words(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Finds the words of each group by class-based TF-IDF.

    A word weighs ``share · log(1 + mean / total)``: its share of the words of the group, the mean
    number of words of a group, and how often it occurs in all of them (Grootendorst, 2022,
    *BERTopic*, section 3.3). Unlike there, a word counts once in a text, and one that occurs in a
    single text of a group names it only where no word occurs in two. English stop words are left
    out.

    Args:
        groups: The texts of each group, g groups.

    Returns:
        Up to four words of each group, the best first; none where a group has only stop words.
    """
    if not groups:
        return []
    counter = CountVectorizer(stop_words="english", token_pattern=_TOKEN, binary=True)
    try:
        counter.fit([text for group in groups for text in group])
    except ValueError:  # none but stop words
        return [()] * len(groups)
    totals = [np.asarray(counter.transform(group).sum(axis=0))[0] for group in groups]
    counts = np.stack(totals).astype(np.float64)  # (g, words)
    sizes = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(sizes, 1)
    weights = shares * np.log1p(sizes.mean() / counts.sum(axis=0))
    vocabulary = counter.get_feature_names_out()
    weights[(counts < 2) & (counts > 1).any(axis=1, keepdims=True)] = 0
    best = np.argsort(-weights, axis=1, kind="stable")[:, :_WORDS]
    return [
        tuple(str(vocabulary[word]) for word in row if weight[word] > 0)
        for row, weight in zip(best, weights, strict=True)
    ]
