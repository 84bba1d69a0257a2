"""Triplets: an anchor, a text nearer to it and one further from it."""

# Columns are ``anchor``, ``positive`` and ``negative``, or those of the released Wikipedia section
# triplets, ``Sentence1`` to ``Sentence3`` (Ein Dor et al., 2018): a sentence is nearer in theme to
# those of its own section than to those of others. Any text with headings will do.

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.data.pairs import compare_split
from condsim.data.reading import column_names, iter_rows, stem_of, text_lines
from condsim.data.writing import write_records
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.types import IntArray, Task

TRIPLET_COLUMNS = (("anchor", "positive", "negative"), ("Sentence1", "Sentence2", "Sentence3"))
"""The names of the columns: ours, and those of the released section triplets."""

SECTION_COUNTS = {"test": 222957}
"""Rows of the released Wikipedia section triplets, as far as published (Reimers and Gurevych, 2019,
§4.4)."""

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class Triplets:
    """Validated triplets: what the triplet objective learns from, and is measured on.

    Attributes:
        revision: First 12 hex digits of the SHA-256 of the file.
        anchors: The anchor of each row, length n.
        positives: The text that is nearer to the anchor, length n.
        negatives: The text that is further from the anchor, length n.
        dropped: Rows of the file with two equal texts, left out.
    """

    name: str
    revision: str
    anchors: tuple[str, ...]
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.anchors)

    def take(self, rows: IntArray) -> Triplets:
        """Gives some of the triplets, by their indices ``(m,)``, in that order."""
        return replace(
            self,
            anchors=tuple(self.anchors[row] for row in rows),
            positives=tuple(self.positives[row] for row in rows),
            negatives=tuple(self.negatives[row] for row in rows),
        )

    def pairs(self) -> Task:
        """Gives the ``2n`` pairs of the triplets, as a task without conditions.

        Returns:
            Each anchor with its positive and the label 1 in the first half, with its negative and
            the label 0 in the second.
        """
        return Task(
            name=self.name,
            revision=self.revision,
            sentences1=self.anchors * 2,
            sentences2=self.positives + self.negatives,
            conditions=None,
            labels=np.repeat(np.array([1, 0], np.float32), len(self)),
            label_range=(0.0, 1.0),
        )


def is_triplets(columns: Collection[str]) -> bool:
    """Whether the names of a file's columns are those of triplets."""
    return any(set(names) <= set(columns) for names in TRIPLET_COLUMNS)


def load_triplets(path: Path | str, *, name: str | None = None) -> Triplets:
    """Loads a file of triplets.

    Rows in which two of the three texts are equal say nothing and are dropped; their number is
    logged at level info (logger ``condsim``). For the released ``test.csv``, another number of rows
    than published is logged as a warning.

    Args:
        path: File with the columns ``anchor``, ``positive`` and ``negative``, or ``Sentence1`` to
            ``Sentence3``; formats as `iter_rows` reads them.
        name: Name of the data; the file's stem by default.

    Returns:
        The triplets in file order.

    Raises:
        InputError: See `iter_rows`; also if no row is usable, or a text is empty or no text.
        MissingExtraError: See `iter_rows`.
    """
    path = Path(path)
    names, released = TRIPLET_COLUMNS
    columns = released if set(released) <= set(column_names(path)) else names
    kept: list[tuple[str, ...]] = []
    dropped = 0
    for row in iter_rows(path, columns=columns):
        texts = tuple(row.text(column) for column in columns)
        if len(set(texts)) == len(columns):
            kept.append(texts)
        else:
            dropped += 1
    if not kept:
        raise InputError(
            f"{path}: in each of the {dropped} rows two of the three texts are equal. A triplet "
            "needs three texts."
        )
    anchors, positives, negatives = zip(*kept, strict=True)
    triplets = Triplets(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12],
        anchors=anchors,
        positives=positives,
        negatives=negatives,
        dropped=dropped,
    )
    _LOGGER.info(
        "%s: %d triplets, %d dropped for equal texts", triplets.name, len(triplets), dropped
    )
    if columns == released:
        compare_split(path, found=len(kept) + dropped, published=SECTION_COUNTS)
    return triplets


def write_triplets(triplets: Triplets, path: Path) -> None:
    """Writes triplets to a ``.tsv`` file, in one step; runs of white space become one space.

    Raises:
        InputError: If the name ends in anything else, or the folder does not exist.
    """
    if path.suffix != ".tsv":
        raise InputError(f"{path}: triplets are written as .tsv; give a name that ends so.")
    rows = zip(triplets.anchors, triplets.positives, triplets.negatives, strict=True)
    write_records(path, (dict(zip(TRIPLET_COLUMNS[0], row, strict=True)) for row in rows))


_TITLE = re.compile(r"= [^=].* =")
_SECTION = re.compile(r"== [^=].* ==")
_DEEPER = re.compile(r"===+ .* ===+")

_Document = list[list[str]]  # the sentences of each section


@dataclass(frozen=True)
class SectionTriplets:
    """Triplets in two splits that share no document, and the number of documents of each."""

    train: Triplets
    dev: Triplets
    documents: tuple[int, int]


def draw_section_triplets(
    path: Path | str,
    *,
    count: int = 20_000,
    dev_share: float = 0.1,
    min_words: int = 5,
    max_words: int = 50,
    language: str = "en",
    seed: int = 0,
) -> SectionTriplets:
    """Draws triplets from text with headings.

    Anchor and positive are two sentences of one section, the negative is one of another section of
    the same document. No sentence is the anchor of two triplets. A section begins at a
    ``== Heading ==`` and keeps what is under deeper headings; what comes before the first heading
    of a document belongs to none. A sentence that is in the text more than once is left out.

    Args:
        path: UTF-8 text, perhaps gzipped: one paragraph a line, ``= Title =`` on the first line of
            a document, which also ends the one before.
        count: Triplets to draw; fewer where the text has fewer anchors.
        dev_share: Share in (0, 1) of the documents, and of ``count``, that make up the dev split.
        min_words: Sentences of fewer words are left out.
        max_words: Sentences of more words are left out.
        language: Language of the sentence splitter, as a code such as ``en``.
        seed: Seed of the split and of the draw.

    Returns:
        The triplets, named after the file with ``-train`` and ``-dev``.

    Raises:
        InputError: If the file cannot be read, an argument is out of its range, or there are fewer
            than two documents to draw from.
    """
    path = Path(path)
    if count < 1 or not 0 < dev_share < 1 or not 1 <= min_words <= max_words:
        raise InputError(
            "Triplets need a 'count' of at least 1, a 'dev_share' in (0, 1) and 'min_words' from 1 "
            f"to 'max_words'. Got {count}, {dev_share:g}, {min_words} and {max_words}."
        )
    documents = _usable(_documents(path, language, min_words=min_words, max_words=max_words))
    if len(documents) < 2:
        raise InputError(
            f"{path}: has {len(documents)} documents with two sections of two sentences or more, "
            "and two are needed. A document begins with '= Title =', a section with "
            "'== Heading =='."
        )
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(documents))
    held_out = min(max(1, round(dev_share * len(documents))), len(documents) - 1)
    revision, name = sha256_of(path)[:12], stem_of(path)
    parts = []
    for split, chosen, number in (
        ("dev", order[:held_out], max(1, round(dev_share * count))),
        ("train", order[held_out:], count),
    ):
        rows = _draw([documents[i] for i in np.sort(chosen)], number, generator)
        anchors, positives, negatives = zip(*rows, strict=True)
        parts.append(Triplets(f"{name}-{split}", revision, anchors, positives, negatives))
    dev, train = parts
    return SectionTriplets(train, dev, (len(documents) - held_out, held_out))


def _draw(
    documents: Sequence[_Document], count: int, generator: np.random.Generator
) -> list[tuple[str, str, str]]:
    """Draws anchors without replacement, and a positive and a negative for each."""
    anchors = [
        (d, s, i)
        for d, sections in enumerate(documents)
        for s, sentences in enumerate(sections)
        for i in range(len(sentences) if len(sentences) > 1 else 0)
    ]
    rows = []
    for place in generator.permutation(len(anchors))[:count].tolist():
        d, s, i = anchors[place]
        own = documents[d][s]
        other = documents[d][_another(len(documents[d]), s, generator)]
        positive = own[_another(len(own), i, generator)]
        rows.append((own[i], positive, other[int(generator.integers(len(other)))]))
    return rows


def _another(size: int, taken: int, generator: np.random.Generator) -> int:
    """A number below ``size`` other than ``taken``, each as likely."""
    drawn = int(generator.integers(size - 1))
    return drawn + (drawn >= taken)


def _usable(documents: Sequence[_Document]) -> list[_Document]:
    """Leaves out repeated sentences, then empty sections and documents that no triplet fits in."""
    times = Counter(
        sentence for sections in documents for sentences in sections for sentence in sentences
    )
    usable = []
    for sections in documents:
        once = [[text for text in sentences if times[text] == 1] for sentences in sections]
        kept = [sentences for sentences in once if sentences]
        if len(kept) > 1 and max(map(len, kept)) > 1:
            usable.append(kept)
    return usable


def _documents(path: Path, language: str, *, min_words: int, max_words: int) -> list[_Document]:
    """The sentences of each section of each document that has headings."""
    from sentencex import segment  # not before there is a document to split

    documents: list[_Document] = []
    for level, line in _marked_lines(path):
        if level == 0:
            documents.append([])
        elif level == 1 and documents:
            documents[-1].append([])
        elif level is None and documents and documents[-1]:
            for part in segment(language, line):
                words = part.split()
                if min_words <= len(words) <= max_words:
                    documents[-1][-1].append(" ".join(words))
    return documents


def _marked_lines(path: Path) -> Iterator[tuple[int | None, str]]:
    """Paragraphs with None, titles with 0 and section headings with 1; deeper ones left out."""
    for raw in text_lines(path):
        line = raw.strip()
        if _TITLE.fullmatch(line):
            yield 0, line
        elif _SECTION.fullmatch(line):
            yield 1, line
        elif line and not _DEEPER.fullmatch(line):
            yield None, line
