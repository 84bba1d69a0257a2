from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.prompting.backend import Answer
from condsim.prompting.prompt import Shots
from condsim.prompting.scorer import PromptScorer
from condsim.prompting.settings import PromptSettings
from condsim.types import Scorer, Task

ROWS = (["a dog", "a cat", "a bird"], ["one dog", "two cats", "a bird"], ["number", "number", "x"])
TEXTS = {"a dog": "The Answer is 4.0.", "a cat": "no idea", "a bird": "9"}


def reply(prompt: str) -> Answer:
    query = prompt.rsplit("Sentence 1: ", 1)[1].split("\n")[0]
    return Answer(TEXTS[query], {4.0: 0.3, 5.0: 0.1, 9.0: 0.5} if query == "a dog" else {})


def scorer_of(
    fake_backend: Any, folder: Path, shots: Shots | None = None, **options: Any
) -> PromptScorer:
    settings = PromptSettings(model="fake", answers=str(folder / "answers.sqlite"), **options)
    return PromptScorer(settings, fake_backend(reply), shots=shots)


def test_prompt_scorer_reads_numbers_and_fills_the_rest(tmp_path: Path, fake_backend: Any):
    predictions = scorer_of(fake_backend, tmp_path).predict(*ROWS)
    assert predictions.values[[0, 2]].tolist() == [4.0, 9.0]
    assert 1 <= predictions.values[1] <= 5
    assert predictions.valid.tolist() == [True, False, True]
    assert predictions.in_range.tolist() == [True, False, False]
    assert predictions.unit[[0, 2]].tolist() == [0.75, 2.0]
    assert predictions.unit.dtype == np.float32


def test_prompt_scorer_fill_depends_on_seed_and_row_alone(tmp_path: Path, fake_backend: Any):
    first = scorer_of(fake_backend, tmp_path, seed=1).score(*ROWS)
    reverse = scorer_of(fake_backend, tmp_path, seed=1).score(*(column[::-1] for column in ROWS))
    np.testing.assert_array_equal(first, reverse[::-1])
    assert scorer_of(fake_backend, tmp_path, seed=2).score(*ROWS)[1] != first[1]


def test_prompt_scorer_expected_is_the_mean_of_the_numbers_on_the_scale(
    tmp_path: Path, fake_backend: Any
):
    predictions = scorer_of(fake_backend, tmp_path, scoring="expected").predict(*ROWS)
    # 9 is not on the scale: (4 * 0.3 + 5 * 0.1) / 0.4 = 4.25; the bird's own text is not on it.
    np.testing.assert_allclose(predictions.values[[0, 2]], [4.25, 9.0], rtol=1e-6)
    assert predictions.expected.tolist() == [True, False, False]
    assert predictions.valid.tolist() == [True, False, True]
    assert predictions.in_range.tolist() == [True, False, False]


def test_prompt_scorer_without_conditions_uses_the_scale_from_zero(
    tmp_path: Path, fake_backend: Any
):
    predictions = scorer_of(fake_backend, tmp_path).predict(ROWS[0], ROWS[1], None)
    assert predictions.label_range == (0.0, 5.0)
    np.testing.assert_allclose(predictions.unit[0], 0.8)


def test_prompt_scorer_is_a_scorer_and_names_its_setting(tmp_path: Path, fake_backend: Any):
    scorer = scorer_of(fake_backend, tmp_path, instruction="short")
    assert isinstance(scorer, Scorer)
    assert scorer.name == "fake, short instruction, 0-shot"


@pytest.mark.parametrize(("scale", "score"), [("unit", 0.75), ("likert", 4.0), ("raw", 4.0)])
def test_prompt_scorer_single_texts_give_a_float_on_each_scale(
    tmp_path: Path, fake_backend: Any, scale: Any, score: float
):
    scorer = scorer_of(fake_backend, tmp_path)
    assert scorer.score("a dog", "a dog", "x", scale=scale) == score


def test_prompt_scorer_examples_of_another_kind_raise_before_asking(
    tmp_path: Path, fake_backend: Any
):
    task = Task("t", "0", ("a", "b"), ("c", "d"), None, np.ones(2, np.float32), (0.0, 5.0))
    scorer = scorer_of(fake_backend, tmp_path, shots=Shots(task, 1))
    with pytest.raises(InputError, match=r"examples have no conditions"):
        scorer.score(*ROWS)
    assert not list(tmp_path.iterdir())


def test_prompt_scorer_other_examples_are_asked_for_anew(tmp_path: Path, fake_backend: Any):
    texts = tuple(f"text {row // 2}" for row in range(80))
    conditions = ("x", "y") * 40
    train = Task("t", "0", texts, texts, conditions, np.arange(80, dtype=np.float32) % 5 + 1)
    asked = []
    for seed in (0, 0, 1):
        scorer = scorer_of(fake_backend, tmp_path, shots=Shots(train, 2, seed=seed))
        scorer.score(*ROWS)
        asked.append(scorer.asker.usage.requests)
    assert asked == [3, 0, 3]
