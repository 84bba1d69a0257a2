"""Label texts one at a time, and learn a criterion from the answers as they come."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.cache import locked
from condsim.errors import InputError, one_line
from condsim.io import replacing
from condsim.model.criterion import SUFFIX, Criterion, features
from condsim.model.embedding import EmbeddingScorer
from condsim.model.learned_figures import MIN_LABELS
from condsim.types import FloatArray, IntArray, shortened

SKIP = "skip"
SILENT = "does not say"
_COLUMNS = ("text", "value", "answer")
# Every third text is one unlike all labeled ones: it may have a value that nobody has named.
_EXPLORE_EVERY = 3
# The most texts that are compared with each other.
_MAX_CANDIDATES = 5_000
_MIN_VALUES = 2
# Labels without a gain of a point, after which more are said to help little.
_PATIENCE = 20
_LITTLE = 0.01


@dataclass(frozen=True)
class Progress:
    """State of a session.

    Attributes:
        labeled: Number of texts with a value.
        remaining: Number of texts without an answer.
        values: The values so far, the most frequent first, with their counts.
        criterion: What was learned from them; None before there are enough labels.
        enough: True if the last labels have hardly raised the figure.
    """

    labeled: int
    remaining: int
    values: Mapping[str, int]
    criterion: Criterion | None
    enough: bool

    @property
    def line(self) -> str:
        """The figure and its interval on one line."""
        if self.criterion is None:
            return f"{self.labeled} labeled. Eight texts and two values make a first figure."
        figures = self.criterion.figures
        line = (
            f"{self.labeled} labeled. Pairs told apart: {100 * figures.auc:.1f} "
            f"[{100 * figures.low:.0f}, {100 * figures.high:.0f}], without labels "
            f"{100 * figures.zero_shot:.1f}."
        )
        return f"{line} More labels help little now." if self.enough else line


class LabelSession:
    """Answers to the texts of a collection, in a file that is written after each answer.

    `open_session` makes one.

    Attributes:
        condition: What the values are values of.
        answers: Value and mark of each answered text, in their order; of a text without a value,
            the value is empty and the mark `SKIP` or `SILENT`.
    """

    def __init__(
        self,
        texts: Iterable[str],
        condition: str,
        *,
        model: EmbeddingScorer,
        output: Path,
        choose: Callable[[LabelSession], str | None] | None = None,
    ) -> None:
        """Encode the distinct texts, and read the answers that the file has.

        Raises:
            InputError: If there is no text, or the file is not one of labels.
        """
        self.condition = condition
        self.output = output
        self.texts = list(dict.fromkeys(texts))
        if not self.texts:
            raise InputError("There is no text to label.")
        self._model = model
        self._choose = choose or next_text
        self.answers = read_answers(output) if output.exists() else {}
        self._history: list[float] = []
        self._criterion: Criterion | None = None
        self._vectors: FloatArray | None = None
        self.row_of = {text: row for row, text in enumerate(self.texts)}
        self._learn()

    @property
    def vectors(self) -> FloatArray:
        """Vectors of the texts, ``(n, 2 d)``, encoded at first use."""
        if self._vectors is None:
            self._vectors = features(self._model, self.texts, self.condition)
        return self._vectors

    @property
    def labels(self) -> dict[str, str]:
        """Values of the texts that have one."""
        return {text: value for text, (value, _) in self.answers.items() if value}

    @property
    def open_rows(self) -> IntArray:
        """Indices of the texts without an answer."""
        rows = [row for row, text in enumerate(self.texts) if text not in self.answers]
        return np.array(rows, np.int64)

    @property
    def criterion_file(self) -> Path:
        """File of the criterion, written after each answer, next to the labels."""
        return self.output.with_suffix(SUFFIX)

    @property
    def criterion(self) -> Criterion | None:
        """The criterion learned from the answers; None before there are enough."""
        return self._criterion

    def next(self) -> str | None:
        """Choose the text that teaches most; None if every text has an answer."""
        return self._choose(self)

    def answer(self, text: str, value: str) -> Progress:
        """Store the value of a text, `SKIP` or `SILENT`; it is on disk before this returns.

        Raises:
            InputError: If the text is not in the collection, or the value is blank.
        """
        if text not in self.row_of:
            raise InputError(f"There is no such text to label: {shortened(text, 60)!r}.")
        value = value.strip()
        if not value:
            raise InputError(f"A value must have text; or answer {SKIP!r} or {SILENT!r}.")
        mark = value if value in (SKIP, SILENT) else ""
        self.answers.pop(text, None)
        self._store({**self.answers, text: ("" if mark else value, mark)})
        return self.progress()

    def undo(self) -> str | None:
        """Take the last answer back; return its text, or None if there is none."""
        if not self.answers:
            return None
        text = next(reversed(self.answers))
        self._store({key: answer for key, answer in self.answers.items() if key != text})
        return text

    def progress(self) -> Progress:
        """Tell where the session stands."""
        counts = Counter(self.labels.values())
        recent = self._history[-_PATIENCE:]
        return Progress(
            labeled=counts.total(),
            remaining=len(self.open_rows),
            values=dict(counts.most_common()),
            criterion=self._criterion,
            enough=len(recent) == _PATIENCE and max(recent) - recent[0] < _LITTLE,
        )

    def _store(self, answers: dict[str, tuple[str, str]]) -> None:
        """Write all answers in one step, then learn from them."""
        with replacing(self.output) as partial:
            with partial.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(_COLUMNS)
                writer.writerows((text, *answer) for text, answer in answers.items())
                stream.flush()
                os.fsync(stream.fileno())
        self.answers = answers
        self._learn()

    def _learn(self) -> None:
        labels = self.labels
        counts = Counter(labels.values())
        if len(labels) < MIN_LABELS or len(counts) < _MIN_VALUES or max(counts.values()) < 2:
            self._criterion = None
            return
        self._criterion = self._model.learn(
            list(labels), list(labels.values()), condition=self.condition
        )
        self._criterion.save(self.criterion_file)
        self._history.append(self._criterion.figures.auc)


@contextmanager
def open_session(
    texts: Iterable[str], condition: str, *, model: EmbeddingScorer, output: Path
) -> Iterator[LabelSession]:
    """Open a session; a file that another session has open is refused with an `InputError`."""
    busy = f"{output}: another session is labeling into this file. End it, or give another name."
    with locked(output.with_name(f".{output.name}.lock"), busy=busy, wait=False):
        yield LabelSession(texts, condition, model=model, output=output)


def next_text(session: LabelSession) -> str | None:
    """Choose a text unlike the labeled ones at first, then one whose value is least certain."""
    rows = session.open_rows
    if not len(rows):
        return None
    rows = rows[:: max(1, len(rows) // _MAX_CANDIDATES)]
    vectors = session.vectors
    labeled = [session.row_of[text] for text in session.labels if text in session.row_of]
    criterion = session.criterion
    if not labeled:
        # The text nearest to the mean stands for the most others.
        dullness = -(vectors[rows] @ vectors[rows].mean(axis=0))
    elif criterion is None or len(labeled) % _EXPLORE_EVERY == 0:
        dullness = (vectors[rows] @ vectors[labeled].T).max(axis=1)
    else:
        ordered = np.sort(criterion.probabilities(vectors[rows]), axis=1)
        dullness = ordered[:, -1] - ordered[:, -2]
    return session.texts[int(rows[int(dullness.argmin())])]


def random_text(seed: int = 0) -> Callable[[LabelSession], str | None]:
    """Make a chooser that draws texts at random, to compare with."""
    generator = np.random.default_rng(seed)

    def choose(session: LabelSession) -> str | None:
        rows = session.open_rows
        return session.texts[int(generator.choice(rows))] if len(rows) else None

    return choose


def read_answers(path: Path) -> dict[str, tuple[str, str]]:
    """Read the file of a session: value and mark of each text, in the order of the answers."""
    with one_line(f"{path}: is not a file of labels", OSError, ValueError, csv.Error):
        with path.open(encoding="utf-8", newline="") as stream:
            head, *rows = list(csv.reader(stream)) or [[]]
        if tuple(head) != _COLUMNS or any(len(row) != len(_COLUMNS) for row in rows):
            raise ValueError(f"its columns must be {', '.join(_COLUMNS)}")
        return {text: (value, mark) for text, value, mark in rows}
