"""What scorers share: checked inputs, each encoded once in batches, and the scales of scores."""

from __future__ import annotations

import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, Protocol, get_args, overload

import numpy as np

from condsim.errors import InputError, unknown_name
from condsim.model.calibration import Calibration
from condsim.model.explanation import (
    Explanation,
    Occlusion,
    Reader,
    check_explained,
    explanation_of,
)
from condsim.model.truncation import one_warning
from condsim.types import BoolArray, FloatArray, IntArray, is_marks

Scale = Literal["unit", "likert", "raw"]
"""``unit``: calibrated, in [0, 1], 0.5 is Likert 3; ``likert``: the same on 1 to 5; ``raw``: what
the model itself gives, for an encoder the cosine."""


class Column(Protocol):
    """A column of texts of pandas, Polars, NumPy or Arrow, as they come."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


Texts = str | Sequence[str] | Column

SAMPLES = 256
"""Subsets of the words of a text that `PairScorer.explain` scores."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Rows:
    """Checked columns of texts, each of length n; ``single`` where every input was one text."""

    sentences: tuple[Sequence[str], ...]
    conditions: Sequence[str] | None
    single: bool

    def __len__(self) -> int:
        return len(self.sentences[0])


def check_rows(conditions: Texts | None, **sentences: Texts) -> Rows:
    """Checks texts and repeats single ones for every row.

    Args:
        conditions: Conditions, or one for every row, or None.
        **sentences: Columns of sentences, or one sentence for every row, by the name in messages.

    Returns:
        Columns of equal length.

    Raises:
        InputError: If a column is no sequence of texts, a text is empty, a condition is punctuation
            alone or the lengths differ.
    """
    given: dict[str, Texts] = dict(sentences)
    if conditions is not None:
        given["conditions"] = conditions
    columns = {name: _column(name, texts) for name, texts in given.items()}
    wide = {name: len(columns[name]) for name in columns if not isinstance(given[name], str)}
    if len(set(wide.values())) > 1:
        listed = ", ".join(f"{length} {name}" for name, length in wide.items())
        raise InputError(f"There must be as many texts of each kind. Got {listed} instead.")
    rows = next(iter(wide.values()), 1)
    for name in columns.keys() - wide.keys():
        columns[name] = [*columns[name]] * rows
    condition_column = columns.pop("conditions", None)
    return Rows(tuple(columns.values()), condition_column, single=not wide)


def _column(name: str, texts: Texts) -> Sequence[str]:
    """Checks one column; a single text is a column of one."""
    single = isinstance(texts, str)
    if isinstance(texts, str):
        texts = (texts,)
    kind = type(texts)
    table = hasattr(kind, "columns")  # of pandas, Polars, Arrow or DuckDB
    sequence = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    if table or not sequence or isinstance(texts, Mapping) or getattr(texts, "shape", 0) == ():
        advice = "Pass one of its columns" if table else "Pass a list, or a column of a table"
        raise InputError(
            f"The {name!r} must be one text or a sequence of texts. Got {kind.__name__} instead. "
            f"{advice}."
        )
    column = texts if isinstance(texts, list | tuple) else _listed(texts)
    for index, text in enumerate(column):
        if not isinstance(text, str):
            rule = "be a str"
        elif not text or text.isspace():
            rule = "have text"
        elif not text.isascii() and _SURROGATE.search(text):
            rule = "be valid Unicode, without half of a surrogate pair"
        elif name == "conditions" and is_marks(text):
            rule = "have a letter, digit or symbol, not punctuation alone"
        else:
            continue
        if single:
            one = name.replace("sentences", "sentence").replace("conditions", "condition")
            fix = "Name the respect in which to compare, such as 'the sport'"
            raise InputError(
                f"The {one} must {rule}, got {reprlib.repr(text)}. "
                f"{fix if one == 'condition' else 'Correct it'}."
            )
        raise InputError(
            f"Each of the {name!r} must {rule}. Got {reprlib.repr(text)} at index {index} instead; "
            "correct it, or leave the row out."
        )
    return column


def _listed(texts: Any) -> list[Any]:  # noqa: ANN401  (a column of a library that may not be there)
    """The values of a column, as Arrow, Polars and pandas, or NumPy give them."""
    for method in ("to_pylist", "to_list", "tolist"):
        if (convert := getattr(texts, method, None)) is not None:
            return list(convert())
    return list(texts)


def distinct(
    columns: Sequence[Sequence[str]], conditions: Sequence[str] | None
) -> tuple[list[str], list[str] | None, IntArray]:
    """Finds each conditional sentence once, in an order that depends on the texts alone.

    So swapped columns are embedded in the same batches, and scores are symmetric to the last bit,
    although the make-up of a batch touches the last bits of an embedding.

    Args:
        columns: Columns of sentences, each of length n.
        conditions: Their conditions, length n, or None.

    Returns:
        The distinct sentences (m), their conditions (m) or None, and the index of each text of the
        columns among them, ``(columns, n)``.
    """
    keys = conditions if conditions is not None else [""] * len(columns[0])
    texts = [list(zip(keys, column, strict=True)) for column in columns]
    number_of = {key: number for number, key in enumerate(sorted(set(chain(*texts))))}
    where = [[number_of[key] for key in row] for row in texts]
    sentences = [sentence for _, sentence in number_of]
    index = np.array(where, dtype=np.int64).reshape(len(columns), -1)
    return sentences, None if conditions is None else [key for key, _ in number_of], index


def check_scale(scale: str) -> None:
    """Refuses an unknown scale with an `InputError`."""
    if scale not in get_args(Scale):
        raise unknown_name("scale", str(scale), get_args(Scale))


def rescaled(raw: FloatArray, calibration: Calibration | None, scale: Scale) -> FloatArray:
    """Puts raw similarities ``(n,)`` on a scale; without calibration, ``unit`` is the raw one."""
    if scale == "raw":
        return raw
    unit = raw if calibration is None else calibration.apply(raw)
    return unit if scale == "unit" else 1 + 4 * unit


class PairScorer(ABC):
    """Scores single texts or columns of them, on a scale of the caller's choice."""

    name: str

    @abstractmethod
    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        """Scores checked rows, ``(n,)`` float32."""

    @overload
    def score(  # type: ignore[overload-overlap]  # a str is a sequence of str to the type checker
        self,
        sentences1: str,
        sentences2: str,
        conditions: str | None = None,
        *,
        scale: Scale = "unit",
    ) -> float: ...

    @overload
    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        conditions: Texts | None = None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray: ...

    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        conditions: Texts | None = None,
        *,
        scale: Scale = "unit",
    ) -> float | FloatArray:
        """Scores pairs of sentences, each with respect to its condition.

        A single text among sequences stands for every row.

        Args:
            sentences1: First sentences, length n, or one: any sequence of str, such as a list, a
                Series of pandas or Polars, or an array of Arrow or NumPy.
            sentences2: Second sentences, length n, or one.
            conditions: Conditions, length n, or one; None compares the sentences as a whole, where
                the model can do that.
            scale: ``unit``: in [0, 1], 0.5 is Likert 3; ``likert``: the same in [1, 5]; ``raw``: as
                the model gives it. The class says what that is.

        Returns:
            A float for single texts, else ``(n,)`` float32; higher is more similar.

        Raises:
            InputError: If a text is empty or no str, lengths differ, the scale is unknown, or the
                model needs a condition, or knows of none.
        """
        check_scale(scale)
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        with one_warning():
            scores = self._score_rows(rows, scale)
        return float(scores[0]) if rows.single else scores

    def explain(
        self,
        sentence1: str,
        sentence2: str,
        condition: str | None = None,
        *,
        scale: Scale = "unit",
        samples: int = SAMPLES,
        seed: int = 0,
        read: Reader | None = None,
    ) -> Explanation:
        """Says which words of two sentences carry their score.

        Each text is scored with many subsets of its words, beside the other one whole. The
        contribution of a word is half of its Shapley value among the words of its text, so that
        remainder and contributions add up to the score (Lundberg and Lee 2017). Words are removed,
        not replaced. In a text of more than 48 words, adjacent ones are taken together.

        Args:
            condition: The condition; see `score` for None.
            scale: Scale of the score that is explained; see `score`.
            samples: Most subsets of the words of each text, all of which are scored; twice the
                words if that is more. Up to 8 words, all are scored.
            seed: Seed of the draw of the subsets.
            read: Says what is to be read from a text under a condition, such as
                ``condsim.rows.teach.function_answers``.

        Returns:
            The explanation, which prints on a terminal and shows in a notebook.

        Raises:
            InputError: If a text is empty, no str or has more than 20,000 characters, the scale is
                unknown, or there are fewer samples than 1.
        """
        check_scale(scale)
        check_explained(samples, sentence1=sentence1, sentence2=sentence2)
        check_rows(condition, sentence1=sentence1, sentence2=sentence2)
        first, second = (
            Occlusion(text, samples=samples, seed=seed) for text in (sentence1, sentence2)
        )
        with one_warning():
            values1, values2, pairs = self._occluded(first, second, condition, scale)
        return explanation_of(
            self.name,
            condition,
            scale=scale,
            occlusions=(first, second),
            values=(values1, values2),
            pairs=pairs,
            read=read,
        )

    def _occluded(
        self, first: Occlusion, second: Occlusion, condition: str | None, scale: Scale
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Scores each occluded text beside the other, whole; and the shares of pairs of words."""
        values1 = self.score(first.texts, second.text, condition, scale=scale)
        values2 = self.score(first.text, second.texts, condition, scale=scale)
        return values1, values2, None

    @overload
    def same(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
        self, sentences1: str, sentences2: str, conditions: Texts, *, at_least: float
    ) -> bool: ...

    @overload
    def same(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts, *, at_least: float
    ) -> BoolArray: ...

    def same(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts, *, at_least: float
    ) -> bool | BoolArray:
        """Says whether two texts are the same in every one of some respects.

        A gate for caches and routers: a text that differs in one condition does not pass, however
        alike the texts are in the others.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            conditions: One condition or several, each for all rows.
            at_least: The calibrated score that every condition must reach, in [0, 1];
                `condsim.evaluation.threshold.find_threshold` finds one from labelled rows.

        Returns:
            A bool for single texts, else ``(n,)``.

        Raises:
            InputError: If there is no condition, the threshold is out of its range, a text is empty
                or no str, or lengths differ.

        Example:
            >>> import condsim
            >>> model = condsim.load()
            >>> model.same("A dog runs.", "A dog runs.", ["the animal", "the act"], at_least=0.7)
            True
        """
        check_threshold(at_least)
        wanted = np.float32(at_least)
        rows = check_rows(None, sentences1=sentences1, sentences2=sentences2)
        named = _column("conditions", conditions)
        if not named:
            raise InputError(
                "The 'conditions' must be one or more, such as ['the action', 'the object']. Got "
                "none."
            )
        one, two = rows.sentences
        if rows.single:
            return bool((self.score(one[0], two[0], list(named)) >= wanted).all())
        same = np.ones(len(rows), dtype=np.bool_)
        for condition in named:  # only rows that are still the same are scored
            left = np.flatnonzero(same).tolist()
            columns = [one[row] for row in left], [two[row] for row in left]
            same[left] = self.score(*columns, condition) >= wanted
        return same


def check_threshold(at_least: float) -> None:
    """Refuses a threshold that is no calibrated score with an `InputError`."""
    if not 0 <= at_least <= 1:
        raise InputError(
            f"'at_least' must be a score from 0 to 1. Got {at_least} instead; 0.5 is the middle of "
            "the scale."
        )


def token_batches(lengths: IntArray, *, tokens: int) -> Iterator[IntArray]:
    """Cuts texts, sorted by length, into batches of at most ``tokens`` tokens.

    Args:
        lengths: Tokens of each text, (n,).
        tokens: Most tokens of a batch once its texts are padded to the longest, 1 or more.

    Yields:
        Indices of the texts of one batch, shortest first; a text above the limit is alone.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= tokens:
            stop += 1
        yield order[start:stop]
        start = stop
