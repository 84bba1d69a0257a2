"""The written form: a text file with one text pair a line, under several conditions at once.

``domain ||| text 1 ||| text 2 ||| condition = label ; condition = label`` is easy to write and to
check by hand. ``data/written`` of the repository is in this form.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from condsim.data.files import never_empty, text_lines
from condsim.data.labels import LIKERT
from condsim.data.row import location, score_of, short_repr
from condsim.data.tasks import make_task
from condsim.data.text import first_line
from condsim.errors import InputError
from condsim.paths import sha256_of, suffix_of
from condsim.types import IntArray, Task

_FIELD_SEPARATOR = "|||"
_FORM = "'domain ||| text 1 ||| text 2 ||| condition = label ; condition = label'"
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WrittenPair:
    """A line of the written form: two texts, and their similarity from 1 to 5 by condition."""

    # Kind of the texts, such as ``hotel reviews``.
    domain: str
    sentence1: str
    sentence2: str
    labels: Mapping[str, float]
    # File and line, for error messages, and the number of the line, from 1.
    location: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class WrittenTask(Task):
    """A task with the domain of each row, in ``domains``."""

    domains: tuple[str, ...] = ()

    def take(self, rows: IntArray) -> Self:
        """Return a task of the rows with the indices ``(m,)``, in that order."""
        return replace(super().take(rows), domains=tuple(self.domains[row] for row in rows))


def is_written(path: Path) -> bool:
    """Detect the written form: a ``.txt`` whose first line contains the separator."""
    return suffix_of(path) == ".txt" and path.is_file() and _FIELD_SEPARATOR in first_line(path)


def iter_written(path: Path | str) -> Iterator[WrittenPair]:
    """Stream a file of the written form: text in UTF-8, perhaps gzipped; blank lines are skipped.

    Labels are from 1 to 5 and may be fractions. A text contains no ``|||``, and a condition no
    ``;`` or ``=``.
    """
    path = Path(path)
    lines = enumerate(text_lines(path), start=1)
    pairs = (_parse_pair(path, number, line) for number, line in lines if line.strip())
    yield from never_empty(path, pairs)


def load_written(
    paths: Path | str | Sequence[Path | str], *, name: str | None = None
) -> WrittenTask:
    """Load one or more files of the written form.

    Args:
        paths: A file, or several whose rows follow one another; see `iter_written`.
        name: Name of the task; the stem of the first file by default.

    Returns:
        A row for each pair and condition, in file order, with labels from 1 to 5.

    Raises:
        InputError: See `iter_written`; also if there is no file, or a pair of texts occurs twice.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    pairs: dict[tuple[str, str], WrittenPair] = {}
    for path in files:
        for pair in iter_written(path):
            first = pairs.setdefault((pair.sentence1, pair.sentence2), pair)
            if first is not pair:
                raise InputError(
                    f"{pair.location}: each pair of texts must occur once, and this one is also at "
                    f"{first.location}. Put all conditions on one line."
                )
    hashes = [sha256_of(path) for path in files]
    if len(files) > 1:
        hashes = [hashlib.sha256(" ".join(hashes).encode()).hexdigest()]
    rows = (
        (pair.sentence1, pair.sentence2, condition, label)
        for pair in pairs.values()
        for condition, label in pair.labels.items()
    )
    task = make_task(files[0], rows, label_range=LIKERT, name=name, revision=hashes[0][:12])
    domains = tuple(pair.domain for pair in pairs.values() for _ in pair.labels)
    _LOGGER.info(
        "%s: %d rows of %d pairs in %d domains", task.name, len(task), len(pairs), len(set(domains))
    )
    return WrittenTask(**vars(task), domains=domains)


def _parse_pair(path: Path, number: int, line: str) -> WrittenPair:
    """Parse a line, and check that no part is empty and no condition occurs twice."""
    where = location(path, line=number)
    fields = [text.strip() for text in line.split(_FIELD_SEPARATOR)]
    # Each item should be a condition and its label.
    items = [[text.strip() for text in item.split("=")] for item in fields[-1].split(";")]
    conditions = {item[0] for item in items}
    is_complete = len(fields) == 4 and all(fields) and all(conditions)
    if not is_complete or any(len(item) != 2 for item in items) or len(conditions) < len(items):
        raise InputError(
            f"{where}: must be {_FORM}, with no part empty and each condition once, got "
            f"{short_repr(line.strip())}."
        )
    labels = {}
    for condition, label in items:
        subject = f"{where}, condition {condition!r}: the label"
        labels[condition] = score_of(label, subject, label_range=LIKERT)
    domain, sentence1, sentence2, _ = fields
    return WrittenPair(domain, sentence1, sentence2, labels, where, number)
