"""Texts that a model cannot read: unknown words, and scripts its vocabulary has no words of.

Such texts become the same few unknown tokens, so that their scores mean nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import re
import reprlib
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from condsim.errors import ScoredWarning

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MAX_UNREAD_SHARE = 0.3
"""Share of unread words from which a text counts as unread."""

# A script is learned if the vocabulary has so many whole words of it, or so many ideographs.
MIN_WORDS_OF_SCRIPT = 100
MIN_IDEOGRAPHS = 2_000
MIN_LETTERS_OF_WORD = 3
# A tokenizer may replace a longer word by the unknown token.
_LONG_WORD = re.compile(r"\S{101}")
_MARKS_OF_PIECES = "#\N{LOWER ONE EIGHTH BLOCK}"
_IDEOGRAPHS = "CJK"
_TEXTS_PER_CALL = 1_024
_MAX_COUNTED_TEXTS = 100_000


class Legibility:
    """Test of which texts a model with this tokenizer reads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a tokenizer that does not truncate."""
        self._tokenizer = tokenizer

    def reads(self, text: str) -> bool:
        """Check that few words of a text are unread."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return not self._unread_words(text, encoding)[0]

    def unread_parts(self, texts: Sequence[str]) -> dict[str, str]:
        """Return the unread words of texts that have any; the text itself if it is unread."""
        parts: dict[str, str] = {}
        for start in range(0, len(texts), _TEXTS_PER_CALL):
            block = texts[start : start + _TEXTS_PER_CALL]
            encodings = self._tokenizer.encode_batch(block, add_special_tokens=False)
            for text, encoding in zip(block, encodings, strict=True):
                is_unread, words = self._unread_words(text, encoding)
                if is_unread:
                    parts[text] = text
                elif words:
                    parts[text] = " ".join(sorted(set(words)))
        return parts

    def _unread_words(self, text: str, encoding: Encoding) -> tuple[bool, list[str]]:
        """Decide whether a text is unread, and list its unread words; marks do not count."""
        spans: dict[int | None, tuple[int, int]] = {}
        unknown: set[int | None] = set()
        for token, word, span in zip(
            encoding.ids, encoding.word_ids, encoding.offsets, strict=True
        ):
            spans[word] = (spans.get(word, span)[0], span[1])
            if token == self._unknown_id:
                unknown.add(word)
        number, unread = 0, list[str]()
        for word, (start, stop) in spans.items():
            part = text[start:stop]
            if word in unknown or self._is_foreign(part):
                unread.append(part.casefold())
            elif any(map(str.isalnum, part)):
                number += 1
        # Invisible characters alone, such as a zero-width space, become no token.
        number += len(unread)
        return not encoding.ids or len(unread) > MAX_UNREAD_SHARE * number, unread

    def _is_foreign(self, word: str) -> bool:
        """Check for letters of a script without words; a lone one, such as α, is a symbol."""
        if word.isascii() or self._learned_scripts is None:
            return False
        scripts = [script for script in map(_script, word) if script]
        foreign = [script for script in scripts if script not in self._learned_scripts]
        return len(foreign) > 1 or _IDEOGRAPHS in foreign

    @cached_property
    def _unknown_id(self) -> int | None:
        model = json.loads(self._tokenizer.to_str())["model"]
        # Unigram models have the id of the unknown token instead of its name.
        name = model.get("unk_token")
        number: int | None = model.get("unk_id")
        return number if name is None else self._tokenizer.token_to_id(name)

    @cached_property
    def _learned_scripts(self) -> frozenset[str] | None:
        """Scripts with words in the vocabulary; None if its tokens are bytes."""
        if '"ByteLevel"' in self._tokenizer.to_str():
            return None
        counts = Counter({"LATIN": MIN_WORDS_OF_SCRIPT})
        ideographs = 0
        for token in self._tokenizer.get_vocab():
            if token.isascii():
                continue
            letters = token.strip(_MARKS_OF_PIECES)
            if len(letters) >= MIN_LETTERS_OF_WORD or _script(letters[:1]) == _IDEOGRAPHS:
                scripts = set(map(_script, letters))
                ideographs += scripts == {_IDEOGRAPHS}
                if len(scripts) == 1 and len(letters) > 1:
                    counts.update(scripts)
        learned = {script for script, number in counts.items() if number >= MIN_WORDS_OF_SCRIPT}
        return frozenset(learned | ({_IDEOGRAPHS} if ideographs >= MIN_IDEOGRAPHS else set()))


def suspects(texts: Iterable[str]) -> list[str]:
    """List the texts that may be unread, each once, without tokenizing any.

    They have a character outside ASCII, or a word of more than 100 characters.
    """
    suspected: dict[str, None] = {}
    for text in texts:
        if not text.isascii() or (len(text) > 100 and _LONG_WORD.search(text)):
            suspected[text] = None
    return list(suspected)


@lru_cache(maxsize=4_096)
def _script(character: str) -> str:
    """Return the first word of a letter's name, such as GREEK; "" for any other character."""
    return unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""


@dataclass
class UnreadTexts:
    """Texts that models could not read, counted by their hashes.

    Attributes:
        example: The first of them.
    """

    example: str = ""
    _hashes: set[int] = field(default_factory=set)

    def add(self, texts: Iterable[str]) -> None:
        """Count texts, each once."""
        for text in texts:
            self.example = self.example or text
            if len(self._hashes) < _MAX_COUNTED_TEXTS:
                self._hashes.add(hash(text))

    def message(self) -> str:
        """Describe the texts in one line; "" if there are none."""
        number = len(self._hashes)
        if not number:
            return ""
        more = "or more " if number == _MAX_COUNTED_TEXTS else ""
        texts = "1 text" if number == 1 else f"{number:,} {more}texts"
        return (
            f"The model cannot read {texts}, such as {reprlib.repr(self.example)}: the words, "
            "characters or script are not in its vocabulary, and such scores mean little."
        )


_LOGGER = logging.getLogger(__name__)
# A warning names the line that called condsim.
_INTERNAL_FILES = (str(Path(__file__).parents[1]), contextlib.__file__)
_UNREAD: ContextVar[UnreadTexts | None] = ContextVar("unread", default=None)


@contextmanager
def collect_unread(*, log: bool | None = None) -> Iterator[None]:
    """Collect the texts that models cannot read until the outermost block ends.

    Then ``log`` logs a line, as commands do; None issues a `ScoredWarning` instead, and False
    ignores the texts of this block.
    """
    if log is not False and _UNREAD.get() is not None:
        yield
        return
    texts = UnreadTexts()
    token = _UNREAD.set(texts)
    try:
        yield
    finally:
        _UNREAD.reset(token)
    # After an error, the error alone is reported.
    if log and texts.example:
        _LOGGER.warning("%s", texts.message())
    if log is None and texts.example:
        warnings.warn(texts.message(), ScoredWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """Count the frames from this function's caller to the code that called condsim."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_INTERNAL_FILES):
        frame, level = frame.f_back, level + 1
    return level


def record_unread(texts: Iterable[str]) -> None:
    """Count texts that a model cannot read."""
    collected = _UNREAD.get()
    if collected is not None:
        collected.add(texts)
