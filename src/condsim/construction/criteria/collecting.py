"""Texts and what each says of each criterion, in arrays that draws are made from."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from condsim.construction.criteria.settings import CriteriaSettings, CriterionSettings
from condsim.construction.criteria.values import Criterion
from condsim.errors import InputError
from condsim.tasks import CriteriaText, HeldOutTexts, text_digest

Places = NDArray[np.int32]

_WORD = re.compile(r"[^\W_]+")
_FREQUENT = 0.02  # share of the texts; a word in more of them says little of what a text is about
_NONE = HeldOutTexts()


def words_of(text: str) -> frozenset[str]:
    """The words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


@dataclass(frozen=True, eq=False)
class Index:
    """Texts by number of what they have."""

    places: Places  # places of the texts, ordered by number
    starts: NDArray[np.int64]  # where each number begins, and the end

    @classmethod
    def of(cls, numbers: Places, places: Places, *, size: int) -> Index:
        """Sorts places, in order within a number; ``size`` is how many numbers there are."""
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=size)
        return cls(places[order], np.concatenate(([0], np.cumsum(counts))))

    def counts(self) -> NDArray[np.int64]:
        """Texts of each number."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts that share criteria."""

    name: str
    texts: Sequence[str]  # the texts, no two alike but for case and punctuation
    # The criteria that can be used: two answers or more have two texts or more.
    criteria: Sequence[Criterion]
    # The number of the answer of each text, -1 where there is none, ``(criteria, n)``.
    answers: NDArray[np.int32]
    excluded: int  # texts left out since they are held out
    repeated: int  # texts left out since they came before
    unused: Sequence[str]  # criteria that cannot be used

    def by_answer(self, criterion: int) -> Index:
        """The places of texts by their answer."""
        places = np.flatnonzero(self.answers[criterion] >= 0).astype(np.int32)
        numbers = self.answers[criterion, places]
        return Index.of(numbers, places, size=int(numbers.max()) + 1)

    def by_word(self) -> tuple[dict[str, int], Index]:
        """The numbers of telling words and the places of texts by word."""
        known: dict[str, int] = {}
        words, places = array("i"), array("i")
        for place, text in enumerate(self.texts):
            found = words_of(text)
            words.extend(known.setdefault(word, len(known)) for word in sorted(found))
            places.extend([place] * len(found))
        numbers = np.frombuffer(words, np.int32)
        counts = np.bincount(numbers, minlength=len(known))
        most = max(20, round(_FREQUENT * len(self.texts)))
        telling = (counts > 1) & (counts <= most)
        kept = telling[numbers]
        renumbered = (np.cumsum(telling) - 1).astype(np.int32)
        index = Index.of(
            renumbered[numbers[kept]],
            np.frombuffer(places, np.int32)[kept],
            size=int(telling.sum()),
        )
        return {w: int(renumbered[n]) for w, n in known.items() if telling[n]}, index


@dataclass
class _Answers:
    """What texts say of one criterion, as it is read."""

    known: dict[tuple[str, ...], int] = field(default_factory=dict)
    places: array[int] = field(default_factory=lambda: array("i"))
    numbers: array[int] = field(default_factory=lambda: array("i"))

    def add(self, place: int, values: tuple[str, ...]) -> None:
        self.places.append(place)
        self.numbers.append(self.known.setdefault(values, len(self.known)))

    def may_be_used(self) -> bool:
        """Whether there can be two answers of two texts each."""
        return len(self.known) > 1 and len(self.places) > 3

    def criterion(self, name: str, settings: CriterionSettings, *, bins: int | None) -> Criterion:
        """Compares the answers."""
        texts = np.bincount(np.frombuffer(self.numbers, np.int32)).tolist()
        return Criterion(name, self.known, settings, texts=texts, bins=bins)

    def numbered(self, criterion: Criterion, texts: int) -> NDArray[np.int32]:
        """The number of the answer of each text."""
        answers = np.full(texts, -1, np.int32)
        numbers = np.array(criterion.numbers(), np.int32)
        answers[np.frombuffer(self.places, np.int32)] = numbers[np.frombuffer(self.numbers, "i")]
        return answers


def collect_texts(
    items: Iterable[CriteriaText],
    settings: CriteriaSettings,
    *,
    name: str = "texts",
    held_out: HeldOutTexts = _NONE,
) -> LabelledTexts:
    """Collects labelled texts to draw rows from; `InputError` if no criterion can be used."""
    texts: list[str] = []
    seen: set[bytes] = set()
    read: dict[str, _Answers] = {}
    excluded = repeated = 0
    for item in items:
        key = text_digest(item.text)
        if item.text in held_out:
            excluded += 1
        elif key in seen:
            repeated += 1
        else:
            seen.add(key)
            for criterion, values in item.attributes.items():
                read.setdefault(criterion, _Answers()).add(len(texts), values)
            texts.append(item.text)
    used, columns = [], []
    for criterion, found in sorted(read.items()):
        one = settings.of(criterion)
        if one.leave_out or not found.may_be_used():
            continue
        made = found.criterion(criterion, one, bins=one.bins or settings.bins)
        answers = found.numbered(made, len(texts))
        if (np.bincount(answers[answers >= 0]) > 1).sum() > 1:
            used.append(made)
            columns.append(answers)
    if not used:
        raise InputError(
            f"{name}: rows need a criterion with two values that two texts each have. Of "
            f"{len(texts):,} texts ({excluded:,} left out, {repeated:,} repeated) with the "
            f"criteria {', '.join(sorted(read)) or 'none'}, none has that; give more texts."
        )
    names = {criterion.name for criterion in used}
    return LabelledTexts(
        name=name,
        texts=texts,
        criteria=used,
        answers=np.stack(columns),
        excluded=excluded,
        repeated=repeated,
        unused=[criterion for criterion in sorted(read) if criterion not in names],
    )
