"""Sentences of input files: files to paragraphs, paragraphs to distinct sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.data.files import iter_rows, text_lines
from condsim.data.row import short_repr
from condsim.errors import InputError
from condsim_contexts.recipe import CorpusSettings

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz", ".parquet")
"""Names of input files end in one of these."""

_TITLE = re.compile(r"= [^=].* =")
_HEADING = re.compile(r"(==+|= =).*=")
_NO_LETTER = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffd\ud800-\udfff]")
_SENTENCES_PER_LOOKUP = 1 << 15


@dataclass
class CorpusCounts:
    """Size of a corpus, and the sentences that were left out of it by reason."""

    documents: int = 0
    chunks: int = 0
    sentences: int = 0
    words: int = 0
    single_sentence_documents: int = 0
    documents_read: int = 0
    # Documents that were not taken because of `max_words_total`.
    documents_left: int = 0
    dropped: dict[str, int] = field(
        default_factory=lambda: {"too_short": 0, "too_long": 0, "near_duplicate": 0, "not_text": 0}
    )

    @property
    def dropped_summary(self) -> str:
        """The number of dropped sentences by reason, as text."""
        counts = (f"{number:,} {reason}" for reason, number in self.dropped.items())
        return ", ".join(counts).replace("_", " ")

    def summary(self) -> str:
        """Describe the corpus in one line."""
        return (
            f"corpus: {self.documents:,} documents, {self.sentences:,} sentences, {self.words:,} "
            f"words; dropped: {self.dropped_summary}; {self.single_sentence_documents:,} documents "
            "of one sentence, whose contexts are empty"
        )


class Paragraph(NamedTuple):
    """A paragraph, perhaps empty, of a document, which is numbered from 0 over all files."""

    document: int
    text: str
    is_sentence: bool = False


class CorpusSentence(NamedTuple):
    """A sentence with single spaces, its number of words and its `near_duplicate_key`."""

    document: int
    text: str
    words: int
    key: bytes


def find_inputs(inputs: Sequence[Path]) -> list[Path]:
    """List the input files, each once: a folder stands for the files in it, by name."""
    files: dict[Path, None] = {}
    for path in inputs:
        if not path.exists():
            raise InputError(f"{path} does not exist.")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        chosen = [file for file in inside if _suffix(file) and file.is_file()]
        if not chosen:
            rule = "contains no file that ends" if path.is_dir() else "must end"
            raise InputError(f"{path} {rule} in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
        files |= dict.fromkeys(chosen)
    return list(files)


def read_paragraphs(files: Sequence[Path], settings: CorpusSettings) -> Iterator[Paragraph]:
    """Read files one after the other, with one row or line in memory."""
    base = 0
    for path in files:
        kind, number = _suffix(path).removesuffix(".gz"), -1
        if not path.stat().st_size:
            continue
        read = _text_paragraphs if kind == ".txt" else _row_paragraphs
        for number, text in read(path, settings):
            yield Paragraph(base + number, text, is_sentence=kind == ".tsv")
        base += number + 1


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _text_paragraphs(path: Path, settings: CorpusSettings) -> Iterator[tuple[int, str]]:
    """Read the paragraphs of a text file, each with the number of its document in the file."""
    is_one_document = settings.documents == "file"
    number, inside, has_titles = -1, False, False
    for line in text_lines(path):
        text = line.strip()
        if not text:
            inside = inside and has_titles
        elif _TITLE.fullmatch(text):
            # A document begins with its first paragraph, so a title alone is not a document.
            has_titles, inside = True, False
        elif not _HEADING.fullmatch(text):
            number, inside = number + (not inside), True
            yield 0 if is_one_document else number, text


def _row_paragraphs(path: Path, settings: CorpusSettings) -> Iterator[tuple[int, str]]:
    """Read the lines of the text of each row, without headings; a row without lines is empty."""
    captions = _suffix(path).startswith(".tsv")
    column = settings.caption_field if captions else settings.text_field
    for row in iter_rows(path, columns=[column]):
        text = row.cells[column]
        if not isinstance(text, str):
            raise InputError(f"{row.location(column)}: must be a text, got {short_repr(text)}.")
        lines = [text]
        if not captions:
            stripped = map(str.strip, text.split("\n"))
            lines = [line for line in stripped if line and not _is_heading(line)]
        for line in lines or [""]:
            yield row.number - 1, line


def _is_heading(line: str) -> bool:
    return bool(_TITLE.fullmatch(line) or _HEADING.fullmatch(line))


def near_duplicate_key(sentence: str) -> bytes:
    """Hash the words of a sentence to 8 bytes; ignores case, punctuation and digits."""
    letters = _DIGITS.sub("0", _NO_LETTER.sub("", sentence.casefold()))
    return blake2b(letters.encode(), digest_size=8).digest() if letters else b""


def distinct_sentences(
    paragraphs: Iterable[Paragraph], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[CorpusSentence]:
    """Split paragraphs; drop and count what is not a sentence, and near-duplicates."""
    # Sorted keys take 80 MB for ten million sentences; a set would take some 800 MB.
    seen = np.zeros(0, np.uint64)
    sentences = _valid_sentences(paragraphs, settings, counts)
    while block := list(islice(sentences, _SENTENCES_PER_LOOKUP)):
        keys = np.frombuffer(b"".join(sentence.key for sentence in block), np.uint64)
        distinct, first = np.unique(keys, return_index=True)
        position = np.searchsorted(seen, distinct)
        is_new = np.searchsorted(seen, distinct, side="right") == position
        seen = np.insert(seen, position[is_new], distinct[is_new])
        counts.dropped["near_duplicate"] += int(len(block) - is_new.sum())
        for row in np.sort(first[is_new]):
            yield block[row]


def _valid_sentences(
    paragraphs: Iterable[Paragraph], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[CorpusSentence]:
    from sentencex import segment

    for document, paragraph, is_sentence in paragraphs:
        for part in [paragraph] if is_sentence else segment(settings.language, paragraph):
            words = part.split()
            if not words:
                continue
            text = " ".join(words)
            if _CONTROL.search(text):
                counts.dropped["not_text"] += 1
            elif len(words) < settings.min_words:
                counts.dropped["too_short"] += 1
            elif len(words) > settings.max_words:
                counts.dropped["too_long"] += 1
            elif not (key := near_duplicate_key(text)):
                counts.dropped["not_text"] += 1
            else:
                yield CorpusSentence(document, text, len(words), key)
