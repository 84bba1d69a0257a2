from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from condsim.contexts.scoring.equations import ContextTerms
from condsim.errors import InputError


class Coherence:
    """Log-probability: minus the length of the sentence times the centre."""

    def encode(self, sentences: Any) -> Any:
        return np.float32([[len(text)] for text in sentences])

    def log_probability(self, vectors: Any, centres: Any) -> Any:
        return -vectors * centres.astype(np.float32)


class Generators:
    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def scores(self, tasks: Any, sentences: Any, centres: Any) -> Any:
        self.asked.append(tuple(tasks))
        return {
            task: [np.full(len(one), -len(task), np.float32) for one in centres] for task in tasks
        }


CENTRES = [np.array([1, 2]), np.array([], np.int64), np.array([5])]


def test_terms_come_from_the_model_of_each():
    generators = Generators()
    found = ContextTerms(Coherence(), generators).terms(
        ["a", "bb", "ccc"], CENTRES, ("coherence", "centre", "left", "right")
    )
    assert [list(terms) for terms in found] == [["coherence", "centre", "left", "right"]] * 3
    assert found[0]["coherence"].tolist() == [-1, -2]
    assert found[1]["coherence"].tolist() == []
    assert found[2]["coherence"].tolist() == [-15]
    assert found[0]["left"].tolist() == [-4, -4]
    assert generators.asked == [("centre", "left", "right")]  # at once, to share encoder states


def test_terms_not_asked_for_are_not_computed():
    generators = Generators()
    found = ContextTerms(None, generators).terms(["a"], CENTRES[:1], ("right",))
    assert list(found[0]) == ["right"]
    assert generators.asked == [("right",)]
    assert list(ContextTerms(Coherence(), None).terms(["a"], CENTRES[:1], ("coherence",))[0]) == [
        "coherence"
    ]


@pytest.mark.parametrize("term", ["coherence", "left"])
def test_terms_without_their_model_raise(term: str):
    with pytest.raises(InputError, match=rf"The term '{term}' of Eq. 3 needs a model"):
        ContextTerms(None, None).terms(["a"], CENTRES[:1], (term,))
