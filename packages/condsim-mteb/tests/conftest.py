"""Rows for tasks of mteb, and an encoder that remembers what it read."""

from __future__ import annotations

import numpy as np
import pytest

from condsim.types import Task

pytest.importorskip("mteb")

PEOPLE = ("man", "woman", "girl", "boy", "child", "waiter", "nurse", "cook")


@pytest.fixture
def pairs() -> Task:
    """Eight sentence pairs without conditions, scored from 0 to 5."""
    return Task(
        name="some",
        revision="abc123",
        sentences1=tuple(f"A {person} throws a ball." for person in PEOPLE),
        sentences2=tuple(f"The {PEOPLE[row // 2]} runs {row} miles." for row in range(8)),
        conditions=None,
        labels=np.array([0, 5, 1, 4, 2.5, 3, 0.5, 4.75], np.float32),
        label_range=(0.0, 5.0),
    )


@pytest.fixture
def conditional() -> Task:
    """Four sentence pairs, each under two conditions; one row has no label."""
    sentences = [f"A {person} throws a red ball." for person in PEOPLE[:4] for _ in range(2)]
    others = [f"The {PEOPLE[row // 4]} kicks a blue ball." for row in range(8)]
    return Task(
        name="some-csts",
        revision="def456",
        sentences1=tuple(sentences),
        sentences2=tuple(others),
        conditions=("the person", "the color") * 4,
        labels=np.array([5, 1, 2, 1, np.nan, 2, 3, 4], np.float32),
    )
