"""The rows that are scored and trained on: from C-STS, or made by a small grammar of ours."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from condsim.data.csts import load_csts
from condsim.types import Task

__all__ = ["DATA", "OTHER_DOMAINS", "Source", "generated_rows", "source", "take", "write_rows"]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "csts-reannotated" / "train.csv"
"""Where the training rows of C-STS are looked for; they may not be passed on with condsim."""

OTHER_DOMAINS = DATA.parents[1] / "criteria" / "dev_rows.csv"
"""Rows of 22 sets of other domains than captions, in the columns of C-STS."""

Row = tuple[str, str, str, int]
"""sentence1, sentence2, condition, label (1 to 5)."""

_SLOTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "age": ("the age of the person", ("young", "old", "teenage", "middle-aged", "very small")),
    "person": (
        "the kind of person",
        (
            *("man", "woman", "boy", "girl", "cyclist", "farmer", "nurse", "waiter", "painter"),
            *("soldier", "teacher", "tourist", "fisherman", "dancer"),
        ),
    ),
    "color": (
        "the color of the clothes",
        ("red", "blue", "green", "white", "black", "striped", "yellow", "brown", "pink", "gray"),
    ),
    "garment": (
        "the clothing",
        ("jacket", "shirt", "helmet", "apron", "woollen hat", "scarf", "raincoat", "uniform"),
    ),
    "activity": (
        "the activity",
        (
            "throws a ball",
            "rides a bicycle",
            "cuts a loaf of bread",
            "reads the evening paper",
            "paints the side of a wooden boat",
            "plays a slow song on the piano",
            "carries two baskets of apples",
            "repairs the engine of a motorcycle",
        ),
    ),
    "place": (
        "the place",
        (
            "on the beach",
            "in a kitchen",
            "at a railway station",
            "in front of a closed shop",
            "beside a frozen lake",
            "on the roof of a tall building",
        ),
    ),
    "watcher": (
        "who is watching",
        (
            "a small crowd looks on",
            "nobody pays attention",
            "two dogs wait beside the door",
            "several children laugh and point at the sky",
        ),
    ),
    "time": ("the time of day", ("at dawn", "around noon", "late at night", "in the afternoon")),
    "number": ("how many there are", ("three", "five", "a dozen", "more than twenty")),
    "animal": ("the animals", ("gulls", "horses", "cats", "sheep", "parrots")),
}


@dataclass(frozen=True)
class Source:
    """Rows for a benchmark.

    Attributes:
        task: The rows.
        origin: Where they come from, for the reader of the results.
    """

    task: Task
    origin: str


def source(path: Path, *, rows: int, seed: int = 0) -> Source:
    """Take the rows of a file, or make some where there is no such file.

    Args:
        path: A C-STS file.
        rows: Most rows to give; rows of one sentence pair stay together as far as it goes.
        seed: Seed of the choice.

    Returns:
        The rows.

    Raises:
        InputError: If the file is there and breaks a rule.
    """
    if path.is_file():
        return Source(take(load_csts(path), rows, seed=seed), f"{path.parent.name}/{path.name}")
    made = list(islice(generated_rows(seed=seed), rows))
    sentences1, sentences2, conditions, labels = zip(*made, strict=True)
    task = Task(
        name="generated",
        revision=f"seed {seed}",
        sentences1=sentences1,
        sentences2=sentences2,
        conditions=conditions,
        labels=np.array(labels, dtype=np.float32),
    )
    return Source(task, f"generated (no {path.name} in {path.parent.name})")


def take(task: Task, rows: int, *, seed: int) -> Task:
    """Draw labeled rows, whole sentence pairs at a time.

    Args:
        task: A task with conditions.
        rows: Most rows to draw; the last pair is cut if it does not fit.
        seed: Seed of the draw.

    Returns:
        The drawn rows, all of the labeled ones if there are no more.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for index in np.flatnonzero(task.valid).tolist():
        key = (task.sentences1[index], task.sentences2[index])
        groups.setdefault(key, []).append(index)
    order = list(groups.values())
    random.Random(seed).shuffle(order)
    chosen = [index for group in order for index in group][:rows]
    conditions = task.conditions or ("",) * len(task)
    return Task(
        name=task.name,
        revision=task.revision,
        sentences1=tuple(task.sentences1[i] for i in chosen),
        sentences2=tuple(task.sentences2[i] for i in chosen),
        conditions=tuple(conditions[i] for i in chosen),
        labels=task.labels[chosen],
        label_range=task.label_range,
    )


def generated_rows(*, seed: int) -> Iterator[Row]:
    """Make rows without end: sentence pairs, each under two conditions, as in C-STS.

    Two sentences that share what the condition asks for get a label of 4 or 5, others 1 or 2.
    Sentences have about the words of C-STS (7 to 31, 15 on average); hardly any occurs twice.

    Args:
        seed: Seed of the choice.

    Yields:
        Rows.
    """
    random_state = random.Random(seed)
    while True:
        first = {name: random_state.choice(words) for name, (_, words) in _SLOTS.items()}
        second = {name: random_state.choice(words) for name, (_, words) in _SLOTS.items()}
        shared, other = random_state.sample(sorted(_SLOTS), 2)
        second[shared] = first[shared]
        pair = [_sentence(slots, random_state) for slots in (first, second)]
        for name in (shared, other):
            base = 4 if first[name] == second[name] else 1
            yield pair[0], pair[1], _SLOTS[name][0], base + random_state.randrange(2)


def write_rows(path: Path, rows: Iterator[Row]) -> None:
    """Write rows as CSV with the columns of C-STS.

    Args:
        path: The file to write.
        rows: The rows.
    """
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["sentence1", "sentence2", "condition", "label"])
        writer.writerows(rows)


def _sentence(slots: dict[str, str], random_state: random.Random) -> str:
    """Make a sentence of the slots, leaving out some of its parts."""
    words = f"The {slots['age']} {slots['person']} in the {slots['color']} {slots['garment']}"
    words = f"{words} {slots['activity']}"
    if random_state.random() < 0.35:
        words = f"{words} {slots['place']}"
    if random_state.random() < 0.15:
        words = f"{words} {slots['time']}"
    if random_state.random() < 0.12:
        words = f"{words} while {slots['watcher']}"
    if random_state.random() < 0.08:
        words = f"{words} and {slots['number']} {slots['animal']} can be heard far away"
    return f"{words}."
