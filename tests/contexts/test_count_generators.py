"""Generators that count: values by hand, fitting, and scoring."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from condsim.contexts.count_generators import CountsGenerator, TranslationGenerator
from condsim.contexts.generator_scorer import GeneratorScorer
from condsim.contexts.generator_training import train_generators
from condsim.contexts.recipe import GeneratorSettings
from condsim.contexts.tokens import CorpusTokens, ItemBuilder, learn_vocabulary

COUNTS = GeneratorSettings(kind="counts", held_out_examples=20)


@pytest.fixture(scope="module")
def counted(small_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    vocabulary = learn_vocabulary(small_corpus, folder / "vocabulary", size=400)
    report = train_generators(small_corpus, vocabulary, folder / "generators", COUNTS)
    return folder / "generators", vocabulary, report


def test_log_probabilities_of_a_small_vocabulary_are_those_by_hand(counted):
    _, vocabulary, _ = counted
    model = CountsGenerator(GeneratorSettings(kind="counts", share=0.25), vocabulary)
    one, two, end = 300, 301, vocabulary.end_id
    tokens = CorpusTokens(np.uint16([one, one, two, 302]), np.array([0, 3, 4]))
    model.count(tokens, np.array([True, False]))
    builder = ItemBuilder(
        {0: np.array([two, two]), 1: np.array([one]), 2: np.array([one, two])},
        GeneratorSettings(left=1, right=1),
        vocabulary,
    )
    builder.add("centre", 2, [0, 1])
    found = model.log_probabilities(model.encode(builder.units), builder.items)
    total = len(vocabulary) + 3 + 2  # add-one, three tokens, an end and a separator
    given = {one: 1 / 5, two: 2 / 5, end: 2 / 5}  # two two END one END
    corpus = {one: 3 / total, two: 2 / total, end: 2 / total}
    wanted = sum(np.log(0.75 * corpus[token] + 0.25 * given[token]) for token in given)
    assert found.tolist() == pytest.approx([wanted])


def test_probabilities_of_all_single_tokens_sum_to_one(counted, small_corpus):
    folder, vocabulary, _ = counted
    model = GeneratorScorer.open(folder, small_corpus, kind="counts")._models["centre"]
    rows = {number: np.array([number]) for number in range(len(vocabulary))}
    builder = ItemBuilder(rows, GeneratorSettings(left=1, right=1), vocabulary)
    for number in rows:
        builder.add("centre", number, [300, 301])
    builder.items.targets = [target[:1] for target in builder.items.targets]
    found = model.log_probabilities(model.encode(builder.units), builder.items)
    assert np.exp(found.numpy()).sum() == pytest.approx(1.0)


def test_scores_repeat_words_of_the_context_and_have_no_side_at_an_edge(counted, small_corpus):
    folder, _, report = counted
    scorer = GeneratorScorer.open(folder, small_corpus, kind="counts")
    (near,) = small_corpus.sentences(np.array([8]))
    found = scorer.scores(("centre", "left"), [near, near], [np.array([7, 150]), np.array([0])])
    assert found["centre"][0][0] > found["centre"][0][1]
    assert np.isnan(found["left"][1][0])
    (one,) = report.models.values()
    assert one.steps == 0
    assert np.isfinite([one.tasks["centre"].loss, one.tasks["left"].other_context_loss]).all()


TRANSLATION = GeneratorSettings(
    kind="translation", held_out_examples=20, max_steps=4, evaluations=2, batch_tokens=512
)


@pytest.fixture(scope="module")
def fitted(small_corpus, tiny_backbone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    vocabulary = learn_vocabulary(small_corpus, folder / "vocabulary", size=400)
    settings = TRANSLATION.replaced(backbone=str(tiny_backbone))
    report = train_generators(small_corpus, vocabulary, folder / "generators", settings)
    return folder / "generators", vocabulary, settings, report


def test_translation_log_probabilities_of_a_small_vocabulary_are_those_by_hand(fitted):
    _, vocabulary, settings, _ = fitted
    model = TranslationGenerator(settings, vocabulary, np.array([[0.0, 1.0]], np.float16)).eval()
    one, two, three = 300, 301, 302
    entries = len(vocabulary)
    with torch.no_grad():
        model.counts[:] = 1.0
        model.counts[one] = 1.0 + entries  # p(one) = (1 + v) / 2 v, of all others 1 / 2 v
        model.vectors[one], model.vectors[two] = torch.eye(2)
        model.vectors[three] = torch.tensor([0.6, 0.8])
        model.numbers["sharpness"][:] = torch.tensor([2.0, 3.0]).log()
        model.numbers["prior"][:] = torch.tensor([1.0, 0.0])
        model.numbers["rarity"][:] = 0.0
        model.numbers["shares"][:] = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    builder = ItemBuilder({0: np.array([one])}, GeneratorSettings(left=1, right=1), vocabulary)
    builder.add("centre", 0, [0, -1])
    builder.items.targets = [np.array([three])]
    found = model.log_probabilities(model.encode(builder.units), builder.items)

    p_one, p = (1 + entries) / (2 * entries), 1 / (2 * entries)
    # Given are `one` and an end token, whose vector is 0; half of the weight each.
    of_one = p * np.exp(2 * 0.6) / (p_one * np.exp(2) + p * np.exp(2 * 0.6) + (entries - 2) * p)
    of_end = p / (p_one + (entries - 1) * p)
    whole = np.exp(3 * 0.8) / (np.exp(3) + np.exp(3 * 0.8) + entries - 2)
    wanted = 0.1 * p + 0.3 * (of_one + of_end) / 2 + 0.4 * whole
    assert found.tolist() == pytest.approx([np.log(wanted)])


def test_translation_probabilities_of_all_single_tokens_sum_to_one(fitted, small_corpus):
    folder, vocabulary, _, _ = fitted
    scorer = GeneratorScorer.open(folder, small_corpus, kind="translation")
    rows = {number: np.array([number]) for number in range(len(vocabulary))}
    builder = ItemBuilder(rows, GeneratorSettings(left=1, right=1), vocabulary)
    for number in rows:
        builder.add("centre", number, [30, 31])
    builder.items.targets = [target[:1] for target in builder.items.targets]
    with torch.inference_mode():
        found = scorer._models["centre"].log_probabilities(builder.units, builder.items)
    assert np.exp(found.numpy()).sum() == pytest.approx(1.0, abs=1e-5)


def test_training_lowers_the_loss_and_keeps_what_was_read(fitted, small_corpus):
    folder, _, _, report = fitted
    (one,) = report.models.values()
    assert one.steps == 4
    first, last = one.evaluations[0][1], one.evaluations[-1][1]
    assert last > first
    assert np.load(folder / "all" / "sentences.npy").shape[0] == len(small_corpus)


def test_scores_of_all_tasks_repeat_in_any_order(fitted, small_corpus):
    folder, _, _, _ = fitted
    scorer = GeneratorScorer.open(folder, small_corpus, kind="translation")
    sentences = small_corpus.sentences(np.array([8, 60]))
    contexts = [np.array([7, 150]), np.array([20])]
    found = scorer.scores(("centre", "left", "right"), sentences, contexts)
    again = scorer.scores(("right", "centre", "left"), sentences[::-1], contexts[::-1])
    for task, scores in found.items():
        for one, other in zip(scores, again[task][::-1], strict=True):
            assert one == pytest.approx(other, abs=1e-5, nan_ok=True)
    assert np.isfinite(np.concatenate(found["centre"])).all()


def test_a_given_sentence_is_read_once(fitted, small_corpus, monkeypatch):
    folder, _, _, _ = fitted
    scorer = GeneratorScorer.open(folder, small_corpus, kind="translation")
    translation = sys.modules[TranslationGenerator.__module__]
    read, vectors = [], translation._unit_vectors
    monkeypatch.setattr(
        translation, "_unit_vectors", lambda name, texts: read.extend(texts) or vectors(name, texts)
    )
    given, contexts = ["A sentence of no corpus."], [np.array([7, 150])]
    first = scorer.scores(("left",), given, contexts)
    assert len(read) == 1
    again = scorer.scores(("left",), given, contexts)
    assert len(read) == 1
    assert np.array_equal(first["left"], again["left"], equal_nan=True)
