"""Texts that must be left out of what a model learns from, such as those of a test set."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from condsim.data.reading import column_names, iter_rows, suffix_of, text_lines
from condsim.data.row import shown
from condsim.errors import InputError

_NO_WORD = re.compile(r"[\W_]+")
_HASH = re.compile("[0-9a-f]{64}", re.IGNORECASE)
_COLUMNS = ("sentence1", "sentence2", "text", "text1", "text2", "sentence", "caption")


def text_digest(text: str) -> bytes:
    """Hashes what a text says: texts that differ in case, punctuation or white space are equal.

    A minus is punctuation, too, so "-5 degrees" and "5 degrees" are equal.

    Returns:
        The 32 bytes of the SHA-256 of its letters, with their marks, and digits, in lower case and
        Unicode's NFC, with one space between words; of the text itself if it has none.

    Example:
        >>> text_digest("A dog runs.") == text_digest(" a  dog, runs")
        True
    """
    lower = unicodedata.normalize("NFC", text.lower())
    marked = not lower.isascii() and any(map(_is_mark, set(lower)))
    words = _NO_WORD.sub(_between if marked else " ", lower).strip()
    return hashlib.sha256((words or text).encode()).digest()


def _between(found: re.Match[str]) -> str:
    """What stands for characters that are no letters: the marks of the letter before, a space."""
    marks = "".join(takewhile(_is_mark, found.group()))
    return marks if marks == found.group() else f"{marks} "


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


class HeldOutTexts:
    """A set of texts, told apart by `text_digest`; `in` asks for a text."""

    def __init__(self, digests: frozenset[bytes] = frozenset()) -> None:
        """Takes the digests of the texts."""
        self._digests = digests

    def __contains__(self, text: str) -> bool:
        """Whether a text is one of them, whatever its case and punctuation."""
        return bool(self._digests) and text_digest(text) in self._digests

    def __len__(self) -> int:
        """Number of different texts."""
        return len(self._digests)


def held_out_texts(paths: Sequence[Path]) -> HeldOutTexts:
    """Reads the texts that must be left out.

    A list of hashes holds texts out without showing them, as a test set that is not to be
    published needs it.

    Args:
        paths: Data files as `iter_rows` reads them, whose columns ``sentence1``, ``sentence2``,
            ``text``, ``text1``, ``text2``, ``sentence`` and ``caption`` are read; or ``.sha256``
            files with a `text_digest` in hexadecimal on each line.

    Raises:
        InputError: If a file cannot be read, has none of these columns, or a line is no SHA-256.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    digests: set[bytes] = set()
    for path in map(Path, paths):
        digests |= _listed(path) if suffix_of(path) == ".sha256" else _texts(path)
    return HeldOutTexts(frozenset(digests))


def _listed(path: Path) -> set[bytes]:
    found = set()
    for number, line in enumerate(text_lines(path), start=1):
        if not (text := line.strip()):
            continue
        if not _HASH.fullmatch(text):
            raise InputError(
                f"{path}, line {number}: must be a SHA-256 of 64 hexadecimal digits, got "
                f"{shown(text)}. Give one hash a line."
            )
        found.add(bytes.fromhex(text))
    return found


def _texts(path: Path) -> set[bytes]:
    names = column_names(path)
    wanted = [name for name in _COLUMNS if name in names]
    rows = iter_rows(path, columns=wanted)  # says what is wrong with a file that cannot be read
    found = {text_digest(str(cell)) for row in rows for cell in row.cells.values() if cell}
    if not wanted:
        raise InputError(
            f"{path}: texts to leave out are read from a column {', '.join(_COLUMNS[:-1])} or "
            f"{_COLUMNS[-1]}; found {', '.join(names) or 'none'}. Rename the column of the texts."
        )
    return found
