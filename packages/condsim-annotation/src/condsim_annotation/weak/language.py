"""Sentences as the labeling functions read them, trees of words, and forms of English words.

All words and wordings are in text files: trees in ``words/``, lists in ``lists/``. Each line is an
entry, indented by two spaces below the one it belongs to::

    (animal), creature       a name in brackets is not a word itself
      dog, puppy | leash     words that mean the same; after the bar, words that only hint at it
    ! hot dog                phrases that mean nothing here, though their parts do

The words of a tree are nouns, or verbs if it has the line ``# verbs``. The nearer the lowest common
ancestor of two nodes is to the root, the less they are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import NamedTuple

from condsim.errors import check_name

_FOLDER = resources.files("condsim_annotation.weak")
_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|[a-z0-9]+|[,.;:!?&]")
_MAX_PHRASE_WORDS = 4
_MAX_WORDS_BEFORE_NOUN = 5


class Entry(NamedTuple):
    """A line of a file of words, with its indentation in steps of two spaces."""

    depth: int
    name: str
    words: tuple[str, ...]
    hints: tuple[str, ...]


def read_entries(text: str) -> Iterator[Entry]:
    """Read the lines of a file of words; phrases that mean nothing have the name "!"."""
    for line in text.splitlines():
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        if body.startswith("!"):
            yield Entry(0, "!", _comma_parts(body[1:]), ())
            continue
        depth = (len(line) - len(line.lstrip(" "))) // 2
        before, _, after = body.partition("|")
        words = _comma_parts(before)
        name = words[0].strip("()")
        named = words if name == words[0] else words[1:]
        yield Entry(depth, name, named, _comma_parts(after))


def _comma_parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@cache
def listed(name: str, heading: str) -> tuple[Entry, ...]:
    """Return the entries below a heading of a file in ``lists/``."""
    entries: list[Entry] = []
    inside = False
    for entry in read_entries((_FOLDER / "lists" / f"{name}.txt").read_text(encoding="utf-8")):
        if entry.depth == 0:
            inside = entry.name == heading
        elif inside:
            entries.append(entry)
    return tuple(entries)


def all_words(name: str, heading: str) -> frozenset[str]:
    """Return all words below a heading of a list."""
    return frozenset(word for entry in listed(name, heading) for word in entry.words)


def names_by_word(name: str, heading: str) -> dict[str, str]:
    """Return the name of the entry that each word below a heading of a list belongs to."""
    return {word: entry.name for entry in listed(name, heading) for word in entry.words}


_PLURALS = {entry.name: entry.words[1] for entry in listed("grammar", "plurals")}
_VERBS = {entry.name: entry.words[1:] for entry in listed("grammar", "verbs")}
_DOUBLED = all_words("grammar", "doubled")
_BOUNDS = all_words("grammar", "bounds").union(",.;:!?&")


def tokenize(text: str) -> tuple[str, ...]:
    """Split a text into words in lower case and the marks between clauses."""
    return tuple(_WORD.findall(text.lower()))


def plural(noun: str) -> str:
    """Return the plural of a noun or of a phrase that ends in one."""
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
    """Return the inflections of a verb, or of a phrase that starts with one."""
    first, *rest = verb.split(" ")
    double = first + first[-1] if first in _DOUBLED else first
    has_silent_e = first.endswith("e") and not first.endswith(("ee", "oe"))
    third = plural(first) if first not in _PLURALS else first + "s"
    ing = (first[:-1] if has_silent_e else double) + "ing"
    if first in _VERBS:
        past = _VERBS[first]
    elif re.search(r"[^aeiou]y$", first):
        past = (first[:-1] + "ied",)
    else:
        past = (first + "d" if first.endswith("e") else double + "ed",)
    yield from (" ".join([form, *rest]) for form in {first, third, ing, *past})


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a tree: a name unique in it, its order in the file, and its words uninflected."""

    name: str
    parent: Node | None
    order: int
    words: tuple[str, ...]
    children: list[Node] = field(default_factory=list, repr=False)

    @cached_property
    def path(self) -> tuple[Node, ...]:
        """The nodes from the root down to this one."""
        return (*self.parent.path, self) if self.parent else (self,)

    def within(self, name: str) -> bool:
        """Return whether this is the node of that name or one below it."""
        return any(node.name == name for node in self.path)


class Mention(NamedTuple):
    """A mention of a node, from its first word to the one after its last; a hint if unnamed."""

    node: Node
    start: int
    stop: int
    plural: bool
    hint: bool


class Taxonomy:
    """A tree of words."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, Node] = {}
        # The mention that a phrase is, None for a phrase that means nothing.
        self._phrases: dict[tuple[str, ...], Mention | None] = {}
        self._is_of_verbs = "# verbs" in text.splitlines()
        path: list[Node] = []
        for entry in read_entries(text):
            if entry.name == "!":
                for phrase in entry.words:
                    forms = [phrase] if self._is_of_verbs else [phrase, plural(phrase)]
                    self._phrases.update(dict.fromkeys(map(tokenize, forms)))
            else:
                del path[entry.depth :]
                path.append(self._add(entry, path[-1] if path else None))

    def find(self, words: Sequence[str]) -> tuple[Mention, ...]:
        """Find the nodes that a sentence mentions, longest phrase first; hints only if no names."""
        mentions: list[Mention] = []
        start = 0
        while start < len(words):
            stop = start + 1
            for length in range(min(_MAX_PHRASE_WORDS, len(words) - start), 0, -1):
                key = tuple(words[start : start + length])
                if key in self._phrases:
                    match, stop = self._phrases[key], start + length
                    if match is not None:
                        mentions.append(match._replace(start=start, stop=stop))
                    break
            start = stop
        named = tuple(mention for mention in mentions if not mention.hint)
        return named or tuple(mentions)

    def _add(self, entry: Entry, parent: Node | None) -> Node:
        node = Node(entry.name, parent, len(self.nodes), entry.words)
        self.nodes[node.name] = node
        if parent:
            parent.children.append(node)
        for phrases, hint in ((entry.words, False), (entry.hints, True)):
            for phrase in phrases:
                for form in verb_forms(phrase) if self._is_of_verbs else [phrase]:
                    self._phrases.setdefault(tokenize(form), Mention(node, 0, 0, False, hint))
                if not self._is_of_verbs:
                    many = Mention(node, 0, 0, True, hint)
                    self._phrases.setdefault(tokenize(plural(phrase)), many)
        return node


def node_similarity(node1: Node, node2: Node) -> float:
    """Compare two nodes of a tree, from 1 to 5."""
    if node1 is node2:
        return 5.0
    common = sum(a is b for a, b in zip(node1.path, node2.path, strict=False))
    if common == 0:
        return 1.0
    # One node is below the other.
    if common == min(len(node1.path), len(node2.path)):
        return 3.0 if common == 1 else 4.0
    return min(float(common), 4.0)


@cache
def taxonomy(name: str) -> Taxonomy:
    """Return one of the trees of condsim."""
    texts = {path.name.removesuffix(".txt"): path for path in (_FOLDER / "words").iterdir()}
    check_name("tree", name, texts)
    return Taxonomy(texts[name].read_text(encoding="utf-8"))


class Sentence:
    """A sentence, split once into words in lower case and the marks between clauses."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = tokenize(text)
        self._mentions: dict[str, tuple[Mention, ...]] = {}

    def mentions(self, tree: str, *, of: str | None = None) -> tuple[Mention, ...]:
        """Return the mentions of a tree, or of one of its nodes and those below it."""
        if tree not in self._mentions:
            self._mentions[tree] = taxonomy(tree).find(self.words)
        mentions = self._mentions[tree]
        return mentions if of is None else tuple(m for m in mentions if m.node.within(of))

    def nodes(self, tree: str, *, of: str | None = None) -> frozenset[Node]:
        """Return the nodes that the sentence mentions, without those that another one refines."""
        nodes = {mention.node for mention in self.mentions(tree, of=of)}
        refined = {above for node in nodes for above in node.path[:-1]}
        return frozenset(nodes - refined)

    def before(self, mention: Mention) -> tuple[str, ...]:
        """Return up to five words before a noun that belong to it, such as ``("two", "large")``."""
        start = mention.start
        first = max(0, mention.start - _MAX_WORDS_BEFORE_NOUN)
        while start > first and self.words[start - 1] not in _BOUNDS:
            start -= 1
        return self.words[start : mention.start]

    def word(self, index: int) -> str:
        """Return a word, or an empty string."""
        return self.words[index] if 0 <= index < len(self.words) else ""


# A sentence is asked about several conditions in turn.
cut_sentence = lru_cache(maxsize=256)(Sentence)
