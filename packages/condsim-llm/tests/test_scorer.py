from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.types import Task
from condsim_llm.backend import Answer, PromptSettings
from condsim_llm.prompt import Shots
from condsim_llm.scorer import PromptScorer

ROWS = (["a dog", "a cat", "a bird"], ["one dog", "two cats", "a bird"], ["number", "number", "x"])
TEXTS = {"a dog": "The Answer is 4.0.", "a cat": "no idea", "a bird": "9"}


def reply(prompt: str) -> Answer:
    query = prompt.rsplit("Sentence 1: ", 1)[1].split("\n")[0]
    return Answer(TEXTS[query], {4.0: 0.3, 5.0: 0.1, 9.0: 0.5} if query == "a dog" else {})


@pytest.fixture
def scorer_of(fake_backend, tmp_path):
    def make(shots: Shots | None = None, **options: Any) -> PromptScorer:
        settings = PromptSettings(model="fake", answers=str(tmp_path / "answers.sqlite"), **options)
        return PromptScorer(settings, fake_backend(reply), shots=shots)

    return make


def test_prompt_scorer_reads_numbers_and_fills_the_rest(scorer_of):
    predictions = scorer_of().predict(*ROWS)
    assert predictions.values[[0, 2]].tolist() == [4.0, 9.0]
    assert 1 <= predictions.values[1] <= 5
    assert predictions.valid.tolist() == [True, False, True]
    assert predictions.in_range.tolist() == [True, False, False]
    assert predictions.unit[[0, 2]].tolist() == [0.75, 2.0]
    assert predictions.unit.dtype == np.float32


def test_prompt_scorer_fill_depends_on_seed_and_row_alone(scorer_of):
    first = scorer_of(seed=1).score(*ROWS)
    reverse = scorer_of(seed=1).score(*(column[::-1] for column in ROWS))
    np.testing.assert_array_equal(first, reverse[::-1])
    assert scorer_of(seed=2).score(*ROWS)[1] != first[1]


def test_prompt_scorer_expected_is_the_mean_of_the_numbers_on_the_scale(scorer_of):
    predictions = scorer_of(scoring="expected").predict(*ROWS)
    # 9 is not on the scale: (4 * 0.3 + 5 * 0.1) / 0.4 = 4.25; the bird's own text is not on it.
    np.testing.assert_allclose(predictions.values[[0, 2]], [4.25, 9.0], rtol=1e-6)
    assert predictions.expected.tolist() == [True, False, False]
    assert predictions.valid.tolist() == [True, False, True]
    assert predictions.in_range.tolist() == [True, False, False]


def test_prompt_scorer_without_conditions_uses_the_scale_from_zero(scorer_of):
    predictions = scorer_of().predict(ROWS[0], ROWS[1], None)
    assert predictions.label_range == (0.0, 5.0)
    np.testing.assert_allclose(predictions.unit[0], 0.8)


@pytest.mark.parametrize(("scale", "score"), [("unit", 0.75), ("likert", 4.0), ("raw", 4.0)])
def test_prompt_scorer_single_texts_give_a_float_on_each_scale(scorer_of, scale, score):
    scorer = scorer_of()
    assert scorer.score("a dog", "a dog", "x", scale=scale) == score


def test_prompt_scorer_examples_of_another_kind_raise_before_asking(scorer_of, tmp_path):
    task = Task("t", "0", ("a", "b"), ("c", "d"), None, np.ones(2, np.float32), (0.0, 5.0))
    scorer = scorer_of(shots=Shots(task, 1))
    with pytest.raises(InputError, match=r"examples have no conditions"):
        scorer.score(*ROWS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shots": 2}, r"2 examples need a labeled training file"),
        ({"model": " "}, r"'model'"),
        ({"timeout": float("inf")}, r"'timeout'"),
        ({"scoring": "x"}, r"'scoring' must be .* got 'x'"),
        ({"base_url": "http://localhost:1/v1"}, r"base_url is the address of a server"),
    ],
)
def test_prompt_settings_value_out_of_range_raises(changes, message):
    with pytest.raises(InputError, match=message):
        PromptSettings(**{"model": "m", **changes})
