"""Trees of words: what a sentence mentions, and how near two things are.

A tree is a text file in ``words/``. Each line is a node, indented by two spaces below its parent:

```
# verbs                  the words of this tree are verbs (nouns otherwise)
(animal), creature       a node named in brackets is a group: its name is no word of its own
  dog, puppy | leash     words that name the node; after the bar, words that only hint at it
! hot dog                phrases that mean nothing here, though their parts do
```

Hints count only where a sentence has no word that names a node. The nearer the lowest common
ancestor of two nodes is to the root, the less they are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from condsim.construction.weak.forms import plural, verb_forms, words_of
from condsim.errors import InputError, unknown_name

_LONGEST = 4  # words of a phrase


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a tree.

    Attributes:
        name: The first word of its line, unique in the tree.
        parent: The node above; None for a root.
        depth: 0 for a root.
        order: Place in the file, from 0.
        words: Words that name it, in the singular or infinitive.
        path: The nodes from the root down to the parent.
        children: The nodes right below.
    """

    name: str
    parent: Node | None
    depth: int
    order: int
    words: tuple[str, ...] = ()
    path: tuple[Node, ...] = field(default=(), repr=False)
    children: list[Node] = field(default_factory=list, repr=False)

    def within(self, other: Node) -> bool:
        """Tells whether this is the other node or below it."""
        return other is self or other in self.path

    def below(self) -> Iterator[Node]:
        """Gives this node and all below it."""
        yield self
        for child in self.children:
            yield from child.below()


@dataclass(frozen=True)
class Found:
    """A mention of a node in a sentence.

    Attributes:
        node: What is mentioned.
        start: Its first word.
        stop: The word after its last.
        plural: Whether in the plural.
        hint: Whether it only hints at the node.
    """

    node: Node
    start: int
    stop: int
    plural: bool = False
    hint: bool = False


class Taxonomy:
    """A tree of words."""

    def __init__(self, text: str, *, name: str = "tree") -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}
        self._phrases: dict[tuple[str, ...], Found | None] = {}
        self._verbs = False
        stack: list[Node] = []
        for number, line in enumerate(text.splitlines(), 1):
            body = line.strip()
            if body.startswith("#") or not body:
                self._verbs |= body == "# verbs"
            elif body.startswith("!"):
                for phrase in _parts(body[1:]):
                    self._add(phrase, None)
            else:
                depth, odd = divmod(len(line) - len(line.lstrip(" ")), 2)
                if odd or depth > len(stack):
                    raise InputError(
                        f"{name}, line {number}: a node must be indented by two spaces more than "
                        f"its parent at most. Got {line!r}."
                    )
                del stack[depth:]
                stack.append(self._node(body, stack[-1] if stack else None, number))

    def __getitem__(self, name: str) -> Node:
        if name not in self.nodes:
            raise unknown_name(f"node of the tree {self.name!r}", name, self.nodes)
        return self.nodes[name]

    def find(self, words: Sequence[str]) -> tuple[Found, ...]:
        """Finds what a sentence mentions, the longest phrase first."""
        found: list[Found] = []
        at = 0
        while at < len(words):
            step = 1
            for length in range(min(_LONGEST, len(words) - at), 0, -1):
                key = tuple(words[at : at + length])
                if key in self._phrases:
                    hit, step = self._phrases[key], length
                    if hit is not None:
                        found.append(Found(hit.node, at, at + length, hit.plural, hit.hint))
                    break
            at += step
        named = tuple(hit for hit in found if not hit.hint)
        return named or tuple(found)

    def similarity(self, one: Node, two: Node) -> float:
        """Says how alike two nodes are."""
        if one is two:
            return 5.0
        common = sum(a is b for a, b in zip((*one.path, one), (*two.path, two), strict=False))
        if common == 0:
            return 1.0
        if common == min(one.depth, two.depth) + 1:
            return 3.0 if common == 1 else 4.0
        return min(float(common), 4.0)

    def _node(self, body: str, parent: Node | None, number: int) -> Node:
        named, _, hints = body.partition("|")
        words = _parts(named)
        name = words[0].strip("()")
        if name in self.nodes:
            raise InputError(f"{self.name}, line {number}: the node {name!r} occurs twice.")
        words = words[1:] if words[0].startswith("(") else words
        depth = parent.depth + 1 if parent else 0
        path = (*parent.path, parent) if parent else ()
        node = Node(name, parent, depth, len(self.nodes), tuple(words), path)
        self.nodes[name] = node
        if parent:
            parent.children.append(node)
        for word in words:
            self._add(word, Found(node, 0, 0))
        for word in _parts(hints):
            self._add(word, Found(node, 0, 0, hint=True))
        return node

    def _add(self, phrase: str, found: Found | None) -> None:
        if found is None:  # also where a word of the tree is the same
            forms = [phrase] if self._verbs else [phrase, plural(phrase)]
            self._phrases.update(dict.fromkeys(map(words_of, forms)))
            return
        if self._verbs:
            for form in verb_forms(phrase):
                self._phrases.setdefault(words_of(form), found)
            return
        self._phrases.setdefault(words_of(phrase), found)
        many = Found(found.node, 0, 0, plural=True, hint=found.hint)
        self._phrases.setdefault(words_of(plural(phrase)), many)


@cache
def taxonomy(name: str) -> Taxonomy:
    """Gives one of the trees that come with condsim."""
    folder = resources.files("condsim.construction.weak") / "words"
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise unknown_name("tree", name, (p.name.removesuffix(".txt") for p in folder.iterdir()))
    return Taxonomy(path.read_text(encoding="utf-8"), name=name)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
