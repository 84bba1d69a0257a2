from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from condsim.data.rewordings import load_rewordings
from condsim.errors import InputError, ModelError
from condsim.model import onnx as module
from condsim.model.calibration import UNCALIBRATED
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.types import Scorer

SENTENCES1 = ["a man kicks a ball", "a dog runs on the street", "two birds", "a man kicks a ball"]
SENTENCES2 = ["a girl throws a ball", "a cat sits", "a child eats at a big table with people", "a"]
CONDITIONS = ["the sport", "the animal", "the number of people", "the sport"]
ROWS = (SENTENCES1, SENTENCES2, CONDITIONS)


@pytest.fixture(scope="module")
def tiny(exported):
    return OnnxScorer(exported, threads=1)


@pytest.fixture(scope="module")
def default():
    return OnnxScorer(DEFAULT_FOLDER, threads=2)


@pytest.fixture(scope="module")
def reference(trained):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(trained), device="cpu")


@pytest.fixture
def batch_sizes(monkeypatch):
    """Number of texts of each run of an ONNX model."""
    sizes = []
    run = OnnxScorer._run
    monkeypatch.setattr(
        OnnxScorer, "_run", lambda self, batch: sizes.append(len(batch)) or run(self, batch)
    )
    return sizes


def test_score_equals_sentence_transformers(tiny, reference):
    pairs = [
        [list(pair) for pair in zip(CONDITIONS, column, strict=True)]
        for column in (SENTENCES1, SENTENCES2)
    ]
    first, second = (reference.encode(texts, normalize_embeddings=True) for texts in pairs)
    expected = (first * second).sum(axis=1)
    np.testing.assert_allclose(tiny.score(*ROWS, scale="raw"), expected, atol=1e-5)
    plain = reference.encode(SENTENCES1, normalize_embeddings=True)
    np.testing.assert_allclose(tiny.encode(SENTENCES1), plain, atol=1e-5)


def test_score_single_texts_give_a_float(tiny):
    score = tiny.score(SENTENCES1[0], SENTENCES2[0], CONDITIONS[0])
    assert type(score) is float
    assert score == pytest.approx(tiny.score(*ROWS)[0], abs=1e-6)
    assert isinstance(tiny, Scorer)
    assert tiny.name == "tiny"


def test_score_single_texts_stand_for_every_row(tiny):
    scores = tiny.score(SENTENCES1, SENTENCES2, "the sport")
    assert (scores.shape, scores.dtype) == ((4,), np.float32)
    expected = tiny.score(SENTENCES1, SENTENCES2, ["the sport"] * 4)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert tiny.score([], [], []).shape == (0,)
    assert tiny.encode([], []).shape == (0, 32)
    scores = tiny.score("a dog", SENTENCES2, CONDITIONS)
    assert scores[1] == pytest.approx(tiny.score("a dog", "a cat sits", "the animal"), abs=1e-6)


def test_score_scales_by_the_calibration(tiny):
    raw, unit = tiny.score(*ROWS, scale="raw"), tiny.score(*ROWS)
    np.testing.assert_allclose(unit, np.interp(raw, [-1, 0.5, 1], [0, 0.2, 1]), atol=1e-6)
    np.testing.assert_allclose(tiny.score(*ROWS, scale="likert"), 1 + 4 * unit, atol=1e-6)


def test_score_bare_order_ignores_marks_at_the_end_of_a_condition(tiny, exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "bare")
    replace(tiny.settings, order="bare-condition-first").save(folder)
    bare = OnnxScorer(folder, threads=1)
    marked = [f"{condition}?" for condition in CONDITIONS]
    expected = tiny.score(*ROWS)
    np.testing.assert_array_equal(bare.score(SENTENCES1, SENTENCES2, marked), expected)
    assert not np.array_equal(tiny.score(SENTENCES1, SENTENCES2, marked), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_score_blocks_and_small_batches_give_the_same(exported, tiny, monkeypatch, threads):
    scores, vectors = tiny.score(*ROWS), tiny.encode(SENTENCES1, CONDITIONS)
    monkeypatch.setattr("condsim.model.inputs.ROWS_PER_BLOCK", 3)
    monkeypatch.setattr(module, "MAX_BATCH_TOKENS", 8)
    scorer = OnnxScorer(exported, threads=threads)
    np.testing.assert_allclose(scorer.score(*ROWS), scores, atol=1e-6)
    np.testing.assert_allclose(scorer.encode(SENTENCES1, CONDITIONS), vectors, atol=1e-6)


def test_encode_vectors_have_length_one_and_their_product_is_the_raw_score(tiny):
    vector = tiny.encode("a dog", "the animal")
    assert (vector.shape, vector.dtype) == ((32,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    raw = tiny.score("a dog", "a cat", "the animal", scale="raw")
    assert vector @ tiny.encode("a cat", "the animal") == pytest.approx(raw, abs=1e-6)


def test_score_bad_input_refused(tiny, exported):
    with pytest.raises(InputError, match="at index 1"):
        tiny.score(["a", ""], ["b", "c"], "x")
    with pytest.raises(InputError, match="Unknown scale"):
        tiny.score("a", "b", "c", scale="percent")
    with pytest.raises(InputError, match="'threads'"):
        OnnxScorer(exported, threads=0)
    with pytest.raises(InputError, match="'overall' must be a share"):
        tiny.score("a", "b", "c", overall=30)


def test_set_cache_size_cached_vectors_are_not_encoded_again(exported, batch_sizes):
    scorer = OnnxScorer(exported, threads=1)
    plain = scorer.score(["a dog", "a cat"], ["a man", "a man"], "the animal")
    scorer.set_cache_size(3)
    scorer.score(["a dog", "a cat"], ["a man", "a man"], "the animal")
    # The boat takes the place of the cat, which is then encoded again.
    scorer.score(["a cat", "a boat"], ["a man", "a man"], "the animal")
    again = scorer.score(["a dog", "a cat"], ["a man", "a man"], "the animal")
    np.testing.assert_allclose(again, plain, atol=1e-6)
    assert batch_sizes == [3, 3, 1, 1]
    scorer.set_cache_size(0)
    scorer.score("a dog", "a cat", "the animal")
    assert batch_sizes[4:] == [2]
    with pytest.raises(InputError, match="0 or more"):
        scorer.set_cache_size(-1)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, "pickle"])
def test_copied_scorer_gives_the_same_scores(exported, duplicate):
    scorer = OnnxScorer(exported, threads=1)
    scorer.calibration = UNCALIBRATED
    scorer.set_cache_size(5)
    if duplicate == "pickle":
        again = pickle.loads(pickle.dumps(scorer))
    else:
        again = duplicate(scorer)
    assert again is not scorer
    assert again._session is not scorer._session
    np.testing.assert_array_equal(again.score(*ROWS), scorer.score(*ROWS))
    assert (again.calibration, again._cache.size, again._threads) == (UNCALIBRATED, 5, 1)


def test_pickled_default_model_names_no_folder(default):
    content = pickle.dumps(default)
    assert str(DEFAULT_FOLDER).encode() not in content
    assert len(content) < 100_000
    assert pickle.loads(content).score("a", "b", "c") == default.score("a", "b", "c")


def test_pickled_model_without_its_folder_refused(exported, tmp_path):
    content = pickle.dumps(OnnxScorer(shutil.copytree(exported, tmp_path / "model")))
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(ModelError, match="missing"):
        pickle.loads(content)


def test_scorer_in_spawned_processes_gives_the_same_scores(default):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        scores = list(pool.map(default.score, *ROWS))
    expected = [default.score(*row) for row in zip(*ROWS, strict=True)]
    np.testing.assert_array_equal(scores, expected)


def test_scorer_in_joblib_gives_the_same_scores(default):
    joblib = pytest.importorskip("joblib")
    jobs = (joblib.delayed(default.score)(*row) for row in zip(*ROWS, strict=True))
    scores = joblib.Parallel(n_jobs=2, backend="loky")(jobs)
    expected = [default.score(*row) for row in zip(*ROWS, strict=True)]
    np.testing.assert_array_equal(scores, expected)


def test_default_score_does_not_depend_on_the_batch(default):
    together = default.score(*ROWS, scale="raw")
    alone = [default.score(*row, scale="raw") for row in zip(*ROWS, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-3)


def test_default_dimension_size_and_range(default):
    assert default.encode("a dog", "the animal").shape == (384,)
    assert sum(file.stat().st_size for file in DEFAULT_FOLDER.iterdir()) <= 30_000_000
    scores = default.score(*ROWS)
    assert ((scores >= 0) & (scores <= 1)).all()
    same = default.score("A dog runs.", "A dog runs.", "the animal")
    assert same > default.score("A dog runs.", "A parrot sits in a cage.", "the animal")


def test_default_ignores_marks_at_the_end_of_a_condition(default):
    row = SENTENCES1[0], SENTENCES2[0]
    for method in (default.score, default.applicability):
        assert method(*row, "the sport.") == method(*row, "the sport?") == method(*row, "the sport")


@pytest.mark.parametrize(("scale", "tokens"), [("raw", 512), ("unit", 64), ("likert", 512)])
def test_default_score_is_symmetric_to_the_last_bit(default, monkeypatch, scale, tokens):
    monkeypatch.setattr(module, "MAX_BATCH_TOKENS", tokens)
    # Texts of many lengths.
    rows = load_rewordings()
    first, second, conditions = rows.sentences1[::3], rows.sentences2[::3], rows.conditions[::3]
    scores = default.score(first, second, conditions, scale=scale)
    swapped = default.score(second, first, conditions, scale=scale)
    np.testing.assert_array_equal(scores, swapped)
    assert len(np.unique(scores)) > 50
    pairs = enumerate(zip(first, second, strict=True))
    mixed = [pair if row % 2 else pair[::-1] for row, pair in pairs]
    swapped = default.score(*map(list, zip(*mixed, strict=True)), conditions, scale=scale)
    np.testing.assert_array_equal(scores, swapped)


def test_score_overall_is_the_product_of_the_joined_embeddings(exported):
    model = OnnxScorer(exported)
    texts = ["a man kicks a ball", "a dog runs"]
    vectors = model.encode(texts, "the sport", overall=0.3)
    assert vectors.shape == (2, 2 * model.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    score = model.score(*texts, "the sport", overall=0.3, scale="raw")
    assert score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    parts = [model.score(*texts, condition, scale="raw") for condition in ("the sport", None)]
    assert score == pytest.approx(0.7 * parts[0] + 0.3 * parts[1], abs=1e-5)


def test_model_with_another_number_of_rows_is_an_error_in_one_line(exported, monkeypatch):
    scorer = OnnxScorer(exported, threads=1)
    session = scorer._session

    class Damaged:
        def run(self, names, feed):
            return [session.run(names, feed)[0][:1]]

    monkeypatch.setattr(scorer, "_session", Damaged())
    with pytest.raises(ModelError, match=r"must give 2 texts embeddings of the shape"):
        scorer.encode(["A dog.", "A cat."], "the animal")
