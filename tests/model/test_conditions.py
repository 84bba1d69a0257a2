import numpy as np
import pytest

import condsim
from condsim.model.conditions import Named, named_aspect, take_apart


@pytest.fixture(scope="module")
def model():
    return condsim.load()


@pytest.mark.parametrize(
    "condition",
    [
        "the price",
        "the price?",
        "Compare the two texts by the price.",
        "Please compare these sentences only in terms of the price",
        "How similar are both documents in the price?",
        "Focus only on the price and ignore everything else.",
        "the price, and nothing else",
        "Look only at the price; ignore all else",
        "Ignore everything except for the price",
        "ignoring  all but the price",
        "Consider only the price!",
        "only the price",
        "with regard to the price",
        "In terms of the price",
        "when it comes to the price",
        "Whether the price is the same",
        "Is the price the same?",
        "I would like to know about the price",
    ],
)
def test_named_aspect_leaves_an_instruction_out(condition):
    assert named_aspect(condition) == "the price"


@pytest.mark.parametrize(
    "condition",
    [
        "only child",
        "Compare",
        "focus",
        "what the text is regarding",
        "ignoring the price",
        "everything except the price",
        "comparing the texts",
        "how similar the styles are",
        "nothing but the price",
        "the focus on the customer",
        "...",
    ],
)
def test_named_aspect_other_words_stay(condition):
    assert named_aspect(condition) == condition


@pytest.mark.parametrize(
    ("condition", "aspects"),
    [
        ("the food and the staff", ("the food", "the staff")),
        ("Both the food and the staff.", ("the food", "the staff")),
        ("the food, the staff, and the price", ("the food", "the staff", "the price")),
        ("the food as well as the staff", ("the food", "the staff")),
        ("the area and the name of the shop", ("the area", "the name of the shop")),
        ("the price and whether it is fair", ("the price", "whether it is fair")),
    ],
)
def test_take_apart_joined_aspects(condition, aspects):
    assert take_apart(condition) == Named(aspects)
    assert take_apart(f"everything except {condition}") == Named(aspects, left_out=True)


@pytest.mark.parametrize(
    "condition",
    [
        "everything except the price",
        "All but the price.",
        "anything other than the price",
        "Ignoring the price",
        "Compare the two texts, ignoring the price.",
        "regardless of the price",
        "not the price",
    ],
)
def test_take_apart_aspect_left_out(condition):
    assert take_apart(condition) == Named(("the price",), left_out=True)


@pytest.mark.parametrize(
    "condition",
    [
        "the color of the shirt and the shoes",
        "the difference between the old and the new",
        "the bread and butter",
        "cause and effect",
        "whether the price and the date agree",
        "and the price",
        "not urgent",
        "the main point, the subject",
        "not the first but the other person",
        "apart from the sofa, what else is in the room",
        "the price?",
    ],
)
def test_take_apart_other_conditions_stay_whole(condition):
    assert take_apart(condition) == Named((condition.rstrip("?"),))


TEXTS = ["Fine soup, rude waiters.", "The soup was cold."]


def test_encode_joined_aspects_is_the_direction_of_their_sum(model):
    total = sum(model.encode(TEXTS, aspect) for aspect in ("the food", "the staff"))
    expected = total / np.linalg.norm(total, axis=1, keepdims=True)
    both = model.encode(TEXTS, "the food and the staff")
    np.testing.assert_allclose(both, expected, atol=1e-5)
    mixed = model.encode(TEXTS, ["the food and the staff", "the staff"])
    alone = model.encode(TEXTS[1], "the staff")
    np.testing.assert_allclose(mixed, [expected[0], alone], atol=1e-5)


def test_encode_aspect_left_out_keeps_a_fifth_of_its_direction(model):
    # By hand: v(all but A) = w - 0.8 (w·a) a, where w is the vector under all but A, as read.
    vectors = {"the food": [[0.6, 0.8]], "everything except the food": [[1.0, 0.0]]}
    embed = lambda inputs: np.array([vectors[c][0] for c, _ in inputs], np.float32)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "_embed", embed)
        patch.setattr(model, "dimension", 2)
        found = model.encode("Fine soup.", "not the food")
    expected = np.array([1 - 0.8 * 0.6 * 0.6, -0.8 * 0.6 * 0.8])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


def test_encode_other_orders_read_conditions_as_they_are(model, monkeypatch):
    plain = model.encode("Fine soup.", "the food")
    asked = "Focus only on the food"
    np.testing.assert_array_equal(model.encode("Fine soup.", asked), plain)
    monkeypatch.setattr(model, "order", "condition-first")
    assert not np.allclose(model.encode("Fine soup.", asked), plain, atol=1e-3)
