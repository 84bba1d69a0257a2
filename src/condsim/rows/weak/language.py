"""Sentences as the labelling functions see them, trees of words, and the forms of English words."""

# All words and wordings lie in text files: trees in ``words/``, lists in ``lists/``. Each line is
# an entry, indented by two spaces below the one it belongs to:
#
#     (animal), creature       a name in brackets is no word itself
#       dog, puppy | leash     words that mean the same; after the bar, words that only hint at it
#     ! hot dog                phrases that mean nothing here, though their parts do
#
# The words of a tree are nouns, or verbs if it has the line ``# verbs``. The nearer the lowest
# common ancestor of two nodes is to the root, the less they are alike.

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources

from condsim.errors import InputError, unknown_name

FOLDER = resources.files("condsim.rows.weak")
_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|[a-z0-9]+|[,.;:!?&]")


@dataclass(frozen=True)
class Entry:
    """A line of a file of words."""

    line: int  # from 1
    depth: int
    name: str  # its first word; "!" for phrases that mean nothing
    words: tuple[str, ...]  # before the bar; with the name, unless that is in brackets
    hints: tuple[str, ...]  # after the bar


def entries(text: str, *, source: str) -> Iterator[Entry]:
    """Reads the lines of a file of words."""
    deepest = 0
    for number, line in enumerate(text.splitlines(), 1):
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        if body.startswith("!"):
            yield Entry(number, 0, "!", _parts(body[1:]), ())
            continue
        depth, odd = divmod(len(line) - len(line.lstrip(" ")), 2)
        if odd or depth > deepest:
            raise InputError(
                f"{source}, line {number}: a node must be indented by two spaces more than "
                f"its parent at most. Got {line!r}."
            )
        deepest = depth + 1
        named, _, hints = body.partition("|")
        first, *rest = words = _parts(named)
        own = words if first == first.strip("()") else tuple(rest)
        yield Entry(number, depth, first.strip("()"), own, _parts(hints))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@cache
def listed(name: str, heading: str) -> tuple[Entry, ...]:
    """Gives the entries below a heading of a file in ``lists/``."""
    found: list[Entry] = []
    inside = False
    text = (FOLDER / "lists" / f"{name}.txt").read_text(encoding="utf-8")
    for entry in entries(text, source=name):
        if entry.depth == 0:
            inside = entry.name == heading
        elif inside:
            found.append(entry)
    return tuple(found)


def all_words(name: str, heading: str) -> frozenset[str]:
    """Gives all words below a heading of a list."""
    return frozenset(word for entry in listed(name, heading) for word in entry.words)


def names_by_word(name: str, heading: str) -> dict[str, str]:
    """Gives the name of the entry that each word below a heading of a list belongs to."""
    return {word: entry.name for entry in listed(name, heading) for word in entry.words}


_PLURALS = {entry.name: entry.words[1] for entry in listed("grammar", "plurals")}
_VERBS = {entry.name: entry.words[1:] for entry in listed("grammar", "verbs")}
_DOUBLED = all_words("grammar", "doubled")


def words_of(text: str) -> tuple[str, ...]:
    """Cuts a text into words in small letters and marks that part clauses."""
    return tuple(_WORD.findall(text.lower()))


def plural(noun: str) -> str:
    """Gives the plural of a noun or of a phrase that ends in one.

    Example:
        >>> plural("fire truck"), plural("woman"), plural("puppy"), plural("bus")
        ('fire trucks', 'women', 'puppies', 'buses')
    """
    *first, last = noun.split(" ")
    if last in _PLURALS:
        last = _PLURALS[last]
    elif last.endswith(("man", "woman")) and last not in ("human", "german"):
        last = last[:-2] + "en"
    elif re.search(r"[^aeiou]y$", last):
        last = last[:-1] + "ies"
    elif last.endswith(("s", "x", "z", "ch", "sh")):
        last += "es"
    else:
        last += "s"
    return " ".join([*first, last])


def verb_forms(verb: str) -> Iterator[str]:
    """Gives the inflections of a verb, or of a phrase that starts with one.

    Example:
        >>> sorted(verb_forms("jump over"))
        ['jump over', 'jumped over', 'jumping over', 'jumps over']
    """
    first, *rest = verb.split(" ")
    double = first + first[-1] if first in _DOUBLED else first
    silent = first.endswith("e") and not first.endswith(("ee", "oe"))
    third = plural(first) if first not in _PLURALS else first + "s"
    ing = (first[:-1] if silent else double) + "ing"
    if first in _VERBS:
        past = _VERBS[first]
    elif re.search(r"[^aeiou]y$", first):
        past = (first[:-1] + "ied",)
    else:
        past = (first + "d" if first.endswith("e") else double + "ed",)
    yield from (" ".join([form, *rest]) for form in {first, third, ing, *past})


_LONGEST = 4  # words of a phrase
_FARTHEST = 5  # words before a noun that may belong to it
_BOUNDS = all_words("grammar", "bounds").union(",.;:!?&")


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a tree."""

    name: str  # unique in the tree
    parent: Node | None
    order: int  # in the file, from 0
    words: tuple[str, ...]  # that name it, in the singular or infinitive
    children: list[Node] = field(default_factory=list, repr=False)

    @cached_property
    def path(self) -> tuple[Node, ...]:
        """The nodes from the root down to this one."""
        return (*self.parent.path, self) if self.parent else (self,)

    def within(self, other: Node) -> bool:
        """Whether this is the other node or one below it."""
        return other in self.path


@dataclass(frozen=True)
class Found:
    """A mention of a node in a sentence, from its first word to the one after its last."""

    node: Node
    start: int
    stop: int
    plural: bool = False
    hint: bool = False  # it only hints at the node


class Taxonomy:
    """A tree of words."""

    def __init__(self, text: str, *, name: str = "tree") -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}
        self._phrases: dict[tuple[str, ...], Found | None] = {}
        self._verbs = "# verbs" in text.splitlines()
        above: list[Node] = []
        for entry in entries(text, source=name):
            if entry.name == "!":  # also where a word of the tree is the same
                for phrase in entry.words:
                    forms = [phrase] if self._verbs else [phrase, plural(phrase)]
                    self._phrases.update(dict.fromkeys(map(words_of, forms)))
            else:
                del above[entry.depth :]
                above.append(self._add(entry, above[-1] if above else None))

    def __getitem__(self, name: str) -> Node:
        if name not in self.nodes:
            raise unknown_name(f"node of the tree {self.name!r}", name, self.nodes)
        return self.nodes[name]

    def find(self, words: Sequence[str]) -> tuple[Found, ...]:
        """Finds what a sentence mentions, the longest phrase first; hints only if nothing else."""
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
        """Says how alike two nodes are, from 1 to 5."""
        if one is two:
            return 5.0
        common = sum(a is b for a, b in zip(one.path, two.path, strict=False))
        if common == 0:
            return 1.0
        if common == min(len(one.path), len(two.path)):  # one is below the other
            return 3.0 if common == 1 else 4.0
        return min(float(common), 4.0)

    def _add(self, entry: Entry, parent: Node | None) -> Node:
        if entry.name in self.nodes:
            raise InputError(
                f"{self.name}, line {entry.line}: the node {entry.name!r} occurs twice."
            )
        node = Node(entry.name, parent, len(self.nodes), entry.words)
        self.nodes[node.name] = node
        if parent:
            parent.children.append(node)
        for phrases, hint in ((entry.words, False), (entry.hints, True)):
            for phrase in phrases:
                for form in verb_forms(phrase) if self._verbs else [phrase]:
                    self._phrases.setdefault(words_of(form), Found(node, 0, 0, hint=hint))
                if not self._verbs:
                    many = Found(node, 0, 0, plural=True, hint=hint)
                    self._phrases.setdefault(words_of(plural(phrase)), many)
        return node


@cache
def taxonomy(name: str) -> Taxonomy:
    """Gives one of the trees that come with condsim."""
    folder = FOLDER / "words"
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise unknown_name("tree", name, (p.name.removesuffix(".txt") for p in folder.iterdir()))
    return Taxonomy(path.read_text(encoding="utf-8"), name=name)


class Sentence:
    """A sentence, cut into words once; mentions are looked up once for each tree.

    Attributes:
        text: The sentence.
        words: Its words in small letters, and the marks that part clauses.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = words_of(text)
        self._found: dict[Taxonomy, tuple[Found, ...]] = {}

    def mentions(self, tree: str | Taxonomy, *, of: Node | None = None) -> tuple[Found, ...]:
        """Gives what the sentence mentions of a tree, or of the nodes below one."""
        tree = taxonomy(tree) if isinstance(tree, str) else tree
        if tree not in self._found:
            self._found[tree] = tree.find(self.words)
        found = self._found[tree]
        return found if of is None else tuple(hit for hit in found if hit.node.within(of))

    def nodes(self, tree: str | Taxonomy, *, of: Node | None = None) -> frozenset[Node]:
        """Gives the nodes that the sentence mentions, without those that another one refines."""
        found = {hit.node for hit in self.mentions(tree, of=of)}
        return frozenset(
            node for node in found if not any(o is not node and o.within(node) for o in found)
        )

    def before(self, found: Found) -> tuple[str, ...]:
        """Gives up to five words before a noun that belong to it, such as ``("two", "large")``."""
        start = found.start
        while start > max(0, found.start - _FARTHEST) and self.words[start - 1] not in _BOUNDS:
            start -= 1
        return self.words[start : found.start]

    def word(self, place: int) -> str:
        """Returns a word, or an empty string."""
        return self.words[place] if 0 <= place < len(self.words) else ""


cut_sentence = lru_cache(maxsize=256)(Sentence)  # a sentence is asked about several conditions
