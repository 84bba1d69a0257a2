"""Which sentence pairs must stay together so that no sentence is in two splits.

Sentences are the nodes of a graph and sentence pairs its edges; what is connected is a group.
Candidates from the captions of near images are often one giant group: it can be cut into
communities, at the price of the pairs between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from condsim.errors import require
from condsim.types import IntArray

__all__ = ["communities", "pair_groups", "sentence_groups", "sentence_key"]

_NO_WORD = re.compile(r"\W+")


def sentence_key(sentence: str) -> str:
    """Makes sentences equal that differ in letter case, punctuation or white space only.

    Args:
        sentence: The sentence.

    Returns:
        Its words; the sentence itself if it has none.

    Example:
        >>> sentence_key("A dog  runs.") == sentence_key("a Dog runs")
        True
    """
    return _NO_WORD.sub(" ", sentence.casefold()).strip() or sentence


def pair_groups(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Groups rows by their sentence pair alone, in either order, as the paper's splits do.

    Args:
        pairs: Both sentences of each row, length n.

    Returns:
        Group of each row from 0, ``(n,)``; groups are numbered by the alphabet of their sentences,
        whatever the order of the rows.
    """
    keys = [tuple(sorted(map(sentence_key, pair))) for pair in pairs]
    number = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([number[key] for key in keys], np.int64)


def sentence_groups(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Groups rows so that no sentence, as `sentence_key` has it, is in two groups.

    Args:
        pairs: Both sentences of each row, length n.

    Returns:
        Group of each row from 0, ``(n,)``, numbered by the first of their sentences.

    Raises:
        MissingExtraError: If scipy is not installed.
    """
    sparse = require("scipy.sparse", extra="build")
    graph = require("scipy.sparse.csgraph", extra="build")
    sentences, ends = _ends(pairs)
    links = sparse.coo_array(
        (np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(sentences), len(sentences))
    )
    _, component = graph.connected_components(links, directed=False)  # (sentences,)
    return _by_first(component[ends[:, 0]], ends)


def communities(pairs: Sequence[tuple[str, str]], *, seed: int) -> IntArray:
    """Divides sentences into communities with few pairs between them, by Louvain's method.

    Blondel et al., "Fast unfolding of communities in large networks", 2008, as networkx has it.

    Args:
        pairs: Both sentences of each row, length n.
        seed: Seed of the order in which sentences are moved.

    Returns:
        Community of each row's first and second sentence, ``(n, 2)``, from 0.

    Raises:
        MissingExtraError: If networkx is not installed.
    """
    networkx = require("networkx", extra="build")
    sentences, ends = _ends(pairs)
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(sentences)))
    edges, rows = np.unique(np.sort(ends, axis=1), axis=0, return_counts=True)
    graph.add_weighted_edges_from(
        (first, second, count)
        for (first, second), count in zip(edges.tolist(), rows.tolist(), strict=True)
        if first != second
    )
    of_sentence = np.zeros(len(sentences), np.int64)
    found = networkx.community.louvain_communities(graph, seed=seed)
    for number, members in enumerate(sorted(found, key=min)):
        of_sentence[list(members)] = number
    return np.asarray(of_sentence[ends])


def _ends(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], IntArray]:
    """All sentence keys by the alphabet, and the places of each row's two, ``(n, 2)``."""
    keys = [(sentence_key(first), sentence_key(second)) for first, second in pairs]
    sentences = sorted({key for pair in keys for key in pair})
    place = {key: number for number, key in enumerate(sentences)}
    ends = np.array([[place[first], place[second]] for first, second in keys], np.int64)
    return sentences, ends.reshape(-1, 2)


def _by_first(groups: IntArray, ends: IntArray) -> IntArray:
    """Numbers groups ``(n,)`` by the lowest sentence of their rows."""
    lowest = ends.min(axis=1)
    first: dict[int, int] = {}
    for group, sentence in zip(groups.tolist(), lowest.tolist(), strict=True):
        first[group] = min(sentence, first.get(group, sentence))
    number = {group: place for place, group in enumerate(sorted(first, key=first.__getitem__))}
    return np.array([number[group] for group in groups.tolist()], np.int64)
