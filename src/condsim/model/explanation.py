"""Explanations: the words that carry a score, by Shapley values, without gradients.

A text is scored with many subsets of its words, while the other text stays whole. A word's share is
its mean effect over all orders in which the words could have been added (Shapley). As the embedding
of a text enters the score linearly before calibration, the shares of vectors also give the shares
of pairs of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.errors import InputError, check_at_least, require
from condsim.io import replacing
from condsim.paths import check_suffix
from condsim.types import BoolArray, Float64Array, FloatArray, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderResult

PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that `Explanation.plot` writes."""

_COMMENT = re.compile("<!--.*?-->", re.DOTALL)

# Blue and orange, which color-blind readers can tell apart.
_RAISING_RGB, _LOWERING_RGB = (66, 133, 208), (230, 126, 34)
# Share of the strongest word below which a word gets no color.
_MIN_COLORED_SHARE = 0.08
_BAR_CHARACTERS = 20
_LABEL_CHARACTERS = 24


@dataclass(frozen=True)
class Word:
    """A word of a text, or several adjacent ones of a long text.

    Attributes:
        start: Its first character in the text, from 0; ``stop`` is the one after its last.
        contribution: Its part of the score; below 0 if it lowers the score.
    """

    text: str
    start: int
    stop: int
    contribution: float

    @property
    def label(self) -> str:
        """The word or group on one line, shortened."""
        return shortened(self.text, _LABEL_CHARACTERS)


@dataclass(frozen=True)
class ExplainedText:
    """One of the two texts, and its words in their order."""

    text: str
    words: tuple[Word, ...]

    def parts(self) -> Iterator[tuple[str, Word | None]]:
        """Yield the whole text in parts: the words, and the text between them."""
        position = 0
        for word in self.words:
            yield self.text[position : word.start], None
            yield word.text, word
            position = word.stop
        yield self.text[position:], None


@dataclass(frozen=True)
class Explanation:
    """The words of two texts that carry their score under a condition.

    ``remainder`` and the contributions of all words of both texts add up to ``score``.

    Attributes:
        condition: The condition, or None.
        scale: Scale of score, remainder and contributions: ``unit``, ``likert`` or ``raw``.
        score: The score that is explained.
        remainder: Where the score starts: the score if one text is empty, mean of both cases.
        texts: Both texts with their words.
        pairs: Joint effect of each word of the first text with each of the second, on the raw
            scale, ``(words of the first, words of the second)`` float32; None if the model
            gives no embeddings. Above 0 if the two words make the texts more alike.
    """

    model: str
    condition: str | None
    scale: str
    score: float
    remainder: float
    texts: tuple[ExplainedText, ExplainedText]
    pairs: FloatArray | None = None

    def top(self, number: int = 5) -> list[tuple[int, Word]]:
        """List the words that move the score most, the strongest first.

        Each follows the index of its text, 0 or 1. A number below 0 is an `InputError`.
        """
        check_at_least(0, number=number)
        words = [(index, word) for index, text in enumerate(self.texts) for word in text.words]
        return sorted(words, key=lambda item: -abs(item[1].contribution))[:number]

    def to_dict(self) -> dict[str, object]:
        """Convert the explanation to values that JSON can hold."""
        return asdict(self) | {"pairs": None if self.pairs is None else self.pairs.tolist()}

    def to_html(self) -> str:
        """Make a fragment of HTML, without scripts, for light and dark pages alike.

        Words that raise the score are blue, those that lower it orange and underlined; the title
        of each is its contribution.
        """
        lines = [f"<p><strong>{self.score:.2f}</strong> {escape(self.condition or '')}</p>"]
        for text in self.texts:
            spans = "".join(self._html_span(part, word) for part, word in text.parts())
            lines.append(f'<p dir="auto">{spans}</p>')
        lines.append(
            f"<p><small>The score starts at {self.remainder:.2f}, as with an empty text; blue "
            "words raise it, orange ones lower it.</small></p>"
        )
        return '<div class="condsim-explanation">\n' + "\n".join(lines) + "\n</div>\n"

    _repr_html_ = to_html

    def plot(self, path: Path | str) -> None:
        """Plot the contributions as bars, and pairs of words as a heat map.

        Raises:
            InputError: If the suffix is not .png, .svg or .pdf, or the file cannot be written.
            MissingExtraError: If matplotlib is not installed.
        """
        path = Path(path)
        check_suffix(path, PICTURES)
        require("matplotlib", extra="train")
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure

        panels = 2 if self.pairs is None else 3
        longest = max(len(text.words) for text in self.texts)
        figure = Figure(figsize=(3.4 * panels, 1.6 + 0.22 * longest), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        for axis, text in zip(axes, self.texts, strict=False):
            self._plot_bars(axis, text)
        if self.pairs is not None:
            axis, limit = axes[2], max(float(np.abs(self.pairs).max()), 1e-9)
            colors = [_hex_color(-1), "white", _hex_color(1)]
            shades = LinearSegmentedColormap.from_list("shades", colors)
            image = axis.imshow(self.pairs, cmap=shades, vmin=-limit, vmax=limit, aspect="auto")
            labels1, labels2 = ([word.label for word in text.words] for text in self.texts)
            axis.set_yticks(range(len(labels1)), labels1, parse_math=False)
            axis.set_xticks(range(len(labels2)), labels2, parse_math=False)
            axis.tick_params(axis="x", rotation=90)
            figure.colorbar(image, ax=axis, label="pair of words (cosine)")
        title = f"{self.condition or 'no condition'}: {self.score:.2f}"
        figure.suptitle(f"{title}, from {self.remainder:.2f} with an empty text", parse_math=False)
        with replacing(path) as partial:
            figure.savefig(partial, format=path.suffix[1:].lower(), dpi=120)
            if path.suffix.lower() == ".svg":
                # Words are drawn as outlines; matplotlib repeats them in comments as they are.
                drawing = partial.read_text(encoding="utf-8")
                partial.write_text(_COMMENT.sub("", drawing), encoding="utf-8")

    def _plot_bars(self, axis: Axes, text: ExplainedText) -> None:
        values = [word.contribution for word in text.words]
        # Both texts have the same scale.
        every = [0.0, *(word.contribution for item in self.texts for word in item.words)]
        axis.barh(range(len(values)), values, color=[_hex_color(value) for value in values])
        labels = [word.label for word in text.words]
        axis.set_yticks(range(len(values)), labels, parse_math=False)
        axis.set_xlim(1.1 * min(every) - 1e-6, 1.1 * max(every) + 1e-6)
        axis.set_xlabel("contribution")
        axis.locator_params(axis="x", nbins=4)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        few_colors = console.color_system in ("standard", "windows")
        yield Text.assemble((f"{self.score:.2f}", "bold"), f"  {self.condition or ''}")
        for text in self.texts:
            line = Text()
            for part, word in text.parts():
                line.append(part, self._rich_style(word, few_colors) if word else "")
            yield line

    def table(self, *, top: int = 5, ascii_only: bool = False) -> str:
        """Format the sum as text: where it starts, the ``top`` words, all others and the score."""
        words = self.top(top)
        other_words = self.score - self.remainder - sum(word.contribution for _, word in words)
        names = [f"{word.label} ({index + 1})" for index, word in words]
        width = max([24, *map(len, names)])
        characters = _BAR_CHARACTERS / max(self._strongest(), 1e-9)
        lines = [f"{'start: one text is empty':<{width}} {self.remainder:+.3f}"]
        for name, (_, word) in zip(names, words, strict=True):
            bar = ("#" if ascii_only else "█") * round(abs(word.contribution) * characters)
            lines.append(f"{name:<{width}} {word.contribution:+.3f} {bar}".rstrip())
        totals = {"all other words": other_words, "score": self.score}
        lines += [f"{name:<{width}} {value:+.3f}" for name, value in totals.items()]
        return "\n".join(lines)

    def _strongest(self) -> float:
        return max((abs(word.contribution) for _, word in self.top(1)), default=0.0)

    def _strength(self, word: Word) -> float:
        """Strength of a word's color, from 0 to 1."""
        share = abs(word.contribution) / (self._strongest() or 1.0)
        return share if share >= _MIN_COLORED_SHARE else 0.0

    def _html_span(self, text: str, word: Word | None) -> str:
        if word is None:
            return escape(text)
        color = ",".join(map(str, _rgb(word.contribution)))
        strength = self._strength(word)
        style = f"background:rgba({color},{0.75 * strength:.2f})"
        style += ";text-decoration:underline dotted" if strength > 0 > word.contribution else ""
        return f'<span title="{word.contribution:+.3f}" style="{style}">{escape(text)}</span>'

    def _rich_style(self, word: Word, few_colors: bool) -> str:
        """Style of a word on a terminal: black on a color mixed with white, if it has many."""
        strength = self._strength(word)
        if not strength:
            return ""
        raises = word.contribution >= 0
        if few_colors:
            return "bold blue" if raises else "bold yellow underline"
        mixed = [round(255 + (part - 255) * strength) for part in _rgb(word.contribution)]
        style = f"black on rgb({','.join(map(str, mixed))})"
        return style if raises else f"{style} underline"


def _rgb(value: float) -> tuple[int, int, int]:
    return _RAISING_RGB if value >= 0 else _LOWERING_RGB


def _hex_color(value: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*_rgb(value))


# Replaces a text without words, as a model needs some text.
_NO_WORDS = "."
MAX_GROUPS = 48
"""Maximum number of parts of a text; words of longer texts are joined."""
MAX_CHARACTERS = 20_000
"""Longest text that is explained: scoring its subsets takes minutes."""

_MARKS = r"\s,.;:!?\"“”„«»()\[\]{}…、。\uff01\uff0c\uff1f"
# In scripts without spaces, each sign is a word.
_SIGNS = "぀-ヿ㐀-鿿"
_WORD = re.compile(rf"[{_SIGNS}]|[^{_MARKS}{_SIGNS}]+(?:[.,:][^{_MARKS}{_SIGNS}]+)*")


class Occlusion:
    """A text with subsets of its words.

    Attributes:
        spans: Start and end of each of its n words, or groups of words.
        texts: The text without any word, the whole text, and m more, length 2 + m.
    """

    def __init__(self, text: str, *, samples: int, seed: int) -> None:
        """Draw at most ``samples`` subsets between none and all, 2n if that is more.

        If there are no more, all are taken and the shares are exact.
        """
        self.text = text
        self.spans = _spans(text)
        size = len(self.spans)
        subsets = _subsets(size, max(samples, 2 * size), np.random.default_rng(seed))
        self._masks = np.array([mask for mask, _ in subsets], bool).reshape(-1, size)  # (m, n)
        self._weights = np.array([weight for _, weight in subsets], np.float64)
        masks = (np.zeros(size, bool), np.ones(size, bool), *self._masks)
        self.texts = [self.keeping(mask) for mask in masks]

    def keeping(self, mask: BoolArray) -> str:
        """Return the text with the words of a mask, (n,); the marks between words stay."""
        parts, position = [], 0
        for (start, stop), stays in zip(self.spans, mask, strict=True):
            parts.append(self.text[position : stop if stays else start])
            position = stop
        text = "".join([*parts, self.text[position:]])
        return text if text.strip() else _NO_WORDS

    def shares(self, values: FloatArray) -> Float64Array:
        """Compute the Shapley values of the words; they add up to ``values[1] - values[0]``.

        Weighted least squares under that constraint (Lundberg and Lee 2017, Theorem 2), with
        subsets in complementary pairs (Covert and Lee 2021). The values belong to `texts`,
        (2 + m,) or (2 + m, d), and the shares (n,) or (n, d).
        """
        gains = np.asarray(values, np.float64).reshape(len(self.texts), -1)  # (2 + m, d)
        gains = gains - gains[0]
        size = len(self.spans)
        if size == 1:
            shares: Float64Array = gains[1:2]
        else:
            masks = self._masks.astype(np.float64)
            weighted = (masks * self._weights[:, None]).T  # (n, m)
            right = np.column_stack([weighted @ gains[2:], np.ones(size)])
            solved = np.linalg.solve(weighted @ masks, right)
            free, slope = solved[:, :-1], solved[:, -1:]
            shares = free - slope * (free.sum(axis=0) - gains[1]) / slope.sum()
        return shares if np.ndim(values) > 1 else shares[:, 0]


def explanation_of(
    model: str,
    condition: str | None,
    *,
    scale: str,
    occlusions: tuple[Occlusion, Occlusion],
    values: tuple[FloatArray, FloatArray],
    pairs: FloatArray | None,
) -> Explanation:
    """Make an explanation from the scores (2 + m,) of each occluded text against the other one."""
    texts = []
    for occlusion, scores in zip(occlusions, values, strict=True):
        words = []
        for (start, stop), share in zip(occlusion.spans, occlusion.shares(scores), strict=True):
            words.append(Word(occlusion.text[start:stop], start, stop, float(share / 2)))
        texts.append(ExplainedText(occlusion.text, tuple(words)))
    return Explanation(
        model=model,
        condition=condition,
        scale=scale,
        # The scores of both whole texts may differ in the last bits.
        score=float(values[0][1] + values[1][1]) / 2,
        remainder=float(values[0][0] + values[1][0]) / 2,
        texts=(texts[0], texts[1]),
        pairs=pairs,
    )


def check_explained(samples: int, **sentences: str) -> None:
    """Refuse texts that are too long to be explained, and fewer samples than 1."""
    check_at_least(1, samples=samples)
    for name, text in sentences.items():
        if not isinstance(text, str):
            raise InputError(f"{name!r} must be a str; got {type(text).__name__}. Explain one row.")
        if len(text) > MAX_CHARACTERS:
            raise InputError(
                f"{name!r} must have at most {MAX_CHARACTERS:,} characters to be explained; got "
                f"{len(text):,}. Explain a long text in parts."
            )


def _spans(text: str) -> list[tuple[int, int]]:
    """Find the words of a text; adjacent ones are joined if there are many."""
    words = [match.span() for match in _WORD.finditer(text)] or [(0, len(text))]
    step = -(-len(words) // MAX_GROUPS)
    groups = (words[start : start + step] for start in range(0, len(words), step))
    return [(group[0][0], group[-1][1]) for group in groups]


def _subsets(size: int, most: int, generator: np.random.Generator) -> list[tuple[BoolArray, float]]:
    """Choose subsets of words, without none and all, with their weights in the least squares.

    Sets of 1 word and of all but 1 come first, then of 2 and all but 2, as long as all of a size
    fit; the remaining ones are drawn, each with its complement.
    """
    subsets: list[tuple[BoolArray, float]] = []
    sizes = list(range(1, size // 2 + 1))
    while sizes:
        words = sizes[0]
        complements = 1 if 2 * words == size else 2
        if len(subsets) + comb(size, words) * complements > most:
            break
        weight = (size - 1) / (comb(size, words) * words * (size - words))
        for chosen in combinations(range(size), words):
            mask = np.isin(np.arange(size), chosen)
            subsets += [(item, weight) for item in (mask, ~mask)[:complements]]
        sizes.pop(0)
    draws = (most - len(subsets)) // 2 if sizes else 0
    if draws:
        mass = np.array(
            [(1 if 2 * n == size else 2) * (size - 1) / (n * (size - n)) for n in sizes]
        )
        for words in generator.choice(sizes, draws, p=mass / mass.sum()):
            mask = np.isin(np.arange(size), generator.permutation(size)[:words])
            subsets += [(item, float(mass.sum()) / (2 * draws)) for item in (mask, ~mask)]
    return subsets
