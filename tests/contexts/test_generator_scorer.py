"""Scoring with the generators."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.contexts_origin import OneByOne

from condsim.contexts.generator_scorer import GeneratorScorer
from condsim.contexts.generator_training import train_generators
from condsim.contexts.recipe import GENERATOR_TASKS, SHAPES, GeneratorSettings, Shape
from condsim.contexts.tokens import learn_vocabulary
from condsim.errors import InputError

SENTENCES = ["The baker sells warm bread.", "Coal.", "The baker sells warm bread.", ""]
CENTRES = [np.array(ids) for ids in ([0, 7, 14, 150], [7, 299, 7], [7, 60], [100])]


def scores(scorer, task, sentences, centres):
    return scorer.scores((task,), sentences, centres)[task]


KINDS = [("three", "apart"), ("three", "joint"), ("one", "apart")]


@pytest.fixture(scope="module")
def folders(small_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generators")
    vocabulary = learn_vocabulary(small_corpus, folder / "vocabulary", size=400)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SHAPES, "tiny", Shape(32, 1, 64, 2, 5e-3))
        for models, encoder in KINDS:
            settings = GeneratorSettings(
                models=models,
                encoder=encoder,
                max_steps=3,
                batch_tokens=2000,
                evaluations=1,
                held_out_examples=5,
                precision="float32",
            )
            train_generators(small_corpus, vocabulary, folder / f"{models}-{encoder}", settings)
    return folder


@pytest.fixture(autouse=True)
def in_float32(monkeypatch):
    monkeypatch.setattr("condsim.contexts.generator_scorer.uses_bfloat16", lambda _: False)


@pytest.mark.parametrize(("models", "encoder"), KINDS)
def test_scores_equal_those_one_by_one(folders, small_corpus, models, encoder, monkeypatch):
    monkeypatch.setattr("condsim.contexts.generator_scorer._VALUES_PER_SLAB", 32 * 4)
    scorer = GeneratorScorer.open(folders / f"{models}-{encoder}", small_corpus)
    parts = scorer._models, scorer._vocabulary, small_corpus, scorer._settings
    wanted = OneByOne(*parts).terms(SENTENCES, CENTRES, GENERATOR_TASKS)
    together = scorer.scores(GENERATOR_TASKS, SENTENCES, CENTRES)
    for task in GENERATOR_TASKS:
        found = scores(scorer, task, SENTENCES, CENTRES)
        assert [len(values) for values in found] == [4, 3, 2, 1]
        for mine, its, joined in zip(found, wanted, together[task], strict=True):
            np.testing.assert_allclose(mine, its[task], rtol=0, atol=1e-4)
            np.testing.assert_allclose(joined, its[task], rtol=0, atol=1e-4)


def test_scores_encode_each_sentence_and_place_once(folders, small_corpus, monkeypatch):
    scorer = GeneratorScorer.open(folders / "one-apart", small_corpus)
    encoded = _encoded(scorer, monkeypatch)
    ask = ("centre", "left", "right"), ["One.", "Two.", "One."], [[7, 8]] * 3
    scorer.scores(*ask)
    # 5, 6, 8, 9 around 7 and 6, 7, 9, 10 around 8, no place twice; and two sentences.
    assert encoded == [4 + 4 + 2]
    scorer.scores(*ask)
    assert encoded[1:] == [2]  # the sentences scored are not of the corpus
    scores(scorer, "centre", ["Three."], [np.array([8, 9])])
    assert encoded[2:] == [4]  # those around 9


def _encoded(scorer, monkeypatch):
    """Counts the units that a scorer encodes, call by call."""
    encoded = []
    model = type(scorer._models["centre"])
    encode = model._encode

    def counted(self, units, chosen):
        encoded.append(len(chosen))
        return encode(self, units, chosen)

    monkeypatch.setattr(model, "_encode", counted)
    return encoded


@pytest.mark.parametrize("encoder", ["apart", "joint"])
def test_scores_are_the_same_whatever_states_are_kept(folders, small_corpus, encoder, monkeypatch):
    monkeypatch.setattr("condsim.contexts.generator_scorer._VALUES_PER_SLAB", 32 * 4)
    found = []
    for memory_gb in (0, 32 * 4 * 50 / 1e9, 1):  # none, 50 tokens, all
        scorer = GeneratorScorer.open(
            folders / f"three-{encoder}", small_corpus, memory_gb=memory_gb
        )
        found += [scores(scorer, "centre", SENTENCES, CENTRES) for _ in range(2)]
        for store in scorer._stores.values():
            tokens = sum(map(len, store._states.values()))
            assert tokens <= {0: 0, 1: 10**6}.get(memory_gb, 50 / 3)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)


def test_scores_bfloat16_is_near_float32(folders, small_corpus, monkeypatch):
    one = GeneratorScorer.open(folders / "three-apart", small_corpus)
    monkeypatch.setattr("condsim.contexts.generator_scorer.uses_bfloat16", lambda _: True)
    other = GeneratorScorer.open(folders / "three-apart", small_corpus)
    for task in ("centre", "left", "right"):
        full, low = (scores(scorer, task, SENTENCES, CENTRES) for scorer in (one, other))
        for its, mine in zip(full, low, strict=True):
            np.testing.assert_allclose(mine, its, rtol=0, atol=0.05)


def test_open_other_corpus_is_an_error(folders):
    class Other:
        revision = "other"

    with pytest.raises(InputError, match="corpus changed"):
        GeneratorScorer.open(folders / "one-apart", Other())
