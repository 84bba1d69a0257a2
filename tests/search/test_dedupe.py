from __future__ import annotations

import numpy as np
import pytest

from condsim.console import silent
from condsim.errors import InputError, ModelError
from condsim.model.calibration import Calibration
from condsim.model.embedding import EmbeddingScorer
from condsim.search.dedupe import find_duplicates

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


NEAR = float(np.cos(np.radians(10.5)))


def found(texts, at_least=NEAR, **options):
    return find_duplicates(texts, AngleScorer(), "first", at_least=at_least, **options)


def test_find_duplicates_joins_what_a_third_text_links():
    groups = found(["0 0", "40 0", "20 0", "10 0"])
    assert groups.kept_row.tolist() == [0, 1, 0, 0]
    assert groups.kept.tolist() == [True, True, False, False]
    assert groups.sizes.tolist() == [3, 1, 0, 0]
    np.testing.assert_allclose(groups.score, np.cos(np.radians([0, 0, 20, 10])), atol=1e-6)


def test_find_duplicates_keep_if_differs_parts_a_group():
    assert found(["0 0", "5 90", "0 5"]).sizes.tolist() == [3, 0, 0]
    groups = found(["0 0", "5 90", "0 5", "80 0"], keep_if_differs=["second"])
    assert groups.kept_row.tolist() == [0, 1, 0, 3]


def test_find_duplicates_keep_if_differs_reads_only_what_may_be_a_duplicate():
    scorer = AngleScorer()
    texts = ["0 0", "50 0", "5 90", "0 0"]
    find_duplicates(texts, scorer, "first", at_least=0.9, keep_if_differs="second")
    assert len(scorer.read) == 3 + 2


@pytest.mark.parametrize(
    ("keep", "kept"), [("first", 0), ("longest", 1), ([3.0, 1.0, 7.0], 2), ([-np.inf, 2, 2], 1)]
)
def test_find_duplicates_keep_rule_chooses_the_row(keep, kept):
    assert set(found(["0 0", "0 0 long", "1 0"], keep=keep).kept_row) == {kept}


def test_find_duplicates_keep_that_is_no_number_refused():
    with pytest.raises(InputError, match="'keep' must have a number for each text"):
        found(["0 0", "1 0"], keep=["2026-01-01", "2026-01-02"])


def test_find_duplicates_threshold_is_that_of_the_score():
    scorer = AngleScorer(Calibration((-1.0, 0.5, 1.0), (0.0, 0.2, 0.98)))
    texts = ["0 0", "30 0"]
    score = scorer.score("0 0", "30 0", "first")
    assert not find_duplicates(texts, scorer, "first", at_least=score - 1e-6).kept[1]
    assert find_duplicates(texts, scorer, "first", at_least=score + 1e-6).kept[1]
    with pytest.raises(InputError, match=r"gives 0.9800 at most"):
        find_duplicates(texts, scorer, "first", at_least=0.99)


@pytest.mark.parametrize("exact", [10_000, 100])
def test_components_are_those_of_all_pairs_with_and_without_cells(tmp_path, monkeypatch, exact):
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    monkeypatch.setattr(module, "EXACT_UP_TO", exact)
    monkeypatch.setattr(module, "_TILE", 64)
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(300, 24))
    vectors = np.repeat(centres, 4, axis=0) + 0.15 * rng.normal(size=(1200, 24))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f4")
    vectors.tofile(tmp_path / "vectors")
    stored = module.StoredVectors(tmp_path / "vectors", 24)
    roots = module.components([stored], 1200, cosine=0.97, progress=silent)
    labels = csgraph.connected_components(vectors @ vectors.T >= 0.97, directed=False)[1]
    expected = np.unique(labels, return_index=True)[1][labels]
    np.testing.assert_array_equal(roots, expected)
    assert 300 < len(np.unique(roots)) < 1100


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {}, "no texts"),
        (["0 0", " "], {}, "Text 2 must be a str with text"),
        (iter(["0 0"]), {}, "not an iterator"),
        (["0 0"], {"at_least": 70}, "from 0 to 1"),
        (["0 0"], {"keep": "last"}, "'first', 'longest' or a number"),
        (["0 0"], {"keep": [1.0, 2.0]}, "a number for each of the 1 texts"),
    ],
)
def test_find_duplicates_bad_input_is_refused(texts, options, message):
    with pytest.raises(InputError, match=message):
        found(texts, **options)


def test_find_duplicates_texts_that_change_are_refused():
    class Changing:
        times = 0

        def __iter__(self):
            self.times += 1
            return iter(["0 0", "9 0"] if self.times < 3 else ["0 0"])

    with pytest.raises(InputError, match="changed while they were read"):
        found(Changing())


def test_find_duplicates_full_disk_says_what_is_needed(tmp_path):
    with pytest.raises(InputError, match=r"Up to 1 MiB are needed there"):
        found(["0 0"], folder=tmp_path / "missing")


def test_find_duplicates_scorer_without_embeddings_is_refused():
    class Plain:
        name = "plain"

    with pytest.raises(ModelError, match="plain gives scores only"):
        find_duplicates(["a"], Plain(), "first", at_least=0.9)
