from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError, ModelError
from condsim.model.embedding import EmbeddingScorer
from condsim.search import find_matches, match as module


class Angles(EmbeddingScorer):
    """A text is an angle in degrees, and a second one under the condition 'second'."""

    def __init__(self):
        super().__init__(name="angles", order="condition-first", dimension=2, calibration=None)

    def _embed(self, texts):
        pairs = [("", text) if isinstance(text, str) else text for text in texts]
        angles = np.radians([float(text.split()[name == "second"]) for name, text in pairs])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def matches(texts1, texts2, condition="first", **options):
    return find_matches(texts1, texts2, Angles(), condition, overall=0, **options)


def degrees(*angles):
    return [f"{angle} 0" for angle in angles]


def naive_greedy(texts1, texts2):
    first, second = (Angles().encode(texts, "first") for texts in (texts1, texts2))
    scores = np.round(first @ second.T, 6)
    pairs = {}
    for flat in np.argsort(-scores, axis=None, kind="stable").tolist():
        row, other = divmod(flat, len(texts2))
        if row not in pairs and other not in pairs.values():
            pairs[row] = other
    return pairs


def test_find_matches_takes_each_text_once_and_names_the_rest():
    found = matches(degrees(0, 1, 80), degrees(2, 40))
    assert list(zip(found.rows1, found.rows2, strict=True)) == [(1, 0), (0, 1)]
    assert found.score == pytest.approx(np.cos(np.radians([1, 40])))
    # The other text of the second collection is 39 and 2 degrees away.
    assert found.gap == pytest.approx(np.cos(np.radians([1, 40])) - np.cos(np.radians([39, 2])))
    assert (found.unmatched1.tolist(), found.unmatched2.tolist()) == ([2], [])


def test_find_matches_one_to_many_takes_the_nearest_of_each():
    found = matches(degrees(0, 1, 80), degrees(2, 40), one_to_many=True)
    assert dict(zip(found.rows1.tolist(), found.rows2.tolist(), strict=True)) == {0: 0, 1: 0, 2: 1}
    assert (found.gap > 0).all()


@pytest.mark.parametrize("sizes", [(40, 60), (60, 40), (50, 50)])
def test_find_matches_is_greedy_by_score_whatever_the_candidates(sizes, monkeypatch):
    monkeypatch.setattr(module, "_CANDIDATES", 2)
    monkeypatch.setattr(module, "_PAIRS_PER_BLOCK", 300)
    rng = np.random.default_rng(0)
    texts = [degrees(*rng.beta(2, 5, size) * 170) for size in sizes]
    found = matches(*texts)
    # Rounding decides between pairs that are equally near.
    wanted, pairs = naive_greedy(*texts), zip(found.rows1, found.rows2, strict=True)
    assert sum(wanted[row] == other for row, other in pairs) >= min(sizes) - 2
    assert len(set(found.rows1)) == len(set(found.rows2)) == min(sizes)


def test_find_matches_threshold_cuts_the_same_list():
    texts = degrees(0, 1, 80, 20), degrees(2, 40, 85)
    whole, cut = matches(*texts), matches(*texts, at_least=0.95)
    chosen = whole.score >= 0.95
    assert cut.rows1.tolist() == whole.rows1[chosen].tolist()
    assert 0 < len(cut.rows1) < len(whole.rows1)


def test_find_matches_several_conditions_take_the_lowest_score():
    found = matches(["0 0", "0 90"], ["5 80", "9 10"], ["first", "second"])
    assert dict(zip(found.rows1.tolist(), found.rows2.tolist(), strict=True)) == {0: 1, 1: 0}
    lowest = np.minimum(found.scores["first"], found.scores["second"])
    assert found.score.tolist() == lowest.tolist()


def test_find_matches_plain_and_a_single_text():
    found = matches(["0 0"], ["7 0"], None)
    assert (found.rows2.tolist(), list(found.scores)) == ([0], [None])
    assert np.isnan(found.gap).all()


def test_find_matches_labels_promise_a_precision():
    angles = np.linspace(0, 40, 300)
    first = degrees(*(2 * index for index in range(300)))
    second = [f"{2 * index + angle / 60} 0" for index, angle in enumerate(angles)]
    labels = {(row, row): row < 200 for row in range(0, 300, 2)}
    found = matches(first, second, labels=labels, precision=0.9)
    assert found.threshold.low >= 0.9
    assert found.score.min() == pytest.approx(found.threshold.value)
    assert 180 <= len(found.rows1) <= 240


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((["0 0"], []), {}, "Give two lists of texts"),
        (("0 0", ["0 0"]), {}, "Give two lists of texts"),
        ((["0 0"], ["0 0"]), {"at_least": 2}, "from 0 to 1"),
        ((["0 0"], ["0 0"]), {"condition": []}, "at least one condition"),
        ((["0 0"], ["0 0"]), {"at_least": 0.5, "labels": {}}, "Give either 'at_least'"),
        ((["0 0"], ["0 0"]), {"labels": {(0, 5): True}}, "None of the 1 labeled pairs is a match"),
        ((["0 0"], [" "]), {}, "must have text"),
    ],
)
def test_find_matches_bad_input_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        matches(*arguments, **options)


def test_find_matches_scorer_without_embeddings_refused():
    class Other:
        name = "other"

    with pytest.raises(ModelError):
        find_matches(["a"], ["b"], Other(), "c")
