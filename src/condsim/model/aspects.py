"""Vectors of texts under conditions that name several aspects, or all but some."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from condsim.model.conditions import Named, take_apart
from condsim.model.inputs import Order, pooled
from condsim.types import FloatArray

# Of what a text under "everything except A" has in the direction of the text under A, so much is
# taken out (papers/docs/experiments.md).
_LEFT_OUT = 0.8


def embed_aspects(
    texts: Sequence[str],
    conditions: Sequence[str],
    embed: Callable[[list[str], list[str]], FloatArray],
    *,
    order: Order,
) -> FloatArray:
    """Embed n texts under what their conditions name, ``(n, d)``, scaled to length 1.

    Args:
        texts: Texts, length n.
        conditions: Their conditions, length n.
        embed: Function from texts and aspects, m each, to unit vectors ``(m, d)``.
        order: Order of the model, which takes conditions apart if it reads them bare.
    """
    if order != "bare-condition-first":
        return embed([*texts], [*conditions])
    named = [take_apart(condition) for condition in conditions]
    owner = np.repeat(np.arange(len(named)), [len(one.aspects) for one in named])
    aspects = [aspect for one in named for aspect in one.aspects]
    vectors = embed([texts[row] for row in owner.tolist()], aspects)
    if len(aspects) > len(named):
        vectors = pooled(vectors, owner, np.ones(len(owner), np.float32))
    rows = [row for row, one in enumerate(named) if one.left_out]
    if rows:
        rest = [_all_but(named[row]) for row in rows]
        vectors[rows] = _without(embed([texts[row] for row in rows], rest), vectors[rows])
    return vectors


def _all_but(named: Named) -> str:
    return f"everything except {' and '.join(named.aspects)}"


def _without(whole: FloatArray, aspect: FloatArray) -> FloatArray:
    """Take from vectors most of what they have in the direction of an aspect, ``(n, d)``."""
    along = np.einsum("nd,nd->n", whole, aspect)
    rest: FloatArray = whole - _LEFT_OUT * along[:, None] * aspect
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    return rest
