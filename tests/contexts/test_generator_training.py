"""Training the generators, and going on after a kill."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from condsim.contexts.generator_scorer import GeneratorScorer
from condsim.contexts.generator_training import GeneratorData, GeneratorWork, train_generators
from condsim.contexts.recipe import SHAPES, GeneratorSettings, Shape
from condsim.contexts.tokens import CorpusTokens, learn_vocabulary
from condsim.errors import InputError, ModelError

SETTINGS = {
    "max_steps": 4,
    "evaluations": 2,
    "held_out": 0.2,
    "held_out_examples": 30,
    "batch_tokens": 2000,
    "precision": "float32",
}


class KilledError(Exception):
    """Stands in for kill -9."""


@pytest.fixture(scope="module", autouse=True)
def smaller():
    """A tiny that takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SHAPES, "tiny", Shape(32, 1, 64, 2, 5e-3))
        yield


@pytest.fixture(scope="module")
def vocabulary(small_corpus, tmp_path_factory):
    return learn_vocabulary(small_corpus, tmp_path_factory.mktemp("vocabulary"), size=400)


def data_of(corpus, vocabulary, **settings) -> GeneratorData:
    tokens = CorpusTokens.build(corpus, vocabulary)
    return GeneratorData(corpus, tokens, vocabulary, GeneratorSettings(**SETTINGS | settings))


@pytest.mark.parametrize("models", ["three", "one"])
def test_train_generators_reports_every_task(small_corpus, vocabulary, tmp_path, models):
    settings = GeneratorSettings(**SETTINGS, models=models)
    steps = []
    report = train_generators(
        small_corpus,
        vocabulary,
        tmp_path / "model",
        settings,
        progress=lambda step, total: steps.append((step, total)),
    )
    assert list(report.tasks) == ["centre", "left", "right"]
    assert list(report.models) == (["all"] if models == "one" else ["centre", "left", "right"])
    total = 4 if models == "one" else 12
    assert steps == [(step, total) for step in range(1, total + 1)]
    assert all(0 < task.loss < 7 and 0 < task.unigram_loss < 7 for task in report.tasks.values())
    assert "words alone" in report.summary()
    assert train_generators(small_corpus, vocabulary, tmp_path / "model", settings) == report


def test_train_generators_of_some_tasks_can_get_the_others_later(
    small_corpus, vocabulary, tmp_path
):
    folder, settings = tmp_path / "model", GeneratorSettings(**SETTINGS, models="three")
    report = train_generators(small_corpus, vocabulary, folder, settings, tasks=["centre"])
    assert list(report.models) == ["centre"]
    GeneratorScorer.open(folder, small_corpus, tasks=["coherence", "centre"])
    with pytest.raises(
        ModelError, match=r"were trained without 'left', which the recipe's weights"
    ):
        GeneratorScorer.open(folder, small_corpus)
    steps = []
    more = train_generators(
        small_corpus,
        vocabulary,
        folder,
        settings,
        tasks=["left", "centre"],
        progress=lambda step, total: steps.append((step, total)),
    )
    assert list(more.models) == ["centre", "left"]
    assert more.models["centre"] == report.models["centre"]
    assert steps == [(step, 8) for step in range(5, 9)]


def test_train_generators_longer_is_better_than_words_alone(small_corpus, vocabulary, tmp_path):
    settings = GeneratorSettings(**SETTINGS | {"max_steps": 40, "models": "one", "epochs": 100})
    report = train_generators(small_corpus, vocabulary, tmp_path / "model", settings)
    for task in report.tasks.values():
        assert task.loss < task.unigram_loss
        assert np.isfinite(task.other_context_loss)


@pytest.mark.usefixtures("one_thread")
def test_train_generators_killed_and_continued_ends_with_the_same_weights(
    small_corpus, vocabulary, tmp_path
):
    settings = GeneratorSettings(**SETTINGS)
    train_generators(small_corpus, vocabulary, tmp_path / "whole", settings)
    for after in (3, 6):  # in the first model, and in the second

        def kill(step, steps, after=after):
            if step == after:
                raise KilledError

        with pytest.raises(KilledError):
            train_generators(small_corpus, vocabulary, tmp_path / "killed", settings, progress=kill)
    train_generators(small_corpus, vocabulary, tmp_path / "killed", settings)
    for task in ("centre", "left", "right"):
        files = [
            load_file(tmp_path / name / task / "model.safetensors") for name in ("whole", "killed")
        ]
        for name in files[0]:
            assert torch.equal(files[0][name], files[1][name]), name


def test_train_generators_other_settings_in_the_folder_is_an_error(
    small_corpus, vocabulary, tmp_path
):
    first = GeneratorSettings(**SETTINGS | {"max_steps": 1, "models": "one"})
    train_generators(small_corpus, vocabulary, tmp_path, first)
    with pytest.raises(InputError, match="max_steps, models changed"):
        train_generators(small_corpus, vocabulary, tmp_path, GeneratorSettings(**SETTINGS))


def test_batches_hold_every_training_example_once(small_corpus, vocabulary):
    data = data_of(small_corpus, vocabulary)
    for task, first in (("centre", 0), ("left", 1)):
        work = GeneratorWork(None, data, (task,))
        batches = work.batches(0)
        documents = small_corpus.documents[np.sort(np.concatenate(batches))]
        counts = np.unique(documents, return_counts=True)[1]
        assert counts.tolist() == [15 - first] * 16  # 4 of 20 are held out
        assert len(batches) > 3
        assert [batch.tolist() for batch in work.batches(0)] == [b.tolist() for b in batches]
        assert [batch.tolist() for batch in work.batches(1)] != [b.tolist() for b in batches]


def test_unigram_loss_is_the_cross_entropy_of_counted_words(small_corpus, vocabulary):
    data = data_of(small_corpus, vocabulary)
    work = GeneratorWork(None, data, ("centre",))
    _, trained = data.items(("centre",), data.train)
    counts = np.ones(len(vocabulary))
    for target in trained.targets:
        np.add.at(counts, target, 1)
    _, judged = data.items(("centre",), data.held_out)
    costs = -np.log(counts / counts.sum())
    wanted = np.concatenate([costs[target] for target in judged.targets]).mean()
    assert work.unigram_loss("centre") == pytest.approx(wanted)
