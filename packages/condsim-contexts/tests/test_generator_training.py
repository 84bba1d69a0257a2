"""Training the generators, going on after a kill, and scoring."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from benchmarks.contexts_origin import OneByOne
from safetensors import safe_open
from safetensors.torch import load_file

from condsim.errors import ModelError
from condsim_contexts.count_generators import CountsGenerator
from condsim_contexts.generators import (
    GeneratorData,
    GeneratorScorer,
    GeneratorWork,
    train_generators,
)
from condsim_contexts.recipe import GENERATOR_TASKS, SHAPES, GeneratorSettings, Shape

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
def train(small_corpus, vocabulary):
    return partial(train_generators, small_corpus, vocabulary)


def data_of(corpus, vocabulary, **settings) -> GeneratorData:
    return GeneratorData(corpus, vocabulary, GeneratorSettings(**SETTINGS | settings))


@pytest.mark.parametrize("models", ["three", "one"])
def test_train_generators_reports_every_task(train, tmp_path, models):
    settings = GeneratorSettings(**SETTINGS, models=models)
    steps = []
    report = train(tmp_path / "model", settings, progress=lambda *step: steps.append(step))
    assert list(report.tasks) == ["center", "left", "right"]
    assert list(report.models) == (["all"] if models == "one" else ["center", "left", "right"])
    total = 4 if models == "one" else 12
    assert steps == [(step, total) for step in range(1, total + 1)]
    assert all(0 < task.loss < 7 and 0 < task.unigram_loss < 7 for task in report.tasks.values())
    assert "words alone" in report.summary()
    assert train(tmp_path / "model", settings) == report


def test_train_generators_twice_writes_the_same_bytes(train, tmp_path):
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        train(folder, GeneratorSettings(**SETTINGS, models="one"))
    files = [sorted(folder.rglob("*.safetensors")) for folder in folders]
    assert files[0]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
    # Metadata would be in an order that changes from run to run.
    for path in files[0]:
        with safe_open(path, framework="pt") as weights:
            assert not weights.metadata()


def test_train_generators_of_some_tasks_can_get_the_others_later(train, small_corpus, tmp_path):
    folder, settings = tmp_path / "model", GeneratorSettings(**SETTINGS, models="three")
    report = train(folder, settings, tasks=["center"])
    assert list(report.models) == ["center"]
    GeneratorScorer.open(folder, small_corpus, tasks=["coherence", "center"])
    with pytest.raises(ModelError, match="were trained without 'left'"):
        GeneratorScorer.open(folder, small_corpus)
    steps = []
    tasks = ["left", "center"]
    more = train(folder, settings, tasks=tasks, progress=lambda *step: steps.append(step))
    assert list(more.models) == ["center", "left"]
    assert more.models["center"] == report.models["center"]
    assert steps == [(step, 8) for step in range(5, 9)]


def test_train_generators_longer_is_better_than_words_alone(train, tmp_path):
    settings = GeneratorSettings(**SETTINGS | {"max_steps": 40, "models": "one", "epochs": 100})
    report = train(tmp_path / "model", settings)
    for task in report.tasks.values():
        assert task.loss < task.unigram_loss
        assert np.isfinite(task.other_context_loss)


@pytest.mark.usefixtures("one_thread")
def test_train_generators_killed_and_continued_ends_with_the_same_weights(train, tmp_path):
    settings = GeneratorSettings(**SETTINGS)
    train(tmp_path / "whole", settings)
    for after in (3, 6):  # in the first model, and in the second

        def kill(step, steps, after=after):
            if step == after:
                raise KilledError

        with pytest.raises(KilledError):
            train(tmp_path / "killed", settings, progress=kill)
    train(tmp_path / "killed", settings)
    for task in ("center", "left", "right"):
        files = [
            load_file(tmp_path / name / task / "model.safetensors") for name in ("whole", "killed")
        ]
        for name in files[0]:
            assert torch.equal(files[0][name], files[1][name]), name


def test_batches_hold_every_training_example_once(small_corpus, vocabulary):
    data = data_of(small_corpus, vocabulary)
    for task, first in (("center", 0), ("left", 1)):
        work = GeneratorWork(None, data, (task,))
        batches = work.batches(0)
        documents = small_corpus.documents[np.sort(np.concatenate(batches))]
        counts = np.unique(documents, return_counts=True)[1]
        assert counts.tolist() == [15 - first] * 16  # 4 of 20 are held out
        assert len(batches) > 3
        assert [batch.tolist() for batch in work.batches(0)] == [b.tolist() for b in batches]
        assert [batch.tolist() for batch in work.batches(1)] != [b.tolist() for b in batches]


def test_loss_is_the_mean_cost_of_a_target_token(small_corpus, vocabulary):
    data = data_of(small_corpus, vocabulary)
    model = CountsGenerator(data.settings, vocabulary)
    work, batch = GeneratorWork(model, data, ("center",)), data.train[:5]
    units, items = data.items(("center",), batch)
    costs = -model.log_probabilities(units, items) / sum(map(len, items.targets))
    loss = work.loss(batch, np.random.default_rng(0))
    assert loss.item() == pytest.approx(costs.sum().item())
    assert work.tokens_seen == sum(map(len, [*units.tokens, *items.targets]))


def test_unigram_loss_is_the_cross_entropy_of_counted_words(small_corpus, vocabulary):
    data = data_of(small_corpus, vocabulary)
    work = GeneratorWork(None, data, ("center",))
    _, trained = data.items(("center",), data.train)
    counts = np.ones(len(vocabulary))
    for target in trained.targets:
        np.add.at(counts, target, 1)
    _, judged = data.items(("center",), data.held_out)
    costs = -np.log(counts / counts.sum())
    wanted = np.concatenate([costs[target] for target in judged.targets]).mean()
    assert work.unigram_loss("center") == pytest.approx(wanted)


SENTENCES = ["The baker sells warm bread.", "Coal.", "The baker sells warm bread.", ""]
CENTERS = [np.array(ids) for ids in ([0, 7, 14, 150], [7, 299, 7], [7, 60], [100])]


def scores(scorer, task, sentences, centers):
    return scorer.scores((task,), sentences, centers)[task]


KINDS = [("three", "apart"), ("three", "joint"), ("one", "apart")]


@pytest.fixture(scope="module")
def folders(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generators")
    for models, encoder in KINDS:
        settings = GeneratorSettings(
            **SETTINGS | {"max_steps": 3, "evaluations": 1, "held_out_examples": 5},
            models=models,
            encoder=encoder,
        )
        train(folder / f"{models}-{encoder}", settings)
    return folder


@pytest.fixture(autouse=True)
def in_float32(monkeypatch):
    monkeypatch.setattr("condsim_contexts.generators.uses_bfloat16", lambda _: False)


@pytest.mark.parametrize(("models", "encoder"), KINDS)
def test_scores_equal_those_one_by_one(folders, small_corpus, models, encoder, monkeypatch):
    monkeypatch.setattr("condsim_contexts.generators._VALUES_PER_SLAB", 32 * 4)
    scorer = GeneratorScorer.open(folders / f"{models}-{encoder}", small_corpus)
    parts = scorer._models, scorer._vocabulary, small_corpus, scorer._settings
    wanted = OneByOne(*parts).terms(SENTENCES, CENTERS, GENERATOR_TASKS)
    together = scorer.scores(GENERATOR_TASKS, SENTENCES, CENTERS)
    for task in GENERATOR_TASKS:
        found = scores(scorer, task, SENTENCES, CENTERS)
        assert [len(values) for values in found] == [4, 3, 2, 1]
        for mine, its, joined in zip(found, wanted, together[task], strict=True):
            np.testing.assert_allclose(mine, its[task], rtol=0, atol=1e-4)
            np.testing.assert_allclose(joined, its[task], rtol=0, atol=1e-4)


def test_scores_encode_each_sentence_and_place_once(folders, small_corpus, monkeypatch):
    scorer = GeneratorScorer.open(folders / "one-apart", small_corpus)
    encoded = _encoded(scorer, monkeypatch)
    ask = ("center", "left", "right"), ["One.", "Two.", "One."], [[7, 8]] * 3
    scorer.scores(*ask)
    # 5, 6, 8, 9 around 7 and 6, 7, 9, 10 around 8, no place twice; and two sentences.
    assert encoded == [4 + 4 + 2]
    scorer.scores(*ask)
    assert encoded[1:] == [2]  # the sentences scored are not of the corpus
    scores(scorer, "center", ["Three."], [np.array([8, 9])])
    assert encoded[2:] == [4]  # those around 9


def _encoded(scorer, monkeypatch):
    """Counts the units that a scorer encodes, call by call."""
    encoded = []
    model = type(scorer._models["center"])
    encode = model._encode

    def counted(self, units, chosen):
        encoded.append(len(chosen))
        return encode(self, units, chosen)

    monkeypatch.setattr(model, "_encode", counted)
    return encoded


@pytest.mark.parametrize("encoder", ["apart", "joint"])
def test_scores_are_the_same_whatever_states_are_kept(folders, small_corpus, encoder, monkeypatch):
    monkeypatch.setattr("condsim_contexts.generators._VALUES_PER_SLAB", 32 * 4)
    found = []
    for memory_gb in (0, 32 * 4 * 50 / 1e9, 1):  # none, 50 tokens, all
        scorer = GeneratorScorer.open(
            folders / f"three-{encoder}", small_corpus, memory_gb=memory_gb
        )
        found += [scores(scorer, "center", SENTENCES, CENTERS) for _ in range(2)]
        for store in scorer._stores.values():
            tokens = sum(map(len, store.states.values()))
            assert tokens <= {0: 0, 1: 10**6}.get(memory_gb, 50 / 3)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)


def test_scores_bfloat16_is_near_float32(folders, small_corpus, monkeypatch):
    one = GeneratorScorer.open(folders / "three-apart", small_corpus)
    monkeypatch.setattr("condsim_contexts.generators.uses_bfloat16", lambda _: True)
    other = GeneratorScorer.open(folders / "three-apart", small_corpus)
    for task in ("center", "left", "right"):
        full, low = (scores(scorer, task, SENTENCES, CENTERS) for scorer in (one, other))
        for its, mine in zip(full, low, strict=True):
            np.testing.assert_allclose(mine, its, rtol=0, atol=0.05)
