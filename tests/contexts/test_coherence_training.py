"""Training the coherence model, and going on after a kill."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condsim.contexts.coherence.training import train_coherence
from condsim.contexts.corpus.stored import document_starts, held_out_documents
from condsim.contexts.corpus.vocabulary import learn_vocabulary
from condsim.contexts.settings import CoherenceSettings
from condsim.errors import InputError, ModelError

SETTINGS = CoherenceSettings(
    embedding=16,
    hidden=16,
    head_size=16,
    batch_sentences=60,
    run_sentences=20,
    dropout=0.1,
    epochs=30,
    max_steps=12,
    evaluations=3,
    held_out=0.2,
    learning_rate=5e-3,
    precision="float32",
)


class KilledError(Exception):
    """Stands in for kill -9."""


@pytest.fixture(scope="module")
def vocabulary(small_corpus, tmp_path_factory):
    return learn_vocabulary(small_corpus, tmp_path_factory.mktemp("vocabulary"), size=400)


def test_train_coherence_learns_and_reports_held_out_accuracy(small_corpus, vocabulary, tmp_path):
    settings = CoherenceSettings(**{**SETTINGS.model_dump(), "max_steps": 90, "evaluations": 6})
    report = train_coherence(small_corpus, vocabulary, tmp_path / "model", settings)
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
    assert train_coherence(small_corpus, vocabulary, tmp_path / "model", settings) == report


@pytest.mark.usefixtures("one_thread")
def test_train_coherence_killed_and_continued_ends_with_the_same_weights(
    small_corpus, vocabulary, tmp_path, monkeypatch
):
    from safetensors.torch import load_file

    whole = train_coherence(small_corpus, vocabulary, tmp_path / "whole", SETTINGS)

    def kill(step, steps):
        if step == 7:
            raise KilledError

    with pytest.raises(KilledError):
        train_coherence(small_corpus, vocabulary, tmp_path / "killed", SETTINGS, progress=kill)
    assert (tmp_path / "killed" / "checkpoint.safetensors").is_file()
    steps = []
    again = train_coherence(
        small_corpus,
        vocabulary,
        tmp_path / "killed",
        SETTINGS,
        progress=lambda step, total: steps.append((step, total)),
    )
    assert steps == [(step, 12) for step in range(5, 13)]  # evaluated, and saved, at step 4
    assert again.evaluations == whole.evaluations
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    for name in one:
        assert torch.equal(one[name], other[name]), name


def test_train_coherence_other_settings_in_the_folder_is_an_error(
    small_corpus, vocabulary, tmp_path
):
    settings = {**SETTINGS.model_dump(), "max_steps": 1}
    train_coherence(small_corpus, vocabulary, tmp_path, CoherenceSettings(**settings))
    with pytest.raises(InputError, match="another seed"):
        train_coherence(
            small_corpus, vocabulary, tmp_path, CoherenceSettings(**settings | {"seed": 1})
        )


def test_train_coherence_folder_with_other_files_is_an_error(small_corpus, vocabulary, tmp_path):
    (tmp_path / "letter.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="not empty"):
        train_coherence(small_corpus, vocabulary, tmp_path, SETTINGS)


def test_train_coherence_too_high_learning_rate_is_an_error(small_corpus, vocabulary, tmp_path):
    settings = CoherenceSettings(**{**SETTINGS.model_dump(), "learning_rate": 1e300})
    with pytest.raises(ModelError, match="lower learning_rate"):
        train_coherence(small_corpus, vocabulary, tmp_path / "model", settings)


def test_held_out_documents_draws_a_share_of_those_with_a_context():
    starts = np.array([0, 1, 5, 6, 10, 14, 20])
    held_out = held_out_documents(starts, share=0.5, seed=0)
    assert held_out.sum() == 2
    assert not held_out[[0, 2]].any()
    np.testing.assert_array_equal(held_out, held_out_documents(starts, share=0.5, seed=0))


def test_held_out_documents_one_document_is_an_error():
    with pytest.raises(InputError, match="at least two documents"):
        held_out_documents(np.array([0, 5, 6]), share=0.5, seed=0)


def test_document_starts_empty_corpus_is_an_error():
    with pytest.raises(InputError, match="no sentence"):
        document_starts([])
