"""The coherence model: vectors, head, replacements, training and scoring."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from condsim.errors import InputError, ModelError
from condsim_contexts.coherence import (
    CoherenceModel,
    CoherenceScorer,
    Passages,
    make_batch,
    train_coherence,
)
from condsim_contexts.recipe import CoherenceSettings

TOKENS = [np.array(ids) for ids in ([5, 6, 7, 8, 9], [3], [4, 4, 2], [9, 8, 7], [2, 6], [1, 5, 3])]


def small_model(head="mlp", **settings) -> CoherenceModel:
    torch.manual_seed(0)
    sizes = {"embedding": 8, "hidden": 6, "head_size": 5}
    model = CoherenceModel(CoherenceSettings(head=head, **sizes, **settings), tokens=10, pad=0)
    torch.nn.init.normal_(model.missing)
    torch.nn.init.normal_(model.bias)
    return model.eval()


def test_encode_is_the_last_states_of_a_packed_bidirectional_lstm():
    model = small_model()
    both = torch.nn.LSTM(8, 6, batch_first=True, bidirectional=True)
    own = dict(model.forwards.named_parameters())
    own |= {f"{key}_reverse": value for key, value in model.backwards.named_parameters()}
    both.load_state_dict(own)
    vectors = model.encode(TOKENS)
    assert vectors.shape == (6, 12)
    for row, ids in enumerate(TOKENS):
        _, (last, _) = both(model.embeddings(torch.from_numpy(ids))[None])
        torch.testing.assert_close(vectors[row], torch.cat([last[0, 0], last[1, 0]]))


def test_passages_long_document_is_cut_with_neighbors_kept():
    starts = np.array([0, 10, 11, 17])
    passages = Passages.of_documents(starts, np.array([True] * 3), most=5, left=2, right=1)
    parts = (passages.first, passages.last, passages.low, passages.high)
    rows = list(map(tuple, np.stack(parts, axis=1).tolist()))
    assert rows == [(0, 5, 0, 6), (5, 10, 3, 10), (11, 14, 11, 15), (14, 17, 12, 17)]


def test_batch_replacements_are_half_of_the_document_and_never_the_center():
    starts = np.array([0, 12, 30, 34])
    passages = Passages.of_documents(starts, np.array([True] * 3), most=8, left=2, right=2)
    document = np.searchsorted(starts, np.arange(34), side="right")
    chosen = np.arange(len(passages.first))
    batch = make_batch(passages, chosen, np.random.default_rng(3), left=2, right=2)
    centers, replacements = batch.sentences[batch.centers], batch.sentences[batch.replacements]
    np.testing.assert_array_equal(np.sort(centers), np.arange(34))
    same = batch.same_document
    assert abs(same.sum() - 17) <= 2
    assert (document[centers[same]] == document[replacements[same]]).all()
    assert (batch.centers != batch.replacements).all()
    # What stands around a center is what the corpus has there.
    for center, near in zip(centers, batch.neighbors, strict=True):
        for offset, row in zip((-2, -1, 1, 2), near, strict=True):
            inside = 0 <= center + offset < 34 and document[center + offset] == document[center]
            assert (row >= 0) == inside
            assert row < 0 or batch.sentences[row] == center + offset


SIZES = {"embedding": 16, "hidden": 16, "head_size": 16, "batch_sentences": 60, "run_sentences": 20}
SETTINGS = CoherenceSettings(
    **SIZES,
    dropout=0.1,
    epochs=30,
    max_steps=12,
    evaluations=3,
    held_out=0.2,
    learning_rate=5e-3,
    precision="float32",
)


@pytest.fixture(scope="module")
def train(small_corpus, vocabulary):
    return partial(train_coherence, small_corpus, vocabulary)


def test_train_coherence_learns_and_reports_held_out_accuracy(train, tmp_path):
    settings = CoherenceSettings(**{**SETTINGS.model_dump(), "max_steps": 90, "evaluations": 6})
    report = train(tmp_path / "model", settings)
    assert report.held_out_documents == 4
    assert report.examples == 2 * 60
    assert report.accuracy > 0.6
    assert f"{100 * report.accuracy:.1f}" in report.summary()
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "model.safetensors",
        "report.json",
        "settings.json",
        "vocabulary",
    ]
    assert train(tmp_path / "model", settings) == report


def test_train_coherence_too_high_learning_rate_is_an_error(train, tmp_path):
    settings = CoherenceSettings(**{**SETTINGS.model_dump(), "learning_rate": 1e300})
    with pytest.raises(ModelError, match="lower learning_rate"):
        train(tmp_path / "model", settings)


def test_held_out_documents_are_a_share_of_those_with_a_context(numbered_corpus):
    corpus = numbered_corpus(20, chunk=5, document=5)
    corpus.documents = np.repeat(np.arange(6), [1, 4, 1, 4, 4, 6])
    assert corpus.document_starts.tolist() == [0, 1, 5, 6, 10, 14, 20]
    held_out = corpus.held_out_documents(share=0.5, seed=0)
    assert held_out.sum() == 2
    assert not held_out[[0, 2]].any()
    np.testing.assert_array_equal(held_out, corpus.held_out_documents(share=0.5, seed=0))
    with pytest.raises(InputError, match="at least two documents"):
        numbered_corpus(5, chunk=5, document=5).held_out_documents(share=0.5, seed=0)


@pytest.fixture(scope="module")
def folders(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("coherence")
    for head in ("linear", "mlp"):
        settings = CoherenceSettings(
            head=head, **SIZES, max_steps=20, learning_rate=1e-2, precision="float32"
        )
        train(folder / head, settings)
    return folder


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_log_probability_equals_the_plain_forward(folders, small_corpus, head):
    scorer = CoherenceScorer(folders / head, small_corpus)
    sentences = ["The baker sells warm bread.", "Coal is dug by lamp light."]
    centers = np.array([0, 1, 14, 15, 150, 298, 299])
    found = scorer.log_probability(scorer.encode(sentences), centers)
    assert found.shape == (2, 7)
    assert (found <= 0).all()
    model = scorer._model
    around = small_corpus.neighbors(centers)
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


def test_open_keeps_vectors_of_the_corpus(folders, small_corpus, monkeypatch):
    scorer = CoherenceScorer(folders / "mlp", small_corpus)
    vectors = scorer.encode(small_corpus.sentences(np.arange(5)))
    scores = scorer.log_probability(vectors, np.arange(300))
    monkeypatch.setattr(type(small_corpus), "sentences", None)  # nothing is computed again
    again = CoherenceScorer(folders / "mlp", small_corpus)
    np.testing.assert_array_equal(again.log_probability(vectors, np.arange(300)), scores)
