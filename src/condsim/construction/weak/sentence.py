"""A sentence as the labelling functions see it: words, mentions, and what stands before a noun."""

from __future__ import annotations

from functools import cached_property

from condsim.construction.weak.forms import words_of
from condsim.construction.weak.taxonomy import Found, Node, Taxonomy, taxonomy

__all__ = ["Sentence"]

_BOUNDS = frozenset(
    "of in on at by with to from into onto over under near behind beside and or but while as is "
    "are was were be being has have had that which who , . ; : ! ? & for through across against "
    "around between wearing holding riding playing carrying watching".split()
)
_FARTHEST = 5  # words before a noun that may belong to it


class Sentence:
    """A sentence, cut into words once; mentions are looked up once for each tree."""

    def __init__(self, text: str) -> None:
        """Takes the text.

        Args:
            text: The sentence.
        """
        self.text = text
        self._found: dict[str, tuple[Found, ...]] = {}

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in small letters."""
        return words_of(self.text)

    def mentions(self, tree: str | Taxonomy, *, of: Node | None = None) -> tuple[Found, ...]:
        """Gives what the sentence mentions.

        Args:
            tree: One of the trees that come with condsim, by name, or one's own.
            of: Only this node and those below it.

        Returns:
            The mentions in order.
        """
        tree = taxonomy(tree) if isinstance(tree, str) else tree
        if tree.name not in self._found:
            self._found[tree.name] = tree.find(self.words)
        found = self._found[tree.name]
        return found if of is None else tuple(hit for hit in found if hit.node.within(of))

    def nodes(self, tree: str | Taxonomy, *, of: Node | None = None) -> frozenset[Node]:
        """Gives the nodes that the sentence mentions, without those that another one refines.

        Args:
            tree: See `mentions`.
            of: See `mentions`.

        Returns:
            The nodes; empty if there are none.
        """
        found = {hit.node for hit in self.mentions(tree, of=of)}
        return frozenset(
            node for node in found if not any(o is not node and o.within(node) for o in found)
        )

    def before(self, found: Found) -> tuple[str, ...]:
        """Gives the words before a noun that belong to it.

        Args:
            found: The mention.

        Returns:
            Such as ``("two", "large")``; up to five words.
        """
        start = found.start
        while start > max(0, found.start - _FARTHEST) and self.words[start - 1] not in _BOUNDS:
            start -= 1
        return self.words[start : found.start]

    def word(self, place: int) -> str:
        """Gives a word.

        Args:
            place: Its place; may be outside.

        Returns:
            The word, or an empty text.
        """
        return self.words[place] if 0 <= place < len(self.words) else ""
