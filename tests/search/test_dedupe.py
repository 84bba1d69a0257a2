from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import condsim
from condsim.console import silent
from condsim.errors import InputError, ModelError, ScoredWarning
from condsim.model.calibration import Calibration
from condsim.model.embedding import EmbeddingScorer
from condsim.search import vectors as vectors_module
from condsim.search.dedupe import find_duplicates
from condsim.search.vectors import VectorFile, VectorSpace

module = pytest.importorskip("condsim.search.dedupe")


class AngleScorer(EmbeddingScorer):
    """A text such as ``"10 80 a"`` lies at 10 degrees under ``first``, at 80 under ``second``."""

    def __init__(self, calibration=None):
        super().__init__(
            name="angles", order="condition-first", dimension=2, calibration=calibration
        )
        self.read = []

    def _embed(self, texts):
        self.read += texts
        angles = [float(text.split()[condition == "second"]) for condition, text in texts]
        return np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], 1).astype("f4")


class Overall(AngleScorer):
    """A text alone lies where it lies under ``second``."""

    def _embed(self, texts):
        pairs = [item if isinstance(item, list) else ["second", item] for item in texts]
        return super()._embed(pairs)


NEAR = float(np.cos(np.radians(10.5)))


def duplicates(texts, at_least=NEAR, condition="first", **options):
    options = {"overall": 0, **options}
    return find_duplicates(texts, AngleScorer(), condition, at_least=at_least, **options)


def test_find_duplicates_members_are_near_the_kept_row():
    groups = duplicates(["0 0", "40 0", "20 0", "10 0"])
    assert groups.kept_row.tolist() == [0, 1, 2, 0]
    assert groups.kept.tolist() == [True, True, True, False]
    assert groups.sizes.tolist() == [2, 1, 1, 0]
    np.testing.assert_allclose(groups.score, np.cos(np.radians([0, 0, 0, 10])), atol=1e-6)


def test_find_duplicates_joins_the_nearest_kept_row():
    assert duplicates(["0 0", "15 0", "9 0"], np.float32(NEAR)).kept_row.tolist() == [0, 1, 1]


def test_find_duplicates_chain_joins_what_a_third_text_links():
    groups = duplicates(["0 0", "40 0", "20 0", "10 0"], chain=True)
    assert groups.kept_row.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(groups.score, np.cos(np.radians([0, 0, 20, 10])), atol=1e-6)


@pytest.mark.parametrize("chain", [False, True])
def test_find_duplicates_several_conditions_must_all_hold(chain):
    texts = ["0 0", "5 90", "0 5", "80 0"]
    groups = duplicates(texts, condition=["first", "second"], chain=chain)
    assert groups.kept_row.tolist() == [0, 1, 0, 3]


def test_find_duplicates_each_condition_has_its_threshold():
    texts = ["0 0", "5 30"]
    loose = [NEAR, float(np.cos(np.radians(31)))]
    assert duplicates(texts, condition=["first", "second"]).kept.all()
    assert not duplicates(texts, loose, condition=["first", "second"]).kept[1]


def test_find_duplicates_edges_in_parts_are_the_same(monkeypatch):
    monkeypatch.setattr(vectors_module, "_EDGES_PER_PART", 3)
    monkeypatch.setattr(vectors_module, "TEXTS_PER_STEP", 4)
    texts = [f"{angle} 0" for angle in range(0, 60, 3)]
    chained = duplicates(texts, chain=True)
    assert set(chained.kept_row) == {0}
    stars = duplicates(texts)
    assert stars.kept.sum() > 1
    assert (stars.score >= NEAR - 1e-6).all()


def test_find_duplicates_overall_is_one_more_test():
    texts = ["0 0", "5 90", "0 5"]
    groups = find_duplicates(texts, Overall(), "first", at_least=NEAR, and_overall=NEAR, overall=0)
    assert groups.kept_row.tolist() == [0, 1, 0]


def test_find_duplicates_overall_is_a_share_of_each_score():
    # Alike under the condition, at right angles without it: with a half share the cosine is 0.5.
    texts = ["0 0", "0 90"]
    half = find_duplicates(texts, Overall(), "first", at_least=0.6, overall=0.5)
    assert half.kept_row.tolist() == [0, 1]
    assert find_duplicates(texts, Overall(), "first", at_least=0.4, overall=0.5).kept.sum() == 1
    # 0.3 by default.
    assert find_duplicates(texts, Overall(), "first", at_least=0.71).kept.all()
    assert find_duplicates(texts, Overall(), "first", at_least=0.69).kept.sum() == 1


def test_find_duplicates_further_conditions_read_only_what_may_be_a_duplicate():
    scorer = AngleScorer()
    texts = ["0 0", "50 0", "5 90", "0 0"]
    find_duplicates(texts, scorer, ["first", "second"], at_least=0.9, overall=0)
    assert len(scorer.read) == 3 + 2


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_find_duplicates_to_keeps_that_many_rows_and_encodes_once(number):
    scorer = AngleScorer()
    groups = find_duplicates(["0 0", "40 0", "20 0", "12 0"], scorer, "first", to=number, overall=0)
    assert groups.kept.sum() == number
    assert len(scorer.read) == 4


def test_find_duplicates_review_pairs_are_kept_rows_between_two_thresholds():
    low = float(np.cos(np.radians(16)))
    groups = duplicates(["0 0", "15 0", "90 0", "1 0"], review_from=low)
    (pair,) = groups.review
    assert pair[:2] == (1, 0)
    assert pair.score == pytest.approx(np.cos(np.radians(15)))


@pytest.mark.parametrize(
    ("keep", "kept"), [("first", 0), ("longest", 1), ([3.0, 1.0, 7.0], 2), ([-np.inf, 2, 2], 1)]
)
def test_find_duplicates_keep_rule_chooses_the_row(keep, kept):
    assert set(duplicates(["0 0", "0 0 long", "1 0"], keep=keep).kept_row) == {kept}


def test_find_duplicates_threshold_is_that_of_the_score():
    scorer = AngleScorer(Calibration((-1.0, 0.5, 1.0), (0.0, 0.2, 0.98)))
    texts = ["0 0", "30 0"]
    score = scorer.score("0 0", "30 0", "first")
    assert not find_duplicates(texts, scorer, "first", at_least=score - 1e-6, overall=0).kept[1]
    assert find_duplicates(texts, scorer, "first", at_least=score + 1e-6, overall=0).kept[1]
    with pytest.raises(InputError, match=r"gives 0.9800 at most"):
        find_duplicates(texts, scorer, "first", at_least=0.99)


@pytest.mark.parametrize("exact", [10_000, 100])
@pytest.mark.parametrize("chain", [False, True])
def test_group_positions_with_and_without_cells_are_those_of_all_pairs(
    tmp_path, monkeypatch, exact, chain
):
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    monkeypatch.setattr(vectors_module, "EXACT_UP_TO", exact)
    monkeypatch.setattr(vectors_module, "TEXTS_PER_STEP", 64)
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(300, 24))
    vectors = np.repeat(centers, 4, axis=0) + 0.15 * rng.normal(size=(1200, 24))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f4")
    vectors.tofile(tmp_path / "vectors")
    rows = np.arange(1200, dtype=np.int32)
    file = VectorFile(tmp_path / "vectors", 24)
    space = VectorSpace(file, rows, np.float32(0.97))
    unread = np.zeros(1200, np.int64)
    group, near = vectors_module.group_positions(
        [space], unread=unread, chain=chain, all_pairs=True, progress=silent
    )
    close = vectors @ vectors.T >= 0.97
    np.testing.assert_array_equal(near, close.sum(axis=1) > 1)
    if chain:
        labels = csgraph.connected_components(close, directed=False)[1]
        expected = np.unique(labels, return_index=True)[1][labels]
        np.testing.assert_array_equal(group, expected)
    else:
        assert close[rows, group].all()
        leaders = np.unique(group)
        assert (close[np.ix_(leaders, leaders)].sum(axis=1) == 1).all()
    assert 300 < len(np.unique(group)) < 1100


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {}, "no texts"),
        (["0 0", " "], {}, "Text 2 must be a str with text"),
        (iter(["0 0"]), {}, "one text or an iterator"),
        ("0 0", {}, "one text or an iterator"),
        (["0 0"], {"at_least": 70}, "from 0 to 1"),
        (["0 0"], {"at_least": None}, "rows to keep, 'to'"),
        (["0 0"], {"at_least": [0.5, 0.6]}, "conditions: 1, scores: 2"),
        (["0 0"], {"condition": ["first", "first"]}, "each condition once"),
        (["0 0"], {"to": 2, "at_least": None}, "at most 1, the number of distinct texts"),
        (["0 0"], {"to": 1}, "without 'at_least'"),
        (["0 0"], {"to": 1.5, "at_least": None}, "a whole number; got 1.5"),
        (["0 0"], {"keep": "last"}, "'first', 'longest' or a number"),
        (["0 0"], {"keep": [1.0, 2.0]}, "a number for each of the 1 texts"),
        (["0 0"], {"keep": ["2026-01-01"]}, "a number for each of the 1 texts"),
        (["0 0"], {"folder": Path("missing")}, r"Up to 1 MiB are needed there"),
    ],
)
def test_find_duplicates_bad_input_is_refused(texts, options, message):
    with pytest.raises(InputError, match=message):
        duplicates(texts, **options)


def test_find_duplicates_texts_that_change_are_refused():
    class Changing:
        times = 0

        def __iter__(self):
            self.times += 1
            return iter(["0 0", "9 0"] if self.times < 3 else ["0 0"])

    with pytest.raises(InputError, match="changed while they were read"):
        duplicates(Changing())


def test_find_duplicates_scorer_without_embeddings_is_refused():
    class Plain:
        name = "plain"

    with pytest.raises(ModelError):
        find_duplicates(["a"], Plain(), "first", at_least=0.9)


@pytest.mark.parametrize("settings", [{"chain": True}, {"overall": 0.5}, {}])
def test_find_duplicates_texts_that_cannot_be_read_are_duplicates_of_the_same_only(settings):
    texts = ["Great 👍", "Great 👎", "你好", "再见", "Great 👍", "A fine day.", "A fine day"]
    texts += ["The staff of the hotel was kind 😍", "The staff of the hotel was kind 😡"]
    with pytest.warns(ScoredWarning, match="4 texts") as caught:
        result = find_duplicates(texts, condsim.load(), "the topic", at_least=0.5, **settings)
    assert result.kept_row.tolist() == [0, 1, 2, 3, 0, 5, 5, 7, 8]
    assert len(caught) == 1


def test_find_duplicates_fewer_rows_than_unread_texts_keeps_the_number():
    texts = ["Great 👍", "Great 👎", "你好", "再见", "A fine day."]
    with pytest.warns(ScoredWarning):
        result = find_duplicates(texts, condsim.load(), "the topic", to=2)
    assert result.kept.sum() == 2


def test_find_duplicates_to_a_number_trains_the_index_once(monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(vectors_module, "EXACT_UP_TO", 8)
    made = []
    create = module.find_neighbors
    monkeypatch.setattr(module, "find_neighbors", lambda space: made.append(1) or create(space))
    texts = [f"{5 * number} 0" for number in range(12)]
    groups = duplicates(texts, at_least=None, to=4)
    assert groups.kept.sum() == 4
    assert len(made) == 1


@pytest.mark.parametrize("argument", ["at_least", "and_overall", "review_from"])
@pytest.mark.parametrize("value", [0.999, 1.5])
def test_find_duplicates_threshold_out_of_reach_names_its_argument(argument, value):
    scorer = AngleScorer(Calibration((-1.0, 1.0), (0.0, 0.95)))
    options = {"at_least": 0.5} | {argument: value}
    with pytest.raises(InputError, match=argument):
        find_duplicates(["0 0", "10 0"], scorer, "first", **options)
