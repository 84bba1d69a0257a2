"""Which words carry a score: Shapley values by removing words, without gradients.

A text is scored with many subsets of its words, while the other text stays whole. A word's share is
its mean effect over all orders in which the words could have been added (Shapley). As the
embedding of a text enters the score linearly before calibration, the shares of vectors give the
shares of pairs of words, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.scorers.explanation import ExplainedText, Explanation, Word
from condsim.types import BoolArray, FloatArray

Reader = Callable[[Sequence[tuple[str, str]]], Sequence[str | None]]
"""Answers conditions from texts, each in a few words or None, such as
``condsim.construction.FunctionAnswerer().answer``."""

_NOTHING = "."  # what a text without words is read as
_UNITS = 48  # most parts of a text; words of longer texts are joined
_LONGEST = 20_000  # characters of a text: some hundred readings of more would take minutes

_MARKS = r"\s,.;:!?\"“”„«»()\[\]{}…、。\uff01\uff0c\uff1f"
_SIGNS = "぀-ヿ㐀-鿿"  # scripts without spaces: each sign is a word
_WORD = re.compile(rf"[{_SIGNS}]|[^{_MARKS}{_SIGNS}]+(?:[.,:][^{_MARKS}{_SIGNS}]+)*")

_Floats = NDArray[np.float64]


class Occlusion:
    """A text with subsets of its words.

    Attributes:
        text: The text.
        spans: Where each of its n words, or groups of words, begins and ends.
        texts: The text without any word, the whole text, and m more, length 2 + m.
    """

    def __init__(self, text: str, *, samples: int, seed: int) -> None:
        """Draws the subsets.

        Args:
            text: The text.
            samples: Most subsets between none and all; 2n if that is more. If there are no more,
                all are taken and the shares are exact.
            seed: Seed of the draw.
        """
        self.text = text
        self.spans = _spans(text)
        size = len(self.spans)
        drawn = _subsets(size, max(samples, 2 * size), np.random.default_rng(seed))
        self._kept = np.array([subset for subset, _ in drawn], bool).reshape(-1, size)  # (m, n)
        self._weights = np.array([weight for _, weight in drawn], np.float64)
        every = (np.zeros(size, bool), np.ones(size, bool), *self._kept)
        self.texts = [self.keeping(subset) for subset in every]

    def keeping(self, subset: BoolArray) -> str:
        """Gives the text with some of its words, (n,); the marks between them stay."""
        parts, at = [], 0
        for (start, stop), kept in zip(self.spans, subset, strict=True):
            parts.append(self.text[at : stop if kept else start])
            at = stop
        text = "".join([*parts, self.text[at:]])
        return text if text.strip() else _NOTHING

    def shares(self, values: FloatArray) -> _Floats:
        """Gives the Shapley values of the words; they add up to ``values[1] - values[0]``.

        Weighted least squares under that constraint (Lundberg and Lee 2017, Theorem 2), with
        subsets in complementary pairs (Covert and Lee 2021).

        Args:
            values: What was found for each of `texts`, (2 + m,) or (2 + m, d).

        Returns:
            Shares, (n,) or (n, d).
        """
        gains = np.asarray(values, np.float64).reshape(len(self.texts), -1)  # (2 + m, d)
        gains = gains - gains[0]
        size = len(self.spans)
        if size == 1:
            found: _Floats = gains[1:2]
        else:
            kept = self._kept.astype(np.float64)
            weighted = (kept * self._weights[:, None]).T  # (n, m)
            right = np.column_stack([weighted @ gains[2:], np.ones(size)])
            solved = np.linalg.solve(weighted @ kept, right)
            free, slope = solved[:, :-1], solved[:, -1:]
            found = free - slope * (free.sum(axis=0) - gains[1]) / slope.sum()
        return found if np.ndim(values) > 1 else found[:, 0]


def explanation_of(
    model: str,
    condition: str | None,
    *,
    scale: str,
    occlusions: tuple[Occlusion, Occlusion],
    values: tuple[FloatArray, FloatArray],
    pairs: FloatArray | None,
    read: Reader | None,
) -> Explanation:
    """Makes an explanation of the scores (2 + m,) of each occluded text beside the other, whole."""
    given = [(condition or "", one.text) for one in occlusions]
    readings = (None, None) if read is None or condition is None else read(given)
    texts = []
    for one, scores, reading in zip(occlusions, values, readings, strict=True):
        shares = zip(one.spans, one.shares(scores) / 2, strict=True)
        words = (Word(one.text[start:stop], start, stop, float(x)) for (start, stop), x in shares)
        texts.append(ExplainedText(one.text, tuple(words), reading))
    return Explanation(
        model=model,
        condition=condition,
        scale=scale,
        # Of both texts' whole scores, which may differ in the last bits.
        score=float(values[0][1] + values[1][1]) / 2,
        remainder=float(values[0][0] + values[1][0]) / 2,
        texts=(texts[0], texts[1]),
        pairs=pairs,
    )


def check_explained(samples: int, **sentences: str) -> None:
    """Refuses what cannot be explained with an `InputError`."""
    if samples < 1:
        raise InputError(f"The number of 'samples' must be 1 or more. Got {samples} instead.")
    for name, text in sentences.items():
        if not isinstance(text, str) or len(text) > _LONGEST:
            given = f"{len(text):,}" if isinstance(text, str) else type(text).__name__
            raise InputError(
                f"{name!r} must be a str of at most {_LONGEST:,} characters to be explained. Got "
                f"{given} instead; explain rows one by one, and a long text in parts."
            )


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end; adjacent ones are joined where they are many."""
    words = [found.span() for found in _WORD.finditer(text)] or [(0, len(text))]
    step = -(-len(words) // _UNITS)
    groups = (words[at : at + step] for at in range(0, len(words), step))
    return [(group[0][0], group[-1][1]) for group in groups]


def _subsets(size: int, most: int, generator: np.random.Generator) -> list[tuple[BoolArray, float]]:
    """Subsets of so many words but none and all, with the weight of each in the least squares.

    Those of 1 word and of all but 1 come first, then of 2 and all but 2, as long as there is room
    for all of a size; the remaining ones are drawn, each with its complement.
    """
    found: list[tuple[BoolArray, float]] = []
    sizes = list(range(1, size // 2 + 1))
    while sizes:
        number = sizes[0]
        complements = 1 if 2 * number == size else 2
        if len(found) + comb(size, number) * complements > most:
            break
        weight = (size - 1) / (comb(size, number) * number * (size - number))
        for some in combinations(range(size), number):
            subset = np.isin(np.arange(size), some)
            found += [(one, weight) for one in (subset, ~subset)[:complements]]
        sizes.pop(0)
    draws = (most - len(found)) // 2 if sizes else 0
    if draws:
        mass = np.array(
            [(1 if 2 * one == size else 2) * (size - 1) / (one * (size - one)) for one in sizes]
        )
        for number in generator.choice(sizes, draws, p=mass / mass.sum()):
            subset = np.isin(np.arange(size), generator.permutation(size)[:number])
            found += [(one, float(mass.sum()) / (2 * draws)) for one in (subset, ~subset)]
    return found
