from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from condsim.errors import InputError, ModelError
from condsim.model import embedding as embedding_module, onnx as module
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER, Settings
from condsim.types import Scorer

SENTENCES1 = ["a man kicks a ball", "a dog runs on the street", "two birds", "a man kicks a ball"]
SENTENCES2 = ["a girl throws a ball", "a cat sits", "a child eats at a big table with people", "a"]
CONDITIONS = ["the sport", "the animal", "the number of people", "the sport"]


@pytest.fixture(scope="module")
def tiny(exported):
    return OnnxScorer(exported, threads=1)


@pytest.fixture(scope="module")
def bundled():
    return OnnxScorer(DEFAULT_FOLDER, threads=1)


@pytest.fixture(scope="module")
def reference(trained):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(trained), device="cpu")


def test_score_equals_sentence_transformers(tiny, reference):
    pairs = [
        [list(pair) for pair in zip(CONDITIONS, column, strict=True)]
        for column in (SENTENCES1, SENTENCES2)
    ]
    first, second = (reference.encode(texts, normalize_embeddings=True) for texts in pairs)
    expected = (first * second).sum(axis=1)
    found = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS, scale="raw")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_encode_equals_sentence_transformers_also_without_condition(tiny, reference):
    expected = reference.encode(SENTENCES1, normalize_embeddings=True)
    np.testing.assert_allclose(tiny.encode(SENTENCES1), expected, atol=1e-5)


def test_score_is_a_scorer(tiny):
    assert isinstance(tiny, Scorer)
    assert tiny.name == "tiny"


def test_score_three_texts_give_a_float(tiny):
    score = tiny.score(SENTENCES1[0], SENTENCES2[0], CONDITIONS[0])
    assert type(score) is float
    assert score == pytest.approx(tiny.score(SENTENCES1, SENTENCES2, CONDITIONS)[0], abs=1e-6)


def test_score_one_condition_stands_for_every_row(tiny):
    alike = tiny.score(SENTENCES1, SENTENCES2, "the sport")
    assert alike.shape == (4,)
    assert alike.dtype == np.float32
    np.testing.assert_allclose(
        alike, tiny.score(SENTENCES1, SENTENCES2, ["the sport"] * 4), atol=1e-6
    )


def test_score_one_sentence_against_many(tiny):
    scores = tiny.score("a dog", SENTENCES2, CONDITIONS)
    assert scores.shape == (4,)
    assert scores[1] == pytest.approx(tiny.score("a dog", "a cat sits", "the animal"), abs=1e-6)


def test_score_scales_by_the_calibration(tiny):
    raw = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS, scale="raw")
    unit = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS)
    np.testing.assert_allclose(unit, np.interp(raw, [-1, 0.5, 1], [0, 0.2, 1]), atol=1e-6)
    likert = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS, scale="likert")
    np.testing.assert_allclose(likert, 1 + 4 * unit, atol=1e-6)


def test_score_with_a_bare_order_heeds_no_mark_at_the_end_of_a_condition(tiny, exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "bare")
    replace(tiny.settings, order="bare-condition-first").save(folder)
    bare = OnnxScorer(folder, threads=1)
    asked = [f"{condition}?" for condition in CONDITIONS]
    expected = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS)
    np.testing.assert_array_equal(bare.score(SENTENCES1, SENTENCES2, asked), expected)
    assert not np.array_equal(tiny.score(SENTENCES1, SENTENCES2, asked), expected)


def test_bundled_model_heeds_no_mark_at_the_end_of_a_condition(bundled):
    row = SENTENCES1[0], SENTENCES2[0]
    for ask in (bundled.score, bundled.applicability):
        assert ask(*row, "the sport.") == ask(*row, "the sport?") == ask(*row, "the sport")


def test_score_equal_sentences_highest(tiny):
    assert tiny.score("a dog", "a dog", "the animal") == pytest.approx(1, abs=1e-5)


def test_score_no_rows_gives_no_scores(tiny):
    assert tiny.score([], [], []).shape == (0,)
    assert tiny.encode([], []).shape == (0, 32)


def test_score_in_parts_and_small_batches_same_order(tiny, monkeypatch):
    expected = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS)
    vectors = tiny.encode(SENTENCES1, CONDITIONS)
    monkeypatch.setattr(embedding_module, "_ROWS", 3)
    monkeypatch.setattr(module, "_TOKENS", 16)
    np.testing.assert_allclose(tiny.score(SENTENCES1, SENTENCES2, CONDITIONS), expected, atol=1e-6)
    np.testing.assert_allclose(tiny.encode(SENTENCES1, CONDITIONS), vectors, atol=1e-6)


def test_score_batches_side_by_side_same_scores(exported, tiny, monkeypatch):
    expected = tiny.score(SENTENCES1, SENTENCES2, CONDITIONS)
    monkeypatch.setattr(module, "_TOKENS", 8)
    scorer = OnnxScorer(exported, threads=3)
    np.testing.assert_allclose(
        scorer.score(SENTENCES1, SENTENCES2, CONDITIONS), expected, atol=1e-6
    )


def test_encode_each_distinct_text_once(tiny, monkeypatch):
    runs = []
    run = OnnxScorer._run
    monkeypatch.setattr(
        OnnxScorer, "_run", lambda self, batch: runs.append(len(batch)) or run(self, batch)
    )
    tiny.score(["a dog"] * 5 + ["a cat"], ["a cat"] * 5 + ["a dog"], "the animal")
    assert sum(runs) == 2


def test_encode_single_text_gives_one_vector_of_length_one(tiny):
    vector = tiny.encode("a dog", "the animal")
    assert vector.shape == (32,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_encode_dot_product_is_the_raw_score(tiny):
    first, second = tiny.encode(["a dog", "a cat"], "the animal")
    assert first @ second == pytest.approx(
        tiny.score("a dog", "a cat", "the animal", scale="raw"), abs=1e-6
    )


def test_score_bad_input_refused_with_place(tiny):
    with pytest.raises(InputError, match="at index 1"):
        tiny.score(["a", ""], ["b", "c"], "x")
    with pytest.raises(InputError, match="as many texts of each kind"):
        tiny.score(["a", "b"], ["b"], "x")
    with pytest.raises(InputError, match="Unknown scale"):
        tiny.score("a", "b", "c", scale="percent")


def test_scorer_threads_below_one_refused(exported):
    with pytest.raises(InputError, match=r"'threads' must be 1 or more. Got 0"):
        OnnxScorer(exported, threads=0)


@pytest.mark.parametrize("name", [module.MODEL_FILE, module.TOKENIZER_FILE, "condsim.json"])
def test_scorer_missing_file_refused(exported, tmp_path, name):
    folder = shutil.copytree(exported, tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(ModelError, match=rf"{name} is missing"):
        OnnxScorer(folder)


@pytest.mark.parametrize("name", [module.MODEL_FILE, module.TOKENIZER_FILE])
@pytest.mark.parametrize("kept", [0, 1000])
def test_scorer_damaged_file_refused(exported, tmp_path, name, kept):
    folder = shutil.copytree(exported, tmp_path / "model")
    (folder / name).write_bytes((folder / name).read_bytes()[:kept])
    with pytest.raises(ModelError, match=rf"{name} cannot be (read|loaded) .*get the model anew"):
        OnnxScorer(folder)


def test_scorer_other_kind_refused(exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "model")
    Settings(kind="cross-encoder", name="x", order="sentence-first").save(folder)
    with pytest.raises(ModelError, match="must be a bi-encoder"):
        OnnxScorer(folder)


def test_bundled_score_does_not_depend_on_the_batch(bundled):
    together = bundled.score(SENTENCES1, SENTENCES2, CONDITIONS, scale="raw")
    alone = [
        bundled.score(*row, scale="raw")
        for row in zip(SENTENCES1, SENTENCES2, CONDITIONS, strict=True)
    ]
    np.testing.assert_allclose(together, alone, atol=1e-3)


def test_bundled_dimension_size_and_range(bundled):
    assert bundled.encode("a dog", "the animal").shape == (384,)
    size = sum(file.stat().st_size for file in DEFAULT_FOLDER.iterdir())
    assert size <= 30_000_000
    scores = bundled.score(SENTENCES1, SENTENCES2, CONDITIONS)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_bundled_same_sentence_scores_above_another(bundled):
    same = bundled.score("A dog runs.", "A dog runs.", "the animal")
    other = bundled.score("A dog runs.", "A parrot sits in a cage.", "the animal")
    assert same > other


def test_score_embeddings_that_are_not_finite_refused(monkeypatch):
    model = OnnxScorer(DEFAULT_FOLDER)
    embed = model._embed
    monkeypatch.setattr(model, "_embed", lambda texts: embed(texts) * np.float32("nan"))
    for call in (model.score, lambda *texts: model.encode(texts[0], texts[2])):
        with pytest.raises(ModelError, match="not finite numbers; the model is damaged"):
            call("a", "b", "c")


def test_load_dimension_of_another_model_refused(tmp_path):
    shutil.copytree(DEFAULT_FOLDER, tmp_path / "model")
    settings = tmp_path / "model" / "condsim.json"
    settings.write_text(settings.read_text().replace('"dimension": 384', '"dimension": 385'))
    with pytest.raises(ModelError, match=r"'dimension' is 385; that of its model\.onnx is 384"):
        OnnxScorer(tmp_path / "model")


def test_kept_vectors_are_not_encoded_again(exported, monkeypatch):
    runs = []
    run = OnnxScorer._run
    monkeypatch.setattr(
        OnnxScorer, "_run", lambda self, batch: runs.append(len(batch)) or run(self, batch)
    )
    scorer = OnnxScorer(exported, threads=1)
    plain = scorer.score(["a dog", "a cat"], ["a man", "a man"], "the animal")
    scorer.keep_vectors(3)
    scorer.score(["a dog", "a cat"], ["a man", "a man"], "the animal")
    scorer.score(["a cat", "a boat"], ["a man", "a man"], "the animal")  # the cat makes room
    again = scorer.score(["a dog", "a cat"], ["a man", "a man"], "the animal")
    np.testing.assert_allclose(again, plain, atol=1e-6)
    assert runs == [3, 3, 1, 1]  # the dog and the man were kept
    scorer.keep_vectors(0)
    scorer.score("a dog", "a cat", "the animal")
    assert runs[4:] == [2]
    with pytest.raises(InputError, match="0 or more"):
        scorer.keep_vectors(-1)
