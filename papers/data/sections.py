"""Triplets drawn from text with headings, such as the sections of textbooks or of Wikipedia."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.files import text_lines
from condsim.data.formats import write_records
from condsim.data.nli_triplets import TRIPLET_COLUMNS, Triplets, load_triplets
from condsim.data.tasks import compare_count
from condsim.errors import InputError
from condsim.paths import sha256_of, stem_of

WIKI_SECTIONS_TEST_ROWS = 222957
"""Rows of ``test.csv`` of the released section triplets (Reimers and Gurevych, 2019, §4.4)."""


def load_wiki_sections(path: Path) -> Triplets:
    """Load the released ``test.csv``; a number of rows other than published is logged."""
    triplets = load_triplets(path)
    rows = len(triplets) + triplets.dropped
    compare_count(str(path), rows=rows, published=WIKI_SECTIONS_TEST_ROWS)
    return triplets


def write_triplets(triplets: Triplets, path: Path) -> None:
    """Write triplets to a ``.tsv`` file, in one step; runs of white space become one space."""
    if path.suffix != ".tsv":
        raise InputError(f"{path}: triplets are written as .tsv; give a name that ends so.")
    rows = zip(triplets.anchors, triplets.positives, triplets.negatives, strict=True)
    write_records(path, (dict(zip(TRIPLET_COLUMNS[0], row, strict=True)) for row in rows))


_TITLE = re.compile(r"= [^=].* =")
_SECTION = re.compile(r"== [^=].* ==")
_DEEPER = re.compile(r"===+ .* ===+")

# The sentences of each section.
_Document = list[list[str]]


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
    """Draw triplets from text with headings.

    Anchor and positive are two sentences of one section, the negative is one of another section of
    the same document. No sentence is the anchor of two triplets. A section begins at a
    ``== Heading ==`` and keeps what is under deeper headings; what comes before the first heading
    of a document belongs to none. A sentence that is in the text more than once is left out. The
    text has a paragraph a line, and ``= Title =`` before each document.
    """
    path = Path(path)
    if count < 1 or not 0 < dev_share < 1 or not 1 <= min_words <= max_words:
        raise InputError(
            "Triplets need a 'count' of at least 1, a 'dev_share' in (0, 1) and 'min_words' from 1 "
            f"to 'max_words'; got {count}, {dev_share:g}, {min_words} and {max_words}."
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
    """Draw anchors without replacement, and a positive and a negative for each."""
    anchors = [
        (d, s, i)
        for d, sections in enumerate(documents)
        for s, sentences in enumerate(sections)
        for i in range(len(sentences) if len(sentences) > 1 else 0)
    ]
    rows = []
    for index in generator.permutation(len(anchors))[:count].tolist():
        d, s, i = anchors[index]
        own = documents[d][s]
        other_section = documents[d][_another(len(documents[d]), s, generator)]
        positive = own[_another(len(own), i, generator)]
        negative = other_section[int(generator.integers(len(other_section)))]
        rows.append((own[i], positive, negative))
    return rows


def _another(size: int, taken: int, generator: np.random.Generator) -> int:
    """Draw a number below ``size`` other than ``taken``."""
    drawn = int(generator.integers(size - 1))
    return drawn + (drawn >= taken)


def _usable(documents: Sequence[_Document]) -> list[_Document]:
    """Leave out repeated sentences, then empty sections and documents that no triplet fits in."""
    times = Counter(
        sentence for sections in documents for sentences in sections for sentence in sentences
    )
    usable = []
    for sections in documents:
        once = [[text for text in sentences if times[text] == 1] for sentences in sections]
        not_empty = [sentences for sentences in once if sentences]
        if len(not_empty) > 1 and max(map(len, not_empty)) > 1:
            usable.append(not_empty)
    return usable


def _documents(path: Path, language: str, *, min_words: int, max_words: int) -> list[_Document]:
    """Split a text with headings into documents, sections and sentences."""
    # This library is imported only when there is a document to split.
    from sentencex import segment

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
    """Yield paragraphs with None, titles with 0 and section headings with 1, but no deeper ones."""
    for raw in text_lines(path):
        line = raw.strip()
        if _TITLE.fullmatch(line):
            yield 0, line
        elif _SECTION.fullmatch(line):
            yield 1, line
        elif line and not _DEEPER.fullmatch(line):
            yield None, line
