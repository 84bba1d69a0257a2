"""Which conditions a pair gets: one high and one low, in balance over functions and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from condsim.construction.rows import DOES_NOT_APPLY, AnsweredRow, Candidate
from condsim.construction.weak.functions import ABSENT, LabellingFunction
from condsim.construction.weak.language import Sentence
from condsim.errors import InputError

_LOOSER = (1.5, 5.0, 30.0)  # times what a function may have of a label, pass by pass
_NONE_SHARE = 0.1  # of pairs where one sentence has none of what is counted: too easy for more
_LOOKED_AT = 4  # pairs for each row that is wanted, at most
_USUAL = (None, ABSENT, "no")  # what most functions read, which is kept as a byte


class Drawing:
    """Draws rows from pairs, with as many of each function and label as wanted."""

    # A function's rows are spread evenly over the five labels, so that the condition alone tells
    # little of the label. What pairs do not have is made up for by others, pass by pass.

    def __init__(
        self, weighted: Sequence[tuple[LabellingFunction, float]], *, rows: int, seed: int
    ) -> None:
        if not weighted:
            raise InputError("No labelling function has a weight above 0; none could be drawn.")
        total = sum(weight for _, weight in weighted)
        self._functions = {function.name: function for function, _ in weighted}
        self._share = {function.name: rows * weight / total / 5 for function, weight in weighted}
        self._rows = rows
        self._random = np.random.default_rng(seed)
        # By sentence: a byte for each function, and the values that are not usual.
        self._read: dict[str, tuple[bytes, list[object]]] = {}
        self._drawn: Counter[tuple[str, int]] = Counter()  # by function and label
        self._labels: Counter[int] = Counter()
        self.seen = 0  # pairs that were looked at

    def rows(self, pairs: Iterable[Candidate]) -> Iterator[AnsweredRow]:
        """Draws two rows of each pair that has them."""
        source: Iterator[Candidate] = islice(pairs, _LOOKED_AT * self._rows)
        for looser in _LOOSER:
            waiting = []
            for pair in source:
                if self._labels.total() + 2 > self._rows:
                    return
                self.seen += looser == _LOOSER[0]
                chosen = self._choose(pair, looser)
                if not chosen:
                    waiting.append(pair)
                for place in self._random.permutation(2) if chosen else ():
                    name, label = chosen[place]
                    self._drawn[name, label] += 1
                    self._labels[label] += 1
                    values = self._values(pair.sentence1)[name], self._values(pair.sentence2)[name]
                    yield _row(pair, self._functions[name], values, label, self._random)
            source = iter(waiting)

    def _choose(self, pair: Candidate, looser: float) -> list[tuple[str, int]]:
        """The two functions whose rows are wanted most and their labels; the higher label first."""
        best: dict[int, tuple[float, str]] = {}
        one, two = self._values(pair.sentence1), self._values(pair.sentence2)
        for name in one:
            if name not in two:
                continue
            if ABSENT in (one[name], two[name]) and self._random.random() > _NONE_SHARE:
                continue
            score = self._functions[name].score_values(one[name], two[name])
            if score is None:
                continue
            label = min(max(int(score + 0.5), 1), 5)
            need = self._need(name, label, looser)
            if need > 0:
                best[label] = max(best.get(label, (0.0, "")), (need, name))
        combined = [
            (best[high][0] + best[low][0], high, low) for high in best for low in best if high > low
        ]
        return [(best[label][1], label) for label in max(combined)[1:]] if combined else []

    def _need(self, name: str, label: int, looser: float) -> float:
        """How much a row of this function and label is wanted; 0 or below if not."""
        room = self._share[name] * looser
        label_room = self._rows / 5 * min(1 + (looser - 1.5) * 0.1, 2)
        of_function = 1 - (self._drawn[name, label] + 0.5) / room
        of_label = 1 - self._labels[label] / label_room
        least = min(of_function, of_label)
        return least if least <= 0 else of_function + of_label

    def _values(self, text: str) -> dict[str, object]:
        """What the functions read from a sentence, in their order."""
        if text not in self._read:
            sentence, made, told = Sentence(text), bytearray(), list[object]()
            for function in self._functions.values():
                value = function.read(sentence)
                if value is ABSENT and not function.none_is_a_value:
                    value = None
                code = next((at for at, usual in enumerate(_USUAL) if value is usual), len(_USUAL))
                made.append(code)
                if code == len(_USUAL):
                    told.append(value)
            self._read[text] = bytes(made), told
        codes, told = self._read[text]
        rest = iter(told)
        return {
            name: _USUAL[code] if code < len(_USUAL) else next(rest)
            for name, code in zip(self._functions, codes, strict=True)
            if code
        }


def absent_rows(
    pairs: Iterable[Candidate],
    weighted: Sequence[tuple[LabellingFunction, float]],
    *,
    rows: int,
    seed: int,
) -> Iterator[AnsweredRow]:
    """Draws rows whose condition does not apply to one sentence or to both."""
    random = np.random.default_rng(seed)
    drawn: Counter[str] = Counter()
    for pair in pairs:
        if drawn.total() == rows:
            return
        one, two = Sentence(pair.sentence1), Sentence(pair.sentence2)
        read = ((f, weight, (f.read(one), f.read(two))) for f, weight in weighted)
        void = {
            ((drawn[function.name] + 1) / weight, function.name): (function, values)
            for function, weight, values in read
            if function.void(*values)
        }
        if not void:
            continue
        function, values = void[min(void)]
        drawn[function.name] += 1
        yield _row(pair, function, values, DOES_NOT_APPLY, random)


def _row(
    pair: Candidate,
    function: LabellingFunction,
    values: tuple[object, object],
    label: int,
    random: np.random.Generator,
) -> AnsweredRow:
    """A row of a pair: the plain name in half of the rows, another wording in the others."""
    condition = function.name
    if random.random() >= 0.5:
        condition = function.wordings[int(random.integers(len(function.wordings)))]
    return AnsweredRow(
        sentence1=pair.sentence1,
        sentence2=pair.sentence2,
        condition=condition,
        label=label,
        origin=f"weak:{function.name}",
        answer1=function.say(values[0]),
        answer2=function.say(values[1]),
    )
