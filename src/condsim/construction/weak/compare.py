"""Comparisons that labelling functions share, each from 1 (entirely different) to 5 (the same)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set

from condsim.construction.weak.trees import Node, Taxonomy, taxonomy
from condsim.errors import InputError

LOWEST, HIGHEST = 1.0, 5.0

_STEPS = (5.0, 4.0, 3.0, 2.0, 1.0)


def yes_or_no(one: Hashable, two: Hashable) -> float:
    """Compares values that are equal or not."""
    return HIGHEST if one == two else LOWEST


def graded(*values: str) -> Callable[[str, str], float]:
    """Makes a comparison of values that have an order.

    Example:
        >>> graded("none", "mild", "severe")("mild", "severe")
        3.0
    """
    if len(values) < 2 or len(set(values)) < len(values):
        raise InputError(f"An order needs two values or more, each once. Got {list(values)!r}.")
    place = {value: number for number, value in enumerate(values)}

    def compare(one: str, two: str) -> float:
        apart = abs(place[one] - place[two]) / (len(values) - 1)
        return HIGHEST - apart * (HIGHEST - LOWEST)

    return compare


def steps(*labels: float) -> Callable[[int, int], float]:
    """Makes a comparison of whole numbers by how far they are apart."""
    table = labels or _STEPS
    return lambda one, two: table[min(abs(one - two), len(table) - 1)]


def by_tree(
    tree: str | Taxonomy, *, floor: float = LOWEST
) -> Callable[[Set[Node], Set[Node]], float]:
    """Makes a comparison of what two sentences mention, by a tree.

    Each node is held against the most similar one of the other sentence; the result is the mean
    over both directions.
    """

    def compare(one: Set[Node], two: Set[Node]) -> float:
        known = taxonomy(tree) if isinstance(tree, str) else tree
        alike = (_best(known, one, two) + _best(known, two, one)) / 2
        return floor + (alike - LOWEST) * (HIGHEST - floor) / (HIGHEST - LOWEST)

    return compare


def say_nodes(nodes: Set[Node]) -> str:
    """Says nodes as a short answer."""
    names = [node.name for node in sorted(nodes, key=lambda node: node.order)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _best(tree: Taxonomy, some: Set[Node], others: Set[Node]) -> float:
    return sum(max(tree.similarity(one, two) for two in others) for one in some) / len(some)
