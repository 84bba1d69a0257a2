"""Scoring with the coherence model."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from condsim.contexts.coherence.model import CoherenceScorer
from condsim.contexts.coherence.training import train_coherence
from condsim.contexts.corpus.vocabulary import learn_vocabulary
from condsim.contexts.settings import CoherenceSettings
from condsim.errors import InputError, ModelError

SIZES = {"embedding": 16, "hidden": 16, "head_size": 16, "batch_sentences": 60, "run_sentences": 20}


@pytest.fixture(scope="module")
def folders(small_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("coherence")
    vocabulary = learn_vocabulary(small_corpus, folder / "vocabulary", size=400)
    for head in ("linear", "mlp"):
        settings = CoherenceSettings(
            head=head, **SIZES, max_steps=20, learning_rate=1e-2, precision="float32"
        )
        train_coherence(small_corpus, vocabulary, folder / head, settings)
    return folder


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_log_probability_equals_the_plain_forward(folders, small_corpus, head):
    scorer = CoherenceScorer.open(folders / head, small_corpus)
    sentences = ["The baker sells warm bread.", "Coal is dug by lamp light."]
    centres = np.array([0, 1, 14, 15, 150, 298, 299])
    found = scorer.log_probability(scorer.encode(sentences), centres)
    assert found.shape == (2, 7)
    assert (found <= 0).all()
    model = scorer._model
    around = small_corpus.neighbours(centres)
    for row, near in enumerate(around):
        texts = small_corpus.sentences(near[near >= 0])
        known = iter(scorer.encode(texts))
        vectors = [torch.from_numpy(next(known)) if i >= 0 else model.missing for i in near]
        for column, sentence in enumerate(scorer.encode(sentences)):
            joined = torch.cat([*vectors[:2], torch.from_numpy(sentence), *vectors[2:]])
            total = joined @ model.project.flatten(0, 1) + model.bias
            logit = total[0] if head == "linear" else model.output(torch.relu(total))[0]
            wanted = torch.nn.functional.logsigmoid(logit).item()
            assert found[column, row] == pytest.approx(wanted, abs=5e-3)  # vectors are float16


def test_log_probability_linear_head_orders_contexts_alike(folders, small_corpus):
    scorer = CoherenceScorer.open(folders / "linear", small_corpus)
    vectors = scorer.encode(["The baker sells bread.", "A storm took the ship."])
    scores = scorer.log_probability(vectors, np.arange(300)).astype(np.float64)
    one, other = scores
    later = one[:, None] > one + 1e-4
    assert not (later & (other[:, None] < other - 1e-4)).any()


def test_open_keeps_vectors_of_the_corpus(folders, small_corpus, monkeypatch):
    scorer = CoherenceScorer.open(folders / "mlp", small_corpus)
    texts = small_corpus.sentences(np.array([7, 200]))
    vectors = np.load(folders / "mlp" / "vectors.npy")
    np.testing.assert_allclose(vectors[[7, 200]], scorer.encode(texts), atol=2e-3)
    scores = scorer.log_probability(vectors[:5], np.arange(300))
    monkeypatch.setattr(type(small_corpus), "sentences", None)  # nothing is computed again
    again = CoherenceScorer.open(folders / "mlp", small_corpus)
    np.testing.assert_array_equal(again.log_probability(vectors[:5], np.arange(300)), scores)


def test_open_other_corpus_is_an_error(folders, small_corpus):
    class Other:
        revision = "other"

    with pytest.raises(InputError, match="was trained on corpus"):
        CoherenceScorer.open(folders / "mlp", Other())


def test_open_unfinished_model_is_an_error(tmp_path, small_corpus):
    with pytest.raises(ModelError, match="holds no model"):
        CoherenceScorer.open(tmp_path, small_corpus)
    (tmp_path / "settings.json").write_text(json.dumps({"kind": "coherence"}), encoding="utf-8")
    with pytest.raises(ModelError, match="no finished coherence model"):
        CoherenceScorer.open(tmp_path, small_corpus)


def test_open_damaged_weights_is_an_error(folders, small_corpus, tmp_path):
    import shutil

    shutil.copytree(folders / "mlp", tmp_path / "copy")
    path = tmp_path / "copy" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="Cannot read the weights"):
        CoherenceScorer.open(tmp_path / "copy", small_corpus)
