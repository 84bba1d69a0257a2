"""The generator that only counts: values by hand, and all that reads a trained one reads it."""

from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.corpus.vocabulary import CorpusTokens, learn_vocabulary
from condsim.contexts.generator.counts import CountsGenerator
from condsim.contexts.generator.items import ItemBuilder
from condsim.contexts.generator.scorer import GeneratorScorer
from condsim.contexts.generator.training import train_generators
from condsim.contexts.recipe import ContextsRecipe
from condsim.contexts.settings import GeneratorSettings
from condsim.errors import InputError, ModelError

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


def test_open_of_another_kind_is_refused(counted, small_corpus):
    with pytest.raises(ModelError, match="holds no finished generators model"):
        GeneratorScorer.open(counted[0], small_corpus)


def test_recipe_of_counts_with_a_backbone_is_refused():
    with pytest.raises(InputError, match="'counts' are not trained and take no 'backbone'"):
        ContextsRecipe(
            name="a", inputs=["a.txt"], generators=COUNTS.replaced(backbone="google/t5-small")
        )
