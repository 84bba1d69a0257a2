"""Which words carry a score: Shapley values by removing words, without gradients."""

# A text is scored with many subsets of its words, while the other text stays whole. A word's share
# is its mean effect over all orders in which the words could have been added (Shapley). As the
# embedding of a text enters the score linearly before calibration, the shares of vectors give the
# shares of pairs of words, too.

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.errors import InputError, require
from condsim.io import replacing
from condsim.types import BoolArray, Float64Array, FloatArray

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that `Explanation.plot` writes."""

_RAISES, _LOWERS = (66, 133, 208), (230, 126, 34)  # blue and orange: told apart by everybody
_FAINT = 0.08  # share of the strongest word; what is below gets no colour
_BAR = 20  # characters


@dataclass(frozen=True)
class Word:
    """A word of a text, or some adjacent ones of a long text.

    Attributes:
        text: The word as it stands there.
        start: Its first character in the text, from 0.
        stop: The character after its last one.
        contribution: What it adds to the score; below 0 where it lowers the score.
    """

    text: str
    start: int
    stop: int
    contribution: float


@dataclass(frozen=True)
class ExplainedText:
    """One of the two texts.

    Attributes:
        text: The text.
        words: Its words in their order.
        reading: What was read from it under the condition, such as "three"; None if nothing was.
    """

    text: str
    words: tuple[Word, ...]
    reading: str | None = None

    def parts(self) -> Iterator[tuple[str, Word | None]]:
        """Yields the whole text in parts: the words, and what stands between them."""
        at = 0
        for word in self.words:
            yield self.text[at : word.start], None
            yield word.text, word
            at = word.stop
        yield self.text[at:], None


@dataclass(frozen=True)
class Explanation:
    """Which words of two texts carry their score under a condition.

    ``remainder`` and the contributions of all words of both texts add up to ``score``.

    Attributes:
        condition: The condition, or None.
        scale: Scale of score, remainder and contributions: ``unit``, ``likert`` or ``raw``.
        score: The score that is explained.
        remainder: The score when one text says nothing, mean of both cases.
        texts: Both texts with their words.
        pairs: What each word of the first text does together with each of the second, on the raw
            scale, ``(words of the first, words of the second)`` float32; None where the model
            gives no embeddings. Above 0 where the two words make the texts more alike.
    """

    model: str
    condition: str | None
    scale: str
    score: float
    remainder: float
    texts: tuple[ExplainedText, ExplainedText]
    pairs: FloatArray | None = None

    def top(self, number: int = 5) -> list[tuple[int, Word]]:
        """Gives the words that move the score most, the strongest first.

        Each comes with the text that it is of, 0 or 1. A number below 0 is an `InputError`.
        """
        if number < 0:
            raise InputError(f"The 'number' of words must be 0 or more. Got {number} instead.")
        words = [(place, word) for place, one in enumerate(self.texts) for word in one.words]
        return sorted(words, key=lambda item: -abs(item[1].contribution))[:number]

    def to_dict(self) -> dict[str, object]:
        """Gives the explanation as JSON takes it."""
        pairs = None if self.pairs is None else [[float(x) for x in row] for row in self.pairs]
        return {**asdict(self), "pairs": pairs}

    def to_html(self) -> str:
        """Gives a fragment of HTML, without scripts, for light and dark pages alike.

        Words that raise the score are blue, those that lower it orange and underlined; the title
        of each says by how much.
        """
        lines = [f"<p><strong>{self.score:.2f}</strong> {escape(self.condition or '')}</p>"]
        for one in self.texts:
            parts = "".join(self._mark(text, word) for text, word in one.parts())
            reading = f" <small>(read: {escape(one.reading)})</small>" if one.reading else ""
            lines.append(f'<p dir="auto">{parts}{reading}</p>')
        lines.append(
            f"<p><small>{self.remainder:.2f} when one text says nothing; blue words raise the "
            "score, orange ones lower it.</small></p>"
        )
        return '<div class="condsim-explanation">\n' + "\n".join(lines) + "\n</div>\n"

    _repr_html_ = to_html

    def plot(self, path: Path | str) -> None:
        """Draws the contributions as bars, and pairs of words as a map of colours.

        Args:
            path: The ``.png``, ``.svg`` or ``.pdf`` file to write.

        Raises:
            InputError: If the suffix is another, or the file cannot be written there.
            MissingExtraError: If matplotlib is not installed.
        """
        path = Path(path)
        if path.suffix.lower() not in PICTURES:
            raise InputError(f"{path}: the suffix must be one of {', '.join(PICTURES)}.")
        require("matplotlib", extra="train")
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure

        most = max(len(one.words) for one in self.texts)
        panels = 2 if self.pairs is None else 3
        figure = Figure(figsize=(3.4 * panels, 1.6 + 0.22 * most), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        every = [0.0, *(word.contribution for one in self.texts for word in one.words)]
        for axis, one in zip(axes, self.texts, strict=False):
            values = [word.contribution for word in one.words]
            places = range(len(values))
            axis.barh(places, values, color=[_part(value) for value in values])
            axis.set_yticks(places, [_shown(word) for word in one.words], parse_math=False)
            axis.set_xlim(1.1 * min(every) - 1e-6, 1.1 * max(every) + 1e-6)
            axis.set_xlabel("contribution")
            axis.locator_params(axis="x", nbins=4)
            axis.axvline(0, color="black", linewidth=0.8)
            axis.invert_yaxis()
            axis.spines[["top", "right"]].set_visible(False)
        if self.pairs is not None:
            axis, limit = axes[2], max(float(np.abs(self.pairs).max()), 1e-9)
            shades = LinearSegmentedColormap.from_list("shades", [_part(-1), "white", _part(1)])
            image = axis.imshow(self.pairs, cmap=shades, vmin=-limit, vmax=limit, aspect="auto")
            for ticks, one in ((axis.set_yticks, self.texts[0]), (axis.set_xticks, self.texts[1])):
                ticks(range(len(one.words)), [_shown(word) for word in one.words], parse_math=False)
            axis.tick_params(axis="x", rotation=90)
            figure.colorbar(image, ax=axis, label="pair of words (cosine)")
        title = f"{self.condition or 'no condition'}: {self.score:.2f}"
        figure.suptitle(f"{title}, of which {self.remainder:.2f} without words", parse_math=False)
        with replacing(path) as partial:
            figure.savefig(partial, format=path.suffix[1:].lower(), dpi=120)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        few = console.color_system in ("standard", "windows")
        yield Text.assemble((f"{self.score:.2f}", "bold"), f"  {self.condition or ''}")
        for one in self.texts:
            line = Text()
            for text, word in one.parts():
                line.append(text, self._style(word, few=few) if word else "")
            if one.reading:
                line.append(f"  (read: {one.reading})", "dim")
            yield line

    def table(self, *, top: int = 5, ascii_only: bool = False) -> str:
        """Gives the sum as text: the ``top`` words, all others, the remainder and the score."""
        words = self.top(top)
        rest = self.score - self.remainder - sum(word.contribution for _, word in words)
        rows = [(f"{_shown(word)} ({place + 1})", word.contribution) for place, word in words]
        width = max([24, *(len(name) for name, _ in rows)])
        unit = _BAR / max(self._strongest(), 1e-9)
        block = "#" if ascii_only else "█"
        lines = [
            f"{name:<{width}} {value:+.3f} {block * round(abs(value) * unit)}".rstrip()
            for name, value in rows
        ]
        ends = {"all other words": rest, "one text says nothing": self.remainder}
        for name, value in (ends | {"score": self.score}).items():
            lines.append(f"{name:<{width}} {value:+.3f}")
        return "\n".join(lines)

    def _strongest(self) -> float:
        return max((abs(word.contribution) for _, word in self.top(1)), default=0.0)

    def _strength(self, word: Word) -> float:
        """Strength of a word's colour, from 0 to 1."""
        share = abs(word.contribution) / (self._strongest() or 1.0)
        return share if share >= _FAINT else 0.0

    def _mark(self, text: str, word: Word | None) -> str:
        if word is None:
            return escape(text)
        colour = ",".join(map(str, _colour(word.contribution)))
        strength = self._strength(word)
        style = f"background:rgba({colour},{0.75 * strength:.2f})"
        style += ";text-decoration:underline dotted" * (strength > 0 > word.contribution)
        return f'<span title="{word.contribution:+.3f}" style="{style}">{escape(text)}</span>'

    def _style(self, word: Word, *, few: bool) -> str:
        """Style of a word on a terminal: black on a colour mixed with white, if it has many."""
        if not (strength := self._strength(word)):
            return ""
        raises = word.contribution >= 0
        if few:
            return "bold blue" if raises else "bold yellow underline"
        mixed = ",".join(
            str(round(255 + (one - 255) * strength)) for one in _colour(word.contribution)
        )
        return f"black on rgb({mixed})" + ("" if raises else " underline")


def _colour(value: float) -> tuple[int, int, int]:
    return _RAISES if value >= 0 else _LOWERS


def _part(value: float) -> str:
    """The colour as matplotlib takes it."""
    return "#{:02x}{:02x}{:02x}".format(*_colour(value))


def _shown(word: Word) -> str:
    """A word or group on one line, shortened."""
    text = " ".join(word.text.split())
    return text if len(text) <= 24 else f"{text[:23]}…"


Reader = Callable[[Sequence[tuple[str, str]]], Sequence[str | None]]
"""Answers conditions from texts, each in a few words or None, such as
``condsim.rows.teach.function_answers``."""

_NOTHING = "."  # what a text without words is read as
_UNITS = 48  # most parts of a text; words of longer texts are joined
_LONGEST = 20_000  # characters of a text: some hundred readings of more would take minutes

_MARKS = r"\s,.;:!?\"“”„«»()\[\]{}…、。\uff01\uff0c\uff1f"
_SIGNS = "぀-ヿ㐀-鿿"  # scripts without spaces: each sign is a word
_WORD = re.compile(rf"[{_SIGNS}]|[^{_MARKS}{_SIGNS}]+(?:[.,:][^{_MARKS}{_SIGNS}]+)*")


class Occlusion:
    """A text with subsets of its words.

    Attributes:
        spans: Where each of its n words, or groups of words, begins and ends.
        texts: The text without any word, the whole text, and m more, length 2 + m.
    """

    def __init__(self, text: str, *, samples: int, seed: int) -> None:
        """Draws the subsets.

        Args:
            samples: Most subsets between none and all; 2n if that is more. If there are no more,
                all are taken and the shares are exact.
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

    def shares(self, values: FloatArray) -> Float64Array:
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
            found: Float64Array = gains[1:2]
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
    """Subsets of so many words but none and all, with the weight of each in the least squares."""
    # Those of 1 word and of all but 1 come first, then of 2 and all but 2, as long as there is room
    # for all of a size; the remaining ones are drawn, each with its complement.
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
