"""Label texts or pairs one at a time, and learn a criterion from the answers as they come."""

from __future__ import annotations

import csv
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from condsim.cache import locked
from condsim.errors import InputError, one_line
from condsim.evaluation.threshold import learned_threshold
from condsim.io import replacing
from condsim.model.criterion import SHARE, SUFFIX, Criterion, Encoder, Figures, features
from condsim.model.learned_figures import MIN_LABELS
from condsim.model.learned_values import learn
from condsim.types import FloatArray, IntArray, shortened

Key = TypeVar("Key", bound=Hashable)

SKIP = "skip"
SILENT = "does not say"
# The most texts that are compared with each other.
_MAX_CANDIDATES = 1_000
_MIN_VALUES = 2
# Labels without a gain of a point, after which more are said to help little.
_PATIENCE = 20
_LITTLE = 0.01


@dataclass(frozen=True)
class Progress:
    """State of a session.

    Attributes:
        labeled: Number of texts, or pairs, with a value.
        remaining: Number of texts, or pairs, without an answer.
        values: The values so far, the most frequent first, with their counts; of pairs, the same
            and different.
        criterion: What was learned from them; None before there are enough labels.
        enough: True if the last labels have hardly raised what is gained over no labels.
        start: What a first figure takes.
        threshold: What a threshold for these labels promises, on one line; empty without figure.
        history: The figures by the number of labels, since the session began.
    """

    labeled: int
    remaining: int
    values: Mapping[str, int]
    criterion: Criterion | None
    enough: bool
    start: str
    threshold: str
    history: Mapping[int, Figures]

    @property
    def line(self) -> str:
        """The figure and its interval on one line."""
        if self.criterion is None:
            return f"{self.labeled} labeled. {self.start}"
        figures = self.criterion.figures
        line = (
            f"{self.labeled} labeled. Pairs told apart: {100 * figures.auc:.1f} "
            f"[{100 * figures.low:.0f}, {100 * figures.high:.0f}], without labels "
            f"{100 * figures.zero_shot:.1f}."
        )
        return f"{line} More labels help little now." if self.enough else line


class Session(ABC, Generic[Key]):
    """Session of answers about texts, in a file that is written after each answer.

    `open` makes one.

    Attributes:
        condition: What the values are values of.
        texts: The distinct texts.
        row_of: Index of each.
        answers: Value and mark of each answered text or pair, in their order; without a value, it
            is empty and the mark `SKIP` or `SILENT`.
        criterion: The criterion learned from the answers; None before there are enough.
    """

    columns: ClassVar[tuple[str, ...]]
    start: str

    def __init__(
        self, texts: Iterable[str], condition: str, *, model: Encoder, output: Path
    ) -> None:
        """Keep the distinct texts, and read the answers that the file has.

        Raises:
            InputError: If there is no text, or the file is not one of labels under the condition.
        """
        self.condition = condition
        self.output = output
        self.texts = list(dict.fromkeys(texts))
        if not self.texts:
            raise InputError("There is no text to label.")
        self.row_of = {text: row for row, text in enumerate(self.texts)}
        self.criterion: Criterion | None = None
        self._model = model
        self._encoder = EncodeOnce(model, condition)
        self._history: dict[int, Figures] = {}
        self.answers: dict[Key, tuple[str, str]] = (
            self.read(output, condition) if output.exists() else {}
        )
        self._learn()

    @classmethod
    @contextmanager
    def open(
        cls, texts: Iterable[str], condition: str, *, model: Encoder, output: Path
    ) -> Iterator[Self]:
        """Open a session; a file that another session has open is refused with a `BusyError`."""
        busy = f"{output}: another session labels into this file. End it, or give another name."
        with locked(output.with_name(f".{output.name}.lock"), busy=busy, wait=False):
            yield cls(texts, condition, model=model, output=output)

    @staticmethod
    @abstractmethod
    def key_of(texts: Sequence[str]) -> Key:
        """Return what is labeled, from the first cells of a row."""

    @staticmethod
    @abstractmethod
    def texts_of(key: Key) -> tuple[str, ...]:
        """Return the text or texts of what is labeled."""

    @abstractmethod
    def next(self) -> Key | None:
        """Choose what teaches most; None if everything has an answer."""

    @property
    @abstractmethod
    def remaining(self) -> int:
        """Number of texts, or pairs, without an answer."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Count the values, in the order in which they are shown."""

    @abstractmethod
    def _learned(self) -> Criterion | None:
        """Learn a criterion, if there are enough answers."""

    @classmethod
    def read(cls, path: Path, condition: str) -> dict[Key, tuple[str, str]]:
        """Read the file of a session, as `answers`.

        Raises:
            InputError: If it is another file, has two answers to one question, or has answers
                under another condition.
        """
        answers: dict[Key, tuple[str, str]] = {}
        with one_line(f"{path}: is not a file of labels", OSError, ValueError, csv.Error):
            with path.open(encoding="utf-8-sig", newline="") as stream:
                head, *rows = list(csv.reader(stream)) or [[]]
            if tuple(head) != cls.columns or any(len(row) != len(cls.columns) for row in rows):
                raise ValueError(f"its columns must be {', '.join(cls.columns)}")
            for number, (*texts, asked, value, mark) in enumerate(rows, start=1):
                if asked != condition:
                    raise InputError(
                        f"{path}: its labels are under the condition {shortened(asked, 60)!r}, not "
                        f"{shortened(condition, 60)!r}. Give that condition, or another --output."
                    )
                key = cls.key_of(texts)
                if not mark:
                    cls.check(value)
                if answers.setdefault(key, (value, mark)) != (value, mark):
                    raise ValueError(f"row {number} has a second answer for {texts[0][:40]!r}")
        return answers

    @classmethod
    def check(cls, value: str) -> None:
        """Refuse a blank value, with an InputError."""
        if not value.strip():
            raise InputError(f"A value must have text; or answer {SKIP!r} or {SILENT!r}.")

    @property
    def labels(self) -> dict[Key, str]:
        """Values of the texts, or pairs, that have one."""
        return {key: value for key, (value, _) in self.answers.items() if value}

    @property
    def criterion_file(self) -> Path:
        """File of the criterion, written after each answer, next to the labels."""
        return self.output.with_suffix(SUFFIX)

    def answer(self, key: Key, value: str) -> Progress:
        """Store a value, `SKIP` or `SILENT`; it is on disk before this returns.

        Raises:
            InputError: If a text is not in the collection, or the value is blank.
        """
        key = self.key_of(self.texts_of(key))
        for text in self.texts_of(key):
            if text not in self.row_of:
                raise InputError(f"There is no such text to label: {shortened(text, 60)!r}.")
        value = value.strip()
        mark = value if value in (SKIP, SILENT) else ""
        if not mark:
            self.check(value)
        answers = {other: answer for other, answer in self.answers.items() if other != key}
        self._store({**answers, key: ("" if mark else value, mark)})
        return self.progress()

    def undo(self) -> Key | None:
        """Take the last answer back; return what it was about, or None if there is none."""
        if not self.answers:
            return None
        last = next(reversed(self.answers))
        self._store({key: answer for key, answer in self.answers.items() if key != last})
        return last

    def progress(self) -> Progress:
        """Tell where the session stands."""
        # The figure itself falls when the chosen texts get harder, with and without labels.
        gains = [figures.auc - figures.zero_shot for figures in self._history.values()]
        recent = gains[-_PATIENCE:]
        return Progress(
            labeled=len(self.labels),
            remaining=self.remaining,
            values=self.counts(),
            criterion=self.criterion,
            enough=len(recent) == _PATIENCE and max(recent) - recent[0] < _LITTLE,
            start=self.start,
            threshold="" if self.criterion is None else learned_threshold(self.criterion)[1],
            history=self._history,
        )

    def _store(self, answers: dict[Key, tuple[str, str]]) -> None:
        """Write all answers in one step, then learn from them."""
        with replacing(self.output) as partial:
            with partial.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(self.columns)
                for key, cells in answers.items():
                    writer.writerow((*self.texts_of(key), self.condition, *cells))
                stream.flush()
                os.fsync(stream.fileno())
        self.answers = answers
        self._learn()

    def _learn(self) -> None:
        self.criterion, labeled = None, len(self.labels)
        # Answers may have been taken back.
        self._history = {n: past for n, past in self._history.items() if n < labeled}
        if labeled < MIN_LABELS:
            return
        try:
            criterion = self._learned()
            if criterion is not None:
                criterion.save(self.criterion_file)
                self.criterion = replace(criterion, encoder=self._model)
                self._history[labeled] = criterion.figures
        except InputError as error:
            # The answers are on disk; more of them may help.
            self.start = str(error)


class EncodeOnce:
    """A model that encodes each text under the condition once."""

    def __init__(self, model: Encoder, condition: str) -> None:
        self.name, self._model, self._condition = model.name, model, condition
        self._vectors: dict[str, FloatArray] = {}

    def encode(
        self, sentences: Sequence[str], condition: str | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Encode texts as criteria need them; others are left to the model."""
        if (condition, overall) != (self._condition, SHARE):
            return self._model.encode(sentences, condition, overall=overall)
        new = [text for text in dict.fromkeys(sentences) if text not in self._vectors]
        if new:
            vectors = self._model.encode(new, condition, overall=overall)
            self._vectors.update(zip(new, vectors, strict=True))
        return np.stack([self._vectors[text] for text in sentences])


class LabelSession(Session[str]):
    """A session in which each text gets a value."""

    columns = ("text", "condition", "value", "answer")
    start = "Eight texts and two values make a first figure."

    def __init__(
        self,
        texts: Iterable[str],
        condition: str,
        *,
        model: Encoder,
        output: Path,
        choose: Callable[[LabelSession], str | None] | None = None,
    ) -> None:
        """Keep the texts and read the file as the base class does; ``choose`` picks the texts."""
        self._choose = choose or next_text
        super().__init__(texts, condition, model=model, output=output)

    @staticmethod
    def key_of(texts: Sequence[str]) -> str:
        """Return the text."""
        return texts[0]

    @staticmethod
    def texts_of(key: str) -> tuple[str, ...]:
        """Return the text alone."""
        return (key,)

    def next(self) -> str | None:
        """Choose the text that teaches most; None if every text has an answer."""
        return self._choose(self)

    @cached_property
    def vectors(self) -> FloatArray:
        """Vectors of the texts, ``(n, 2 d)``, encoded at first use."""
        return features(self._encoder, self.texts, self.condition)

    @property
    def open_rows(self) -> IntArray:
        """Indices of the texts without an answer."""
        rows = [row for row, text in enumerate(self.texts) if text not in self.answers]
        return np.array(rows, np.int64)

    @property
    def remaining(self) -> int:
        """Number of texts without an answer."""
        return len(self.open_rows)

    def counts(self) -> dict[str, int]:
        """Count the values, the most frequent first."""
        return dict(Counter(self.labels.values()).most_common())

    def _learned(self) -> Criterion | None:
        labels, counts = self.labels, self.counts()
        if len(counts) < _MIN_VALUES or max(counts.values()) < 2:
            return None
        return learn(self._encoder, list(labels), list(labels.values()), condition=self.condition)


def next_text(session: LabelSession) -> str | None:
    """Choose an unsure text that stands for many others unlike the answered ones.

    The greedy choice of facility location (Wei, Iyer & Bilmes, 2015), weighted by one minus the
    margin between the two likeliest values.
    """
    rows = session.open_rows
    if not len(rows):
        return None
    vectors = session.vectors
    sample = vectors[:: max(1, len(vectors) // _MAX_CANDIDATES)]
    rows = rows[:: max(1, len(rows) // _MAX_CANDIDATES)]
    answered = [session.row_of[text] for text in session.answers if text in session.row_of]
    covered = (sample @ vectors[answered].T).max(axis=1, initial=-1.0)
    gain = np.maximum(sample @ vectors[rows].T - covered[:, None], 0).sum(axis=0)
    if session.criterion is not None:
        ordered = np.sort(session.criterion.probabilities(vectors[rows]), axis=1)
        gain *= 1 - (ordered[:, -1] - ordered[:, -2])
    return session.texts[int(rows[int(gain.argmax())])]
