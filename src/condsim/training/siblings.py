"""Augmentation by siblings: another text about the same thing takes a sentence's place.

Several captions of one image, several phrasings of one ticket: what holds of one under a condition
mostly holds of the others. Replacing a sentence now and then by such a sibling, with the label
kept, stops a small model from learning the training sentences by heart. Not from the papers.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from condsim.tasks import iter_rows
from condsim.types import Task

_LOGGER = logging.getLogger("condsim")
_OUTSIDE = re.compile(r"[\W_]+")


def normalised(text: str) -> str:
    """Lower-case letters and digits of a text: equal for two texts that differ in no word."""
    return _OUTSIDE.sub("", text.lower())


def caption_groups(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Reads captions as groups of siblings, those of one image.

    Collections may overlap: an image is known by the digits its name begins with.

    Args:
        paths: Files with the columns ``image_id`` and ``caption``.

    Yields:
        Group and text of each caption.

    Raises:
        InputError: If a file cannot be read or lacks a column.
    """
    for path in paths:
        for row in iter_rows(path, columns=("image_id", "caption")):
            name = str(row.cells["image_id"])
            image = re.match(r"\d+", name)
            yield image.group() if image else name, str(row.cells["caption"]).strip()


def load_siblings(
    path: Path, *, sentences: Iterable[str], leave_out: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Reads groups of texts that describe the same thing and keeps those of the given sentences.

    Args:
        path: A file of rows with the columns ``group`` and ``text``.
        sentences: The sentences whose siblings are wanted.
        leave_out: Texts never to be used, such as the sentences of the dev file.

    Returns:
        The other texts of its group, by normalised sentence; sentences without any are absent.

    Raises:
        InputError: If the file cannot be read or lacks a column.
    """
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    group_of: dict[str, str] = {}
    for row in iter_rows(path, columns=("group", "text")):
        group, text = str(row.cells["group"]), str(row.cells["text"])
        groups[group][normalised(text)] = text
        group_of.setdefault(normalised(text), group)
    barred = {normalised(text) for text in leave_out}
    found = {}
    for key in sorted({normalised(sentence) for sentence in sentences}):
        members = groups[group_of[key]] if key in group_of else {}
        others = tuple(text for other, text in members.items() if other not in {key, *barred})
        if others:
            found[key] = others
    _LOGGER.info("%s: siblings for %d distinct sentences", path.name, len(found))
    return found


def with_siblings(
    task: Task, siblings: Mapping[str, Sequence[str]], *, rate: float, seed: tuple[int, int]
) -> Task:
    """Puts a random sibling in the place of some sentences; conditions and labels stay.

    Args:
        task: The task.
        siblings: What :func:`load_siblings` gives.
        rate: Share in [0, 1] of the sentences with siblings that are replaced.
        seed: Seed of the choice and number of the epoch.

    Returns:
        A task of the same length, each row about the same things as before.
    """
    generator = np.random.default_rng(seed)

    def replaced(sentences: Sequence[str]) -> tuple[str, ...]:
        chance = generator.random(len(sentences))
        choice = generator.random(len(sentences))
        texts = list(sentences)
        for row in np.flatnonzero(chance < rate):
            others = siblings.get(normalised(texts[row]), ())
            if others:
                texts[row] = others[int(choice[row] * len(others))]
        return tuple(texts)

    return replace(task, sentences1=replaced(task.sentences1), sentences2=replaced(task.sentences2))
