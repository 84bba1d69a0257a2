"""A sentence as the labelling functions see it: words, mentions, and what stands before a noun."""

from __future__ import annotations

from functools import cached_property

from condsim.construction.weak.forms import words_of
from condsim.construction.weak.trees import Found, Node, Taxonomy, taxonomy

_BOUNDS = frozenset(
    "of in on at by with to from into onto over under near behind beside and or but while as is "
    "are was were be being has have had that which who , . ; : ! ? & for through across against "
    "around between wearing holding riding playing carrying watching".split()
)
_FARTHEST = 5  # words before a noun that may belong to it


class Sentence:
    """A sentence, cut into words once; mentions are looked up once for each tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, tuple[Found, ...]] = {}

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in small letters."""
        return words_of(self.text)

    def mentions(self, tree: str | Taxonomy, *, of: Node | None = None) -> tuple[Found, ...]:
        """Gives what the sentence mentions."""
        tree = taxonomy(tree) if isinstance(tree, str) else tree
        if tree.name not in self._found:
            self._found[tree.name] = tree.find(self.words)
        found = self._found[tree.name]
        return found if of is None else tuple(hit for hit in found if hit.node.within(of))

    def nodes(self, tree: str | Taxonomy, *, of: Node | None = None) -> frozenset[Node]:
        """Gives the nodes that the sentence mentions, without those that another one refines."""
        found = {hit.node for hit in self.mentions(tree, of=of)}
        return frozenset(
            node for node in found if not any(o is not node and o.within(node) for o in found)
        )

    def before(self, found: Found) -> tuple[str, ...]:
        """Gives the words before a noun that belong to it.

        Returns:
            Such as ``("two", "large")``; up to five words.
        """
        start = found.start
        while start > max(0, found.start - _FARTHEST) and self.words[start - 1] not in _BOUNDS:
            start -= 1
        return self.words[start : found.start]

    def word(self, place: int) -> str:
        """Gives a word."""
        return self.words[place] if 0 <= place < len(self.words) else ""
