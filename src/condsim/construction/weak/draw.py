"""Which conditions a pair gets: one high and one low, in balance over functions and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from condsim.construction.rows import DOES_NOT_APPLY, Candidate, TableRow
from condsim.construction.weak.functions import ABSENT, LabellingFunction
from condsim.construction.weak.language import Sentence
from condsim.errors import InputError

_LABELS = (1, 2, 3, 4, 5)
_LOOSER = (1.5, 5.0, 30.0)  # times what a function may have of a label, pass by pass
_NONE_SHARE = 0.1  # of pairs where one sentence has none of what is counted: too easy for more
_LOOKED_AT = 4  # pairs for each row that is wanted, at most


@dataclass(frozen=True, slots=True)
class WeakRow(TableRow):
    """A row of a weakly labelled data set.

    Attributes:
        sentence1: The first sentence.
        sentence2: The second.
        condition: The condition.
        label: 1 to 5, or -1 where the attribute is absent.
        origin: ``weak:`` and the name of the function.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: int
    origin: str


@dataclass(frozen=True, slots=True)
class AnsweredRow(WeakRow):
    """A row with what was read.

    Attributes:
        answer1: What the function read from the first sentence, in words; empty if absent.
        answer2: Likewise of the second.
    """

    answer1: str
    answer2: str

    def without_answers(self) -> WeakRow:
        """Gives the row alone."""
        return WeakRow(self.sentence1, self.sentence2, self.condition, self.label, self.origin)


def nearest_label(score: float) -> int:
    """Rounds a score to a label."""
    return min(max(int(score + 0.5), 1), 5)


class Drawing:
    """Draws rows from pairs, so that functions and labels come out as wanted.

    A function's rows are to be spread evenly over the five labels, so that the condition alone
    tells little of the label. What pairs do not have is made up for by others, pass by pass.

    Attributes:
        drawn: Rows by function and label.
        seen: Pairs that were looked at.
    """

    def __init__(
        self,
        functions: Sequence[LabellingFunction],
        *,
        rows: int,
        weights: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> None:
        if rows < 2:
            raise InputError(f"Rows come two a pair, so there must be 2 or more. Got {rows}.")
        given = _weights(functions, weights)
        total = sum(given.values())
        if total <= 0:
            raise InputError("No labelling function has a weight above 0; none could be drawn.")
        self._functions = [f for f in functions if given[f.name] > 0]
        self._rows = rows
        self._share = {name: rows * weight / total / 5 for name, weight in given.items()}
        self._label_room = rows / 5
        self._random = np.random.default_rng(seed)
        self._values: dict[str, dict[int, object]] = {}  # by sentence and place of the function
        self.drawn: Counter[tuple[str, int]] = Counter()
        self._labels: Counter[int] = Counter()
        self.seen = 0

    def rows(self, pairs: Iterable[Candidate]) -> Iterator[AnsweredRow]:
        """Draws rows."""
        waiting: list[Candidate] = []
        source: Iterator[Candidate] = islice(pairs, _LOOKED_AT * self._rows)
        for looser in _LOOSER:
            waiting = []
            for pair in source:
                if sum(self._labels.values()) + 2 > self._rows:
                    return
                self.seen += looser == _LOOSER[0]
                chosen = self._choose(pair, looser)
                if chosen is None:
                    waiting.append(pair)
                else:
                    yield from self._two(pair, chosen)
            source = iter(waiting)

    def _choose(
        self, pair: Candidate, looser: float
    ) -> tuple[tuple[LabellingFunction, int], tuple[LabellingFunction, int]] | None:
        best: dict[int, tuple[tuple[float, str], LabellingFunction]] = {}
        one, two = self._read(pair.sentence1), self._read(pair.sentence2)
        for place in sorted(one.keys() & two.keys()):
            function = self._functions[place]
            if ABSENT in (one[place], two[place]) and self._random.random() > _NONE_SHARE:
                continue
            score = function.score_values(one[place], two[place])
            if score is None:
                continue
            label = nearest_label(score)
            need = self._need(function.name, label, looser)
            if need > 0 and (label not in best or (need, function.name) > best[label][0]):
                best[label] = (need, function.name), function
        combined = [
            (best[high][0][0] + best[low][0][0], high, low)
            for high in best
            for low in best
            if high > low
        ]
        if not combined:
            return None
        _, high, low = max(combined)
        return (best[high][1], high), (best[low][1], low)

    def _need(self, name: str, label: int, looser: float) -> float:
        """How much a row of this function and label is wanted; 0 or below if not."""
        room = self._share[name] * looser
        label_room = self._label_room * min(1 + (looser - 1.5) * 0.1, 2)
        of_function = 1 - (self.drawn[name, label] + 0.5) / room
        of_label = 1 - self._labels[label] / label_room
        return (
            min(of_function, of_label)
            if min(of_function, of_label) <= 0
            else (of_function + of_label)
        )

    def _two(
        self,
        pair: Candidate,
        chosen: tuple[tuple[LabellingFunction, int], tuple[LabellingFunction, int]],
    ) -> Iterator[AnsweredRow]:
        order = self._random.permutation(2)
        for place in order:
            function, label = chosen[place]
            at = self._functions.index(function)
            self.drawn[function.name, label] += 1
            self._labels[label] += 1
            yield AnsweredRow(
                sentence1=pair.sentence1,
                sentence2=pair.sentence2,
                condition=_wording(function, self._random),
                label=label,
                origin=f"weak:{function.name}",
                answer1=function.say(self._read(pair.sentence1)[at]),
                answer2=function.say(self._read(pair.sentence2)[at]),
            )

    def _read(self, text: str) -> dict[int, object]:
        """What the functions read from a sentence, by the place of the function."""
        if text not in self._values:
            sentence = Sentence(text)
            read = ((place, f.read(sentence)) for place, f in enumerate(self._functions))
            self._values[text] = {
                place: value
                for place, value in read
                if value is not None
                and (value is not ABSENT or self._functions[place].none_is_a_value)
            }
        return self._values[text]


def absent_rows(
    pairs: Iterable[Candidate],
    functions: Sequence[LabellingFunction],
    *,
    rows: int,
    weights: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Iterator[AnsweredRow]:
    """Draws rows whose condition does not apply to one sentence or to both."""
    rng = np.random.default_rng(seed)
    given = list(_weights(functions, weights).values())
    drawn: Counter[str] = Counter()
    written = 0
    for pair in pairs:
        if written == rows:
            return
        one, two = Sentence(pair.sentence1), Sentence(pair.sentence2)
        wanted = []
        for function, weight in zip(functions, given, strict=True):
            if weight <= 0:
                continue
            values = function.read(one), function.read(two)
            if function.void(*values):
                wanted.append(
                    ((drawn[function.name] + 1) / weight, function.name, function, values)
                )
        if not wanted:
            continue
        _, name, function, values = min(wanted, key=lambda found: found[:2])
        drawn[name] += 1
        written += 1
        said = [function.say(value) for value in values]
        yield AnsweredRow(
            sentence1=pair.sentence1,
            sentence2=pair.sentence2,
            condition=_wording(function, rng),
            label=DOES_NOT_APPLY,
            origin=f"weak:{name}",
            answer1=said[0],
            answer2=said[1],
        )


def _weights(
    functions: Sequence[LabellingFunction], weights: Mapping[str, float] | None
) -> dict[str, float]:
    """How often each function is drawn; one whose own weight is 0 never is."""
    return {
        f.name: f.weight if weights is None or f.weight == 0 else float(weights.get(f.name, 0))
        for f in functions
    }


def _wording(function: LabellingFunction, rng: np.random.Generator) -> str:
    """The plain name in half of the rows, another wording in the others."""
    if rng.random() < 0.5:
        return function.name
    return function.wordings[int(rng.integers(len(function.wordings)))]
