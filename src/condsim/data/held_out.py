"""Texts to leave out of training data, such as the texts of a test set, or a share of them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np

from condsim.data.files import check_file, column_names, iter_rows, text_lines
from condsim.data.row import join_names, location, short_repr
from condsim.errors import InputError
from condsim.paths import suffix_of

_NO_WORD = re.compile(r"[\W_]+")
_SHA256 = re.compile("[0-9a-f]{64}", re.IGNORECASE)
_TEXT_COLUMNS = ("sentence1", "sentence2", "text", "text1", "text2", "sentence", "caption")


def text_digest(text: str) -> bytes:
    """Hash the words of a text, ignoring case, punctuation and white space.

    A minus is punctuation, too, so "-5 degrees" and "5 degrees" are equal.

    Returns:
        The 32 bytes of the SHA-256 of its letters, with their marks, and digits, in lower case and
        Unicode's NFC, with one space between words; of the text itself if it has none.

    Example:
        >>> text_digest("A dog runs.") == text_digest(" a  dog, runs")
        True
    """
    lower = unicodedata.normalize("NFC", text.lower())
    has_marks = not lower.isascii() and any(map(_is_mark, set(lower)))
    words = _NO_WORD.sub(_replace_gap if has_marks else " ", lower).strip()
    return hashlib.sha256((words or text).encode()).digest()


def _replace_gap(match: re.Match[str]) -> str:
    """Keep the marks of the letter before a gap between words; the rest becomes a space."""
    marks = "".join(takewhile(_is_mark, match.group()))
    return marks if marks == match.group() else f"{marks} "


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


class HeldOutTexts:
    """A set of texts, compared by `text_digest`; supports ``in``."""

    def __init__(self, digests: frozenset[bytes] = frozenset()) -> None:
        """Take the digests of the texts."""
        self._digests = digests

    def __contains__(self, text: str) -> bool:
        return bool(self._digests) and text_digest(text) in self._digests

    def __len__(self) -> int:
        return len(self._digests)


def held_out_texts(paths: Sequence[Path]) -> HeldOutTexts:
    """Read the texts to leave out.

    A list of hashes leaves texts out without revealing them, for an unpublished test set.

    Args:
        paths: Data files, whose columns ``sentence1``, ``sentence2``, ``text``, ``text1``,
            ``text2``, ``sentence`` and ``caption`` are read; or ``.sha256`` files with a
            `text_digest` in hexadecimal on each line.

    Raises:
        InputError: If a file cannot be read or has none of these columns, or a line is not a
            SHA-256.
        MissingExtraError: If a file is Parquet and pyarrow is missing.
    """
    digests: set[bytes] = set()
    for path in map(Path, paths):
        digests |= _read_hashes(path) if suffix_of(path) == ".sha256" else _hash_texts(path)
    return HeldOutTexts(frozenset(digests))


def _read_hashes(path: Path) -> set[bytes]:
    digests = set()
    for number, line in enumerate(text_lines(path), start=1):
        text = line.strip()
        if text and not _SHA256.fullmatch(text):
            raise InputError(
                f"{location(path, line=number)}: must be a SHA-256 of 64 hexadecimal digits, got "
                f"{short_repr(text)}."
            )
        if text:
            digests.add(bytes.fromhex(text))
    return digests


def _hash_texts(path: Path) -> set[bytes]:
    check_file(path)
    names = column_names(path)
    columns = [name for name in _TEXT_COLUMNS if name in names]
    if names and not columns:
        raise InputError(
            f"{path}: texts to leave out are read from a column {', '.join(_TEXT_COLUMNS[:-1])} or "
            f"{_TEXT_COLUMNS[-1]}; found {join_names(names)}."
        )
    rows = iter_rows(path, columns=columns)
    return {text_digest(str(cell)) for row in rows for cell in row.cells.values() if cell}


def stratified_share(
    values: Sequence[Collection[tuple[str, str]]], *, share: float, seed: int
) -> set[int]:
    """Draw a share of n texts that has about this share of the texts of each value.

    Iterative stratification (Sechidis, Tsoumakas & Vlahavas, 2011): the texts of the rarest value
    are dealt first, each to the side that lacks most of it. Values of a criterion that are too rare
    for the share count as one. Takes the criteria and values of each text; returns the indices of
    the texts that are drawn.
    """
    counts = Counter(value for own in values for value in own)
    every = ("", "")
    labels = [
        [
            every,
            *sorted(
                {(name, value if share * counts[name, value] >= 1 else "") for name, value in own}
            ),
        ]
        for own in values
    ]
    # Dictionaries keep the order of the draw.
    texts_of: dict[tuple[str, str], dict[int, None]] = {}
    for index in np.random.default_rng(seed).permutation(len(labels)).tolist():
        for label in labels[index]:
            texts_of.setdefault(label, {})[index] = None
    lacking = [
        {label: part * len(texts) for label, texts in texts_of.items()}
        for part in (1 - share, share)
    ]
    drawn: set[int] = set()
    while texts_of:
        rarest = min(texts_of, key=lambda label: (len(texts_of[label]), label == every))
        for index in list(texts_of[rarest]):
            side = max((0, 1), key=lambda side: (lacking[side][rarest], lacking[side][every]))
            for label in labels[index]:
                lacking[side][label] -= 1
                del texts_of[label][index]
            if side:
                drawn.add(index)
        texts_of = {label: texts for label, texts in texts_of.items() if texts}
    return drawn
