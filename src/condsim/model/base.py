"""Base class of the models that score pairs of texts: `score`, `same` and `explain`.

A model implements `PairScorer._score_rows`. Everything it is given has passed `check_rows`, which
repeats a single text for every row.
"""

from __future__ import annotations

import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, get_args, overload

import numpy as np

from condsim.errors import InputError, check_name
from condsim.model.calibration import Calibration
from condsim.model.criterion import Criterion, is_criterion_file
from condsim.model.inputs import collect_truncations
from condsim.model.legibility import collect_unread, record_unread
from condsim.types import BoolArray, FloatArray, html_table, is_marks

if TYPE_CHECKING:
    from condsim.model.explanation import Explanation, Occlusion

P = ParamSpec("P")
R = TypeVar("R")

Scale = Literal["unit", "likert", "raw"]
"""``unit``: calibrated, in [0, 1], 0.5 is Likert 3; ``likert``: the same on 1 to 5; ``raw``: the
output of the model, for an encoder the cosine."""

SCORER_LOG = "condsim.scorers"
"""Logger to which slow scorers write their progress."""

SAMPLES = 256
"""Subsets of the words of a text that `PairScorer.explain` scores."""

COLLECTION_SHARE = 0.3
"""Share of overall similarity in searches, clusters and duplicates.

On the dev part of the suite ``natural``, matching goes from 65.6 to 65.7 at 0.3 and graded pairs
fall from 62.0 to 55.5: the share protects single tests of collections. Scores have a share of 0.
"""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Column(Protocol):
    """A column of texts of pandas, Polars, NumPy or Arrow."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


Texts = str | Sequence[str] | Column

Condition = str | Criterion
"""A condition in words, or one that was learned."""

Conditions = Texts | Criterion
"""A condition for all rows, one for each row, or one that was learned."""


class PairScorer(ABC):
    """A model that scores single pairs or columns of them, on a scale of the caller's choice."""

    name: str

    @abstractmethod
    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        """Score checked rows, ``(n,)`` float32."""

    def resolved(self, condition: Conditions | None) -> Conditions | None:
        """Return the learned criterion that a condition is, or names; else the condition.

        A name that ends in ``.criterion`` is a file. Only models with embeddings take criteria.
        """
        for name in condition if isinstance(condition, list | tuple) else [condition]:
            if isinstance(name, Criterion) or is_criterion_file(name):
                raise InputError(
                    f"{self.name!r} gives only scores, and a learned criterion such as "
                    f"{str(name)!r} needs embeddings. Use a bi- or tri-encoder."
                )
        return condition

    def named(self, condition: Condition) -> str:
        """Return the name of a condition, by which it can be stored."""
        self.resolved(condition)
        return str(condition)

    def _score_blended(self, rows: Rows, scale: Scale, overall: float) -> FloatArray:
        """Score checked rows; ``overall`` is the share of the similarity without the condition."""
        raise InputError(f"{self.name!r} gives no embeddings, which 'overall' needs.")

    @overload
    def score(  # type: ignore[overload-overlap]  # a str is a sequence of str to the type checker
        self,
        sentences1: str,
        sentences2: str,
        condition: Condition | None = ...,
        *,
        scale: Scale = ...,
        overall: float = ...,
    ) -> float: ...

    @overload
    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        condition: Conditions | None = ...,
        *,
        scale: Scale = ...,
        overall: float = ...,
    ) -> FloatArray: ...

    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        condition: Conditions | None = None,
        *,
        scale: Scale = "unit",
        overall: float = 0.0,
    ) -> float | FloatArray:
        """Score pairs of sentences, each with respect to its condition.

        A single text next to sequences stands for every row. A list of conditions has one for each
        pair; `score_matrix` scores every pair under every condition.

        Args:
            sentences1: First sentences, length n, or one: any sequence of str, such as a list, a
                Series of pandas or Polars, or an array of Arrow or NumPy.
            sentences2: Second sentences, length n, or one.
            condition: Conditions, length n, or one, which may be a learned `Criterion`; None
                compares the sentences as a whole, where the model can do that.
            scale: ``unit``: in [0, 1], 0.5 is Likert 3; ``likert``: the same in [1, 5]; ``raw``:
                the output of the model.
            overall: Share of the raw similarity without the condition in that under it, in [0, 1].
                Pairs that are to be told apart in one respect want 0. Where texts that are alike
                as a whole are mostly alike in each respect, as in a collection, 0.3 is better.

        Returns:
            A float for single texts, else ``(n,)`` float32; higher is more similar.

        Raises:
            InputError: If a text is empty or not a str, lengths differ, the scale is unknown, or
                the model needs a condition, or cannot take one.
        """
        check_name("scale", str(scale), get_args(Scale))
        check_fraction("share", overall=overall)
        rows = check_rows(self.resolved(condition), sentences1=sentences1, sentences2=sentences2)
        with collect_truncations(), collect_unread():
            if overall and rows.conditions is not None:
                scores = self._score_blended(rows, scale, overall)
            else:
                scores = self._score_rows(rows, scale)
        return float(scores[0]) if rows.single else scores

    def score_matrix(
        self,
        sentences1: Texts,
        sentences2: Texts,
        condition: Conditions | Sequence[Condition],
        *,
        scale: Scale = "unit",
    ) -> FloatArray:
        """Score every pair of sentences under every one of several conditions.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            condition: Conditions, length m, or one.
            scale: As in `score`.

        Returns:
            Scores, ``(n, m)`` float32; n is 1 for single texts.

        Raises:
            InputError: If there is no condition, or as `score`.

        Example:
            >>> import condsim
            >>> model = condsim.load()
            >>> pairs = ["A red car.", "A dog."], ["A red bus.", "A black dog."]
            >>> model.score_matrix(*pairs, ["the color", "the use", "the kind"]).shape
            (2, 3)
        """
        check_name("scale", str(scale), get_args(Scale))
        rows = check_rows(None, sentences1=sentences1, sentences2=sentences2)
        conditions = _checked_conditions(condition)
        first, second = rows.sentences
        with collect_truncations(), collect_unread():
            columns = [self.score(first, second, name, scale=scale) for name in conditions]
        return np.stack(columns, axis=1)

    @overload
    def same(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
        self,
        sentences1: str,
        sentences2: str,
        condition: Conditions | Sequence[Condition],
        *,
        at_least: float,
        careful: bool = ...,
    ) -> bool: ...

    @overload
    def same(
        self,
        sentences1: Texts,
        sentences2: Texts,
        condition: Conditions | Sequence[Condition],
        *,
        at_least: float,
        careful: bool = ...,
    ) -> BoolArray: ...

    def same(
        self,
        sentences1: Texts,
        sentences2: Texts,
        condition: Conditions | Sequence[Condition],
        *,
        at_least: float,
        careful: bool = False,
    ) -> bool | BoolArray:
        """Check that two texts are the same in every one of several respects.

        A gate for caches and routers: a text that differs in one condition does not pass, however
        alike the texts are in the others. Texts with words that the model cannot read, such as
        emoji or another script, are the same only if those words are; see `reads` of an encoder.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            condition: One condition or several, each for all rows.
            at_least: Calibrated score that every condition must reach, in [0, 1];
                `condsim.evaluation.threshold.find_threshold` finds one from labeled rows.
            careful: Whether to ask the judge as well about the pairs that pass, which takes some
                milliseconds each. It reads them as a whole, whatever the conditions, and must find
                the second text a duplicate of the first. "Turn it on" is near to "turn it off", and
                no duplicate of it.

        Returns:
            A bool for single texts, else ``(n,)``.

        Raises:
            InputError: If there is no condition, the threshold is out of its range, a text is empty
                or not a str, or lengths differ.

        Example:
            >>> import condsim
            >>> model = condsim.load()
            >>> model.same("A dog runs.", "A dog runs.", ["the animal", "the act"], at_least=0.7)
            True
        """
        check_fraction("score", at_least=at_least)
        threshold = np.float32(at_least)
        rows = check_rows(None, sentences1=sentences1, sentences2=sentences2)
        conditions = _checked_conditions(condition)
        first, second = rows.sentences
        same = ~self._unread_differ(first, second)
        with collect_unread():
            words = [name for name in conditions if isinstance(name, str)]
            if rows.single and len(words) == len(conditions):
                # One call scores the pair under all conditions.
                if same[0]:
                    same[0] = (self.score(first[0], second[0], words) >= threshold).all()
                conditions = []
            for name in conditions:
                # Rows that already differ in a condition are not scored again.
                index = np.flatnonzero(same).tolist()
                if not index:
                    break
                columns = [first[row] for row in index], [second[row] for row in index]
                same[index] = self.score(*columns, name) >= threshold
        if careful and same.any():
            # Slow to import.
            from condsim.model.judge import load_judge

            index = np.flatnonzero(same).tolist()
            passed = [first[row] for row in index], [second[row] for row in index]
            same[index] = [one.verdict == "duplicate" for one in load_judge().verdict(*passed)]
        return bool(same[0]) if rows.single else same

    def _unread_differ(self, first: Sequence[str], second: Sequence[str]) -> BoolArray:
        """Mark pairs with different words that the model cannot read, ``(n,)``."""
        parts = self.unread_parts(chain(first, second))
        if not parts:
            return np.zeros(len(first), np.bool_)
        pairs = zip(first, second, strict=True)
        return np.array([parts.get(text1) != parts.get(text2) for text1, text2 in pairs], np.bool_)

    def unread_parts(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the words that the model cannot read, of each text that has any.

        Returns:
            The words by text; the text itself where it counts as unread. Empty for a model whose
            vocabulary is unknown.
        """
        return {}

    def explain(
        self,
        sentence1: str,
        sentence2: str,
        condition: Condition | None = None,
        *,
        scale: Scale = "unit",
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> Explanation:
        """Explain which words of two sentences carry their score.

        Each text is scored with many subsets of its words, against the other text as a whole. The
        contribution of a word is half of its Shapley value among the words of its text, so that
        remainder and contributions add up to the score (Lundberg and Lee 2017). Words are removed,
        not replaced. In a text of more than 48 words, adjacent ones are taken together.

        Args:
            condition: As in `score`, and so is ``scale``.
            samples: Maximum number of subsets of the words of each text, all of which are scored;
                twice the words if that is more. Up to 8 words, all subsets are scored.
            seed: Seed of the draw of the subsets.

        Returns:
            The explanation, which prints on a terminal and displays in a notebook.

        Raises:
            InputError: If a text is empty, not a str or has more than 20,000 characters, the scale
                is unknown, or there are fewer samples than 1.
        """
        from condsim.model.explanation import Occlusion, check_explained, explanation_of

        resolved = self.resolved(condition)
        condition = resolved if isinstance(resolved, Criterion) else condition
        check_name("scale", str(scale), get_args(Scale))
        check_explained(samples, sentence1=sentence1, sentence2=sentence2)
        check_rows(condition, sentence1=sentence1, sentence2=sentence2)
        first = Occlusion(sentence1, samples=samples, seed=seed)
        second = Occlusion(sentence2, samples=samples, seed=seed)
        with collect_unread():
            parts = self.unread_parts((sentence1, sentence2))
            record_unread(text for text, words in parts.items() if words == text)
        # The warning of the whole texts is enough; their subsets are counted without one.
        with collect_truncations(), collect_unread(log=False):
            values1, values2, pairs = self._occluded(first, second, condition, scale)
        return explanation_of(
            self.name,
            None if condition is None else str(condition),
            scale=scale,
            occlusions=(first, second),
            values=(values1, values2),
            pairs=pairs,
        )

    def _occluded(
        self, first: Occlusion, second: Occlusion, condition: Condition | None, scale: Scale
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Score subsets of the words of each text against the other text as a whole."""
        values1 = self.score(first.texts, second.text, condition, scale=scale)
        values2 = self.score(first.text, second.texts, condition, scale=scale)
        return values1, values2, None

    def __repr__(self) -> str:
        """Give the class and the name."""
        return f"{type(self).__name__}({getattr(self, 'name', '')!r})"

    def _repr_html_(self) -> str:
        return html_table(repr(self), ("", "value"), self._summary())

    def _summary(self) -> list[tuple[str, object]]:
        """List what a notebook shows of the model."""
        return [("name", getattr(self, "name", ""))]


@dataclass(frozen=True)
class Rows:
    """Checked columns of texts, each of length n; ``single`` if every input was one text.

    A learned criterion takes the place of conditions.
    """

    sentences: tuple[Sequence[str], ...]
    conditions: Sequence[str] | None
    single: bool
    criterion: Criterion | None = None

    def __len__(self) -> int:
        return len(self.sentences[0])


def check_rows(conditions: Conditions | None, **sentences: Texts) -> Rows:
    """Check columns of texts, named as in messages, and repeat single texts for every row."""
    if isinstance(conditions, Criterion):
        return replace(check_rows(None, **sentences), criterion=conditions)
    inputs: dict[str, Texts] = dict(sentences)
    if conditions is not None:
        inputs["condition"] = conditions
    columns = {name: _checked_column(name, texts) for name, texts in inputs.items()}
    lengths = {name: len(columns[name]) for name in inputs if not isinstance(inputs[name], str)}
    if len(set(lengths.values())) > 1:
        names, numbers = " and ".join(lengths), " and ".join(map(str, lengths.values()))
        raise InputError(f"{names} must have the same length; got {numbers}.")
    number = next(iter(lengths.values()), 1)
    for name in inputs.keys() - lengths.keys():
        columns[name] = [*columns[name]] * number
    condition_column = columns.pop("condition", None)
    return Rows(tuple(columns.values()), condition_column, single=not lengths)


def _checked_column(name: str, texts: Texts) -> Sequence[str]:
    """Check one column; a single text is a column of one."""
    is_single = isinstance(texts, str)
    column: Sequence[str] = [texts] if isinstance(texts, str) else as_list(name, texts)
    for index, text in enumerate(column):
        if rule := _broken_rule(name, text):
            singular = name.replace("sentences", "sentence")
            subject = f"The {singular}" if is_single else repr(name)
            suffix = "" if is_single else f" at index {index}"
            raise InputError(f"{subject} must {rule}; got {reprlib.repr(text)}{suffix}.")
    return column


def _checked_conditions(condition: Conditions | Sequence[Condition]) -> list[Condition]:
    """List one condition or several, each in words or learned."""
    if isinstance(condition, Criterion):
        return [condition]
    conditions = [condition] if isinstance(condition, str) else as_list("condition", condition)
    if not conditions:
        raise InputError("There must be at least one condition, such as 'the action'.")
    in_words = [item for item in conditions if not isinstance(item, Criterion)]
    _checked_column("condition", condition if isinstance(condition, str) else in_words)
    return list(conditions)


def _broken_rule(name: str, text: object) -> str:
    """Name the rule that a text breaks; empty if there is none."""
    if not isinstance(text, str):
        return "be a str"
    if not text or text.isspace():
        return "have text"
    if not text.isascii() and _SURROGATE.search(text):
        return "be valid Unicode, without half of a surrogate pair"
    if name == "condition" and is_marks(text):
        return "have a letter, digit or symbol, not only punctuation"
    return ""


def as_list(name: str, texts: Any) -> Sequence[Any]:  # noqa: ANN401
    """List the values of a column of Arrow, Polars, pandas or NumPy, or of another sequence."""
    if isinstance(texts, list | tuple):
        return texts
    kind = type(texts)
    # Tables of pandas, Polars, Arrow and DuckDB have columns; a NumPy scalar has no length.
    is_table = hasattr(kind, "columns")
    is_sequence = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    is_scalar = getattr(texts, "shape", None) == ()
    if is_table or not is_sequence or isinstance(texts, Mapping) or is_scalar:
        advice = "; pass one of its columns" if is_table else ""
        raise InputError(
            f"{name!r} must be one text or a sequence of texts; got {kind.__name__}{advice}."
        )
    for method in ("to_pylist", "to_list", "tolist"):
        if (convert := getattr(texts, method, None)) is not None:
            return list(convert())
    return list(texts)


def check_fraction(kind: Literal["score", "share", "probability"], **numbers: float) -> None:
    """Refuse a number, named as its parameter, that is not from 0 to 1."""
    for name, number in numbers.items():
        if not (isinstance(number, int | float | np.number) and 0 <= number <= 1):
            raise InputError(f"{name!r} must be a {kind} from 0 to 1; got {number}.")


def rescaled(raw: FloatArray, calibration: Calibration | None, scale: Scale) -> FloatArray:
    """Put raw similarities ``(n,)`` on a scale; without calibration, ``unit`` is the raw one."""
    if scale == "raw":
        return raw
    unit = raw if calibration is None else calibration.apply(raw)
    return unit if scale == "unit" else 1 + 4 * unit
