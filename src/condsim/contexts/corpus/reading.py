"""From input files to paragraphs, and from these to sentences: split, checked, no two near."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.contexts.settings import CorpusCounts, CorpusSettings
from condsim.data.reading import iter_rows, text_lines
from condsim.data.row import shown
from condsim.errors import InputError

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz", ".parquet")
"""Names of input files end in one of these."""

_TITLE = re.compile(r"= [^=].* =")
_HEADING = re.compile(r"(==+|= =).*=")
_OFTEN = 1 << 20  # bytes between two reports of progress
_PARQUET_RATIO = 3  # text to file size, about


class Paragraph(NamedTuple):
    """A paragraph of a document."""

    document: int  # from 0 over all input files
    text: str  # may be empty
    is_sentence: bool = False  # whether it must not be split


_Part = tuple[int, str]  # number of the document within the file, text


def find_inputs(inputs: Sequence[Path]) -> list[Path]:
    """Checks the input files before anything is read; a folder stands for the files in it.

    Args:
        inputs: Files, and folders that are searched with their sub-folders.

    Returns:
        The files: as given, those of a folder by name.

    Raises:
        InputError: If none is given, or one is missing, of no known suffix or given twice, or a
            folder holds none.
    """
    if not inputs:
        raise InputError("A corpus needs at least one input file. Got none.")
    known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    files: list[Path] = []
    for path in inputs:
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if _suffix(file) and file.is_file())
            if not found:
                raise InputError(f"{path} holds no file that ends in {known}.")
            files += found
        elif not path.is_file():
            raise InputError(f"{path} does not exist.")
        elif not _suffix(path):
            raise InputError(f"{path} must end in {known}.")
        else:
            files.append(path)
    for file, times in Counter(files).items():
        if times > 1:
            raise InputError(f"{file} is given twice.")
    return files


def unpacked_bytes(file: Path) -> int:
    """The size of the text in a file without reading it, about."""
    size = file.stat().st_size
    if file.suffix.lower() == ".parquet":
        return _PARQUET_RATIO * size
    if file.suffix.lower() != ".gz" or size < 8:
        return size
    with file.open("rb") as stream:
        stream.seek(-4, 2)
        return max(size, int.from_bytes(stream.read(4), "little"))


def count_bytes(
    paragraphs: Iterator[Paragraph], progress: Callable[[int, int], None], total: int
) -> Iterator[Paragraph]:
    """Passes paragraphs on and reports their bytes."""
    done = last = 0
    for paragraph in paragraphs:
        done += len(paragraph.text.encode()) + 1
        if done - last >= _OFTEN:
            last = done
            progress(min(done, total), total)
        yield paragraph
    progress(total, total)


def read_paragraphs(files: Sequence[Path], settings: CorpusSettings) -> Iterator[Paragraph]:
    """Reads files one after the other, holding no more than a row or line of each."""
    base = 0
    for path in files:
        kind, number = _suffix(path).removesuffix(".gz"), -1
        if not path.stat().st_size:
            continue
        for number, text in (_read_text if kind == ".txt" else _read_rows)(path, settings):
            yield Paragraph(base + number, text, is_sentence=kind == ".tsv")
        base += number + 1


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _read_text(path: Path, settings: CorpusSettings) -> Iterator[_Part]:
    number, inside, titled = -1, False, False
    if settings.documents == "file":
        number, inside, titled = 0, True, True  # no line ends the document
    for line in text_lines(path):
        text = line.strip()
        if not text:
            inside = inside and titled
        elif text[0] == "=" and _TITLE.fullmatch(text):
            if settings.documents == "blank-line":
                # The document begins with its first paragraph: one of a title alone is none.
                titled, inside = True, False
        elif text[0] == "=" and _HEADING.fullmatch(text):
            continue
        else:
            number, inside = number + (not inside), True
            yield number, text


def _is_heading(line: str) -> bool:
    return bool(_TITLE.fullmatch(line) or _HEADING.fullmatch(line))


def _read_rows(path: Path, settings: CorpusSettings) -> Iterator[_Part]:
    """The lines of the text of each row, without headings; a row that has none is empty."""
    captions = _suffix(path).startswith(".tsv")
    column = settings.caption_field if captions else settings.text_field
    for row in iter_rows(path, columns=[column]):
        text = row.cells[column]
        if not isinstance(text, str):
            raise InputError(f"{row.place(column)}: must be a text, got {shown(text)}.")
        lines = [text] if captions else filter(None, map(str.strip, text.split("\n")))
        kept = [line for line in lines if captions or not _is_heading(line)]
        for line in kept or [""]:
            yield row.number - 1, line


_NO_LETTER = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffd\ud800-\udfff]")
_AT_ONCE = 1 << 15  # sentences looked up together


class Sentence(NamedTuple):
    """A sentence on its way into the corpus."""

    document: int  # number among those read
    text: str  # runs of white space made one space
    words: int  # their number
    key: bytes  # see `near_duplicate_key`


def near_duplicate_key(sentence: str) -> bytes:
    """Eight bytes for the words of a sentence; ignores case, punctuation and values of numbers."""
    letters = _DIGITS.sub("0", _NO_LETTER.sub("", sentence.casefold()))
    return blake2b(letters.encode(), digest_size=8).digest() if letters else b""


def split_sentences(
    paragraphs: Iterable[Paragraph], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[list[Sentence]]:
    """Splits paragraphs; drops what is not a sentence and sentences seen before."""
    seen = np.zeros(0, np.uint64)  # keys in order: 80 MB for ten million, in a set some 800 MB
    sentences = _sentences(paragraphs, settings, counts)
    while block := list(islice(sentences, _AT_ONCE)):
        keys = np.frombuffer(b"".join(sentence.key for sentence in block), np.uint64)
        distinct, first = np.unique(keys, return_index=True)
        place = np.searchsorted(seen, distinct)
        new = np.searchsorted(seen, distinct, side="right") == place
        seen = np.insert(seen, place[new], distinct[new])
        counts.dropped["near_duplicate"] += int(len(block) - new.sum())
        yield [block[row] for row in np.sort(first[new])]


def _sentences(
    paragraphs: Iterable[Paragraph], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[Sentence]:
    """The sentences that break no rule by themselves; counts the others."""
    from sentencex import segment

    for document, paragraph, is_sentence in paragraphs:
        for part in [paragraph] if is_sentence else segment(settings.language, paragraph):
            words = part.split()
            if not words:
                continue
            text = " ".join(words)
            reason, key = _judge(text, len(words), settings)
            if reason:
                counts.dropped[reason] += 1
            else:
                yield Sentence(document, text, len(words), key)


def _judge(text: str, words: int, settings: CorpusSettings) -> tuple[str, bytes]:
    """The reason to drop a sentence, empty for none, and its key."""
    if _CONTROL.search(text):
        return "not_text", b""
    if words < settings.min_words:
        return "too_short", b""
    if words > settings.max_words:
        return "too_long", b""
    key = near_duplicate_key(text)
    return ("", key) if key else ("not_text", b"")
