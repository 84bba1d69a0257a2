"""Vectors of texts under conditions that name several aspects, or all but some."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from condsim.model.conditions import take_apart
from condsim.model.inputs import Order, conditional_sentences, pooled
from condsim.types import FloatArray

# Of what a text under "everything except A" has in the direction of the text under A, so much is
# taken out (papers/docs/experiments.md).
_TAKEN_OUT = 0.8


def embed_aspects(
    texts: Sequence[str],
    conditions: Sequence[str],
    embed: Callable[[list[list[str]]], FloatArray],
    *,
    order: Order,
) -> FloatArray:
    """Embed n texts under what their conditions name, ``(n, d)``, scaled to length 1.

    Args:
        texts: Texts, length n.
        conditions: Their conditions, length n.
        embed: Function from conditional sentences, length m, to unit vectors ``(m, d)``.
        order: Order of the model, which takes conditions apart if it reads them bare.
    """
    if order != "bare-condition-first":
        return embed(conditional_sentences(texts, conditions, order=order))
    named = [take_apart(condition) for condition in conditions]
    owner = np.repeat(np.arange(len(named)), [len(one.aspects) for one in named])
    owners = [texts[row] for row in owner.tolist()]
    aspects = [aspect for one in named for aspect in one.aspects]
    vectors = embed(conditional_sentences(owners, aspects, order=order))
    if len(aspects) > len(named):
        vectors = pooled(vectors, owner, np.ones(len(owner), np.float32))
    rows = [row for row, one in enumerate(named) if one.left_out]
    if rows:
        rest = [f"everything except {' and '.join(named[row].aspects)}" for row in rows]
        inputs = conditional_sentences([texts[row] for row in rows], rest, order=order)
        vectors[rows] = _without(embed(inputs), vectors[rows])
    return vectors


def _without(whole: FloatArray, aspect: FloatArray) -> FloatArray:
    """Take from vectors most of what they have in the direction of an aspect, ``(n, d)``."""
    along = np.einsum("nd,nd->n", whole, aspect)
    rest: FloatArray = whole - _TAKEN_OUT * along[:, None] * aspect
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    return rest
