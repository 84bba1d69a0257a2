"""Text for the benchmarks of SSBC: sentences of textbooks, or made of words of no meaning."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from condsim_contexts.corpus import prepare_corpus

__all__ = ["TEXT", "sentences", "synthetic_sentences"]

TEXT = Path(__file__).resolve().parents[2] / "shared" / "data" / "corpus" / "openstax.txt.gz"
"""Where the textbooks are looked for; they may not be passed on with condsim."""

_GENERATED = 100_000
_WORDS = 60_000
_AT_ONCE = 10_000


def sentences() -> tuple[list[str], str]:
    """Distinct sentences.

    Returns:
        The sentences and a few words on where they come from.
    """
    if not TEXT.is_file():
        return _generated(), f"{_GENERATED:,} generated sentences"
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        corpus = prepare_corpus([TEXT], Path(folder, "corpus"))
        texts = corpus.sentences(np.arange(len(corpus)))
    return texts, f"{len(texts):,} sentences of OpenStax textbooks"


def synthetic_sentences(size: int) -> Iterator[str]:
    """Sentences that never repeat, as many as wanted, with a vocabulary that grows with them.

    Each is the first half of one sentence and the second half of another, and one in four has a
    made-up word, so that a gigabyte has some two million distinct words, as text from the web has.

    Args:
        size: Bytes of text wanted.

    Yields:
        Some sentences at a time, one a line; documents of 50 are separated by blank lines.
    """
    texts = [text.split() for text in sentences()[0]]
    random = np.random.default_rng(0)
    written = 0
    while written < size:
        pairs = random.integers(len(texts), size=(_AT_ONCE, 2)).tolist()
        made_up = random.integers(26**5, size=_AT_ONCE).tolist()
        lines: list[str] = []
        for number, (first, second) in enumerate(pairs):
            left, right = texts[first], texts[second]
            words = left[: len(left) // 2] + right[len(right) // 2 :]
            if number % 4 == 0:
                words.insert(len(words) // 2, _word(made_up[number]))
            lines.append(" ".join(words) + ("\n" if number % 50 == 49 else ""))
        block = "\n".join(lines) + "\n"
        written += len(block.encode())
        yield block


def _word(number: int) -> str:
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return letters


def _generated() -> list[str]:
    """Sentences of words whose frequencies fall as in a language."""
    random = np.random.default_rng(0)
    chances = 1 / np.arange(1, _WORDS + 1)
    lengths = random.integers(6, 40, size=_GENERATED)
    drawn = random.choice(_WORDS, size=int(lengths.sum()), p=chances / chances.sum())
    words = [_word(number * 97) for number in range(_WORDS)]
    parts = np.split(drawn, np.cumsum(lengths)[:-1])
    return [" ".join(words[word] for word in part.tolist()) + "." for part in parts]
