from __future__ import annotations

import pytest
from papers.suite.slices import asks_for_number, has_negation, load_written_slices

WRITTEN = (
    "cafes ||| It is not open. ||| It is open. ||| opening = 1 ; the place = 5 ; tone = 4.5\n"
    "cafes ||| Two teas, six euros. ||| Tea for 6. ||| price = 5 ; number of cups = 1\n"
    "shops ||| The till was slow. ||| No queue at all! ||| waiting time = 1 ; the shop = 3\n"
)


def test_load_written_slices_follow_the_domains(tmp_path):
    path = tmp_path / "test.txt"
    path.write_text(WRITTEN)
    tasks = load_written_slices(path)
    assert [(task.key, task.group) for task in tasks] == [
        ("cafes", "test"),
        ("shops", "test"),
        ("slice:negation", "slices"),
        ("slice:numbers", "slices"),
    ]
    negation, numbers = (task.task for task in tasks[2:])
    assert set(negation.sentences1) == {"It is not open.", "The till was slow."}
    assert set(numbers.conditions) == {"price", "number of cups", "waiting time"}
    (tmp_path / "dev.txt").write_text(WRITTEN)
    both = load_written_slices(tmp_path)
    assert [task.key for task in both][:3] == ["dev/cafes", "dev/shops", "test/cafes"]


@pytest.mark.parametrize("text", ["Can't say.", "can\u2019t", "NOT one", "dont go", "hardly any"])
def test_has_negation_words_of_negation_true(text):
    assert has_negation(text)


@pytest.mark.parametrize("text", ["A knot.", "Noted, thanks", "want", "", "an ant's nest"])
def test_has_negation_other_words_false(text):
    assert not has_negation(text)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("the number of people", True),
        ("When does it open?", True),
        ("how long it took", True),
        ("price", True),
        ("what the writer thinks of the price", False),
        ("who was there when it broke", False),
        ("the showing", False),
    ],
)
def test_asks_for_number_by_words_and_beginnings(condition, expected):
    assert asks_for_number(condition) is expected
