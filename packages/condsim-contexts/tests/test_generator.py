"""The generators: items, probabilities, loss, backbones, and those that count."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from benchmarks.contexts_origin import token_scores

from condsim.errors import InputError
from condsim_contexts.count_generators import CountsGenerator, TranslationGenerator
from condsim_contexts.generator import (
    Copies,
    CopyHead,
    backbone_vocabulary,
    new_generator,
    target_log_probabilities,
)
from condsim_contexts.generators import GeneratorScorer, train_generators
from condsim_contexts.recipe import GeneratorSettings
from condsim_contexts.tokens import CorpusTokens, ItemBuilder, length_groups

END, SEPARATOR = 2, 4

SENTENCES = {number: np.array([10 * number, 10 * number + 1]) for number in (1, 2, 3, 5, 6)}


def builder(*, joint: bool = False) -> ItemBuilder:
    settings = GeneratorSettings(encoder="joint" if joint else "apart")
    return ItemBuilder(SENTENCES, settings, SimpleNamespace(end_id=END, separator_id=SEPARATOR))


def test_add_tasks_of_one_context_share_units():
    made = builder()
    for task in ("center", "left", "right"):
        made.add(task, 3, (1, 2, 5, 6))
    assert len(made.units) == 5  # four around, and the center
    assert made.items.units == [(0, 1, 2, 3), (4, 2, 3), (0, 1, 4)]
    assert made.items.targets[1].tolist() == [10, 11, SEPARATOR, 20, 21, END]
    assert made.items.targets[2].tolist() == [50, 51, SEPARATOR, 60, 61, END]
    assert made.items.tasks == [0, 1, 2]


def test_add_joint_is_one_unit_of_all_given():
    made = builder(joint=True)
    made.add("left", 3, (1, 2, 5, -1))
    assert made.items.units == [(0,)]
    assert made.units.tokens[0].tolist() == [30, 31, END, 50, 51, END]
    assert made.units.places[0].tolist() == [2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("joint", [False, True])
def test_add_side_without_sentences_adds_nothing_and_nothing_given_is_an_end_token(joint):
    made = builder(joint=joint)
    assert not made.add("left", 3, (-1, -1, 5, 6))
    assert len(made.items) == len(made.units) == 0
    assert made.add("center", 3, (-1, -1, -1, -1))
    assert made.units.tokens[0].tolist() == [END]
    assert made.units.places[0].tolist() == [2]


def test_length_groups_cost_is_the_least_of_all_splits():
    lengths = np.array([3, 3, 4, 9, 9, 10, 30])

    def cost(groups):
        return sum(8 + len(group) * max(group) for group in groups)

    found = cost([lengths[group] for group in length_groups(lengths, call=8, most=10_000)])
    splits = [
        np.split(lengths, cuts)
        for count in range(7)
        for cuts in itertools.combinations(range(1, 7), count)
    ]
    assert found == min(map(cost, splits))


@pytest.fixture
def even_head():
    """A head that attends to all given tokens alike, and gives copies half of the probability."""
    head = CopyHead(8)
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    return head


def test_copies_worked_by_hand(even_head):
    given = torch.tensor([[7, 3, 7, 9, 0]])
    attended = torch.tensor([[True, True, True, True, False]])
    wanted = torch.tensor([[7, 9, 0]])  # twice, once, and as filling alone
    found = even_head(torch.randn(1, 3, 8), torch.randn(1, 5, 64), given, attended, wanted)
    words = torch.full((1, 3), math.log(0.1))
    # g = 1/2: 1/2 * 0.1 + 1/2 * 2/4, 1/2 * 0.1 + 1/2 * 1/4, 1/2 * 0.1
    torch.testing.assert_close(found.mixed(words).exp(), torch.tensor([[0.3, 0.175, 0.05]]))


@pytest.mark.parametrize("biased", [False, True])
def test_target_log_probabilities_equal_log_softmax_with_gradients(biased, monkeypatch):
    monkeypatch.setattr("condsim_contexts.generator._LOGITS_PER_BLOCK", 3 * 30)
    torch.manual_seed(0)
    targets, bias = torch.randint(0, 30, (11,)), torch.randn(30) if biased else None
    own, copied = F.logsigmoid(torch.randn(11)), -4 * torch.rand(11)
    # Not among the given tokens.
    copied[4] = torch.finfo(torch.float32).min
    values = torch.randn(11, 8) * 5, torch.randn(30, 8), own, copied
    mine = [part.clone().requires_grad_() for part in values]
    theirs = [part.clone().requires_grad_() for part in values]
    scores = target_log_probabilities(*mine[:2], bias, targets, Copies(*mine[2:]))
    logits = F.linear(theirs[0], theirs[1], bias)
    expected = logits.log_softmax(dim=-1).gather(1, targets[:, None])[:, 0]
    plain = target_log_probabilities(*mine[:2], bias, targets)
    torch.testing.assert_close(plain, expected)
    expected = torch.logaddexp(theirs[2] + expected, theirs[3])
    torch.testing.assert_close(scores, expected)
    scores.mean().backward()
    expected.mean().backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@pytest.fixture(scope="module")
def t5_folder(small_corpus, vocabulary, tmp_path_factory):
    """A random T5 checkpoint, which scales its decoder states."""
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("tiny-t5")
    config = T5Config(
        vocab_size=400,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
        scale_decoder_outputs=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        T5ForConditionalGeneration(config).save_pretrained(folder)
    vocabulary.save(folder)
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder


def some_items(vocabulary, *, joint: bool = False) -> ItemBuilder:
    random = np.random.default_rng(0)
    sizes = (4, 1, 7, 3, 5)
    sentences = {n: random.integers(5, 300, size) for n, size in enumerate(sizes)}
    settings = GeneratorSettings(encoder="joint" if joint else "apart")
    builder = ItemBuilder(sentences, settings, vocabulary)
    for task in ("center", "left", "right"):
        builder.add(task, 2, (0, 1, 3, 4))
        builder.add(task, 1, (-1, 4, 0, -1))
    return builder


def randomized(settings, vocabulary):
    model = new_generator(settings, vocabulary).eval()
    torch.manual_seed(1)
    for parameter in (model.places, model.tasks):
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def one_by_one(model, builder) -> list[float]:
    found = []
    for row in range(len(builder.items)):
        items = type(builder.items)(*(part[row : row + 1] for part in vars(builder.items).values()))
        found.append(token_scores(model, builder.units, items).sum().item())
    return found


@pytest.mark.parametrize("encoder", ["apart", "joint"])
@pytest.mark.parametrize("kind", ["scratch", "t5"])
@pytest.mark.parametrize("copy", [False, True])
def test_log_probabilities_equal_the_backbones_own_forward(
    vocabulary, t5_folder, encoder, kind, copy
):
    backbone = str(t5_folder) if kind == "t5" else None
    settings = GeneratorSettings(encoder=encoder, backbone=backbone, copy=copy, max_tokens=16)
    model = randomized(settings, vocabulary)
    builder = some_items(vocabulary, joint=encoder == "joint")
    with torch.inference_mode():
        found = model.log_probabilities(model.encode(builder.units), builder.items)
        wanted = one_by_one(model, builder)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)


@pytest.mark.parametrize("copy", [False, True])
def test_log_probabilities_give_every_weight_a_gradient(vocabulary, copy):
    model = new_generator(GeneratorSettings(max_tokens=16, copy=copy), vocabulary).train()
    builder = some_items(vocabulary)
    model.log_probabilities(model.encode(builder.units), builder.items).sum().backward()
    for name, parameter in model.named_parameters():
        # A key's bias shifts all attention scores alike, so its gradient is nothing but rounding.
        if not name.endswith(("k_proj.bias", "copy.key.bias")):
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name


def test_new_generator_pretrained_starts_as_the_checkpoint(t5_folder):
    settings = GeneratorSettings(backbone=str(t5_folder))
    own = backbone_vocabulary(str(t5_folder))
    assert (own.pad_id, own.start_id, own.end_id, own.separator_id) == (0, 0, 2, 4)
    model = new_generator(settings, own)
    assert not model.places.any()
    assert not model.tasks.any()


def test_new_generator_backbone_that_is_none_is_an_error(vocabulary, tiny_backbone, tmp_path):
    with pytest.raises(InputError, match="Cannot use the backbone"):
        new_generator(GeneratorSettings(backbone=str(tiny_backbone)), vocabulary)
    with pytest.raises(InputError):
        backbone_vocabulary(str(tmp_path / "none"))


COUNTS = GeneratorSettings(kind="counts", held_out_examples=20)


@pytest.fixture(scope="module")
def counted(small_corpus, vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    return folder, train_generators(small_corpus, vocabulary, folder, COUNTS)


def test_log_probabilities_of_a_small_vocabulary_are_those_by_hand(vocabulary):
    model = CountsGenerator(GeneratorSettings(kind="counts", share=0.25), vocabulary)
    one, two, end = 300, 301, vocabulary.end_id
    tokens = CorpusTokens(np.uint16([one, one, two, 302]), np.array([0, 3, 4]))
    model.prepare(tokens, np.array([True, False]))
    builder = ItemBuilder(
        {0: np.array([two, two]), 1: np.array([one]), 2: np.array([one, two])},
        GeneratorSettings(left=1, right=1),
        vocabulary,
    )
    builder.add("center", 2, [0, 1])
    found = model.log_probabilities(model.encode(builder.units), builder.items)
    total = len(vocabulary) + 3 + 2  # add-one, three tokens, an end and a separator
    given = {one: 1 / 5, two: 2 / 5, end: 2 / 5}  # two two END one END
    corpus = {one: 3 / total, two: 2 / total, end: 2 / total}
    wanted = sum(np.log(0.75 * corpus[token] + 0.25 * given[token]) for token in given)
    assert found.tolist() == pytest.approx([wanted])


def test_scores_repeat_words_of_the_context_and_have_no_side_at_an_edge(counted, small_corpus):
    folder, report = counted
    scorer = GeneratorScorer.open(folder, small_corpus, kind="counts")
    (near,) = small_corpus.sentences(np.array([8]))
    found = scorer.scores(("center", "left"), [near, near], [np.array([7, 150]), np.array([0])])
    assert found["center"][0][0] > found["center"][0][1]
    assert np.isnan(found["left"][1][0])
    (one,) = report.models.values()
    assert one.steps == 0
    assert np.isfinite([one.tasks["center"].loss, one.tasks["left"].other_context_loss]).all()


TRANSLATION = GeneratorSettings(
    kind="translation", held_out_examples=20, max_steps=4, evaluations=2, batch_tokens=512
)


@pytest.fixture(scope="module")
def fitted(small_corpus, vocabulary, tiny_backbone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    settings = TRANSLATION.replaced(backbone=str(tiny_backbone))
    return folder, settings, train_generators(small_corpus, vocabulary, folder, settings)


def test_translation_log_probabilities_of_a_small_vocabulary_are_those_by_hand(fitted, vocabulary):
    _, settings, _ = fitted
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
    builder.add("center", 0, [0, -1])
    builder.items.targets = [np.array([three])]
    found = model.log_probabilities(model.encode(builder.units), builder.items)

    p_one, p = (1 + entries) / (2 * entries), 1 / (2 * entries)
    # Given are `one` and an end token, whose vector is 0; half of the weight each.
    of_one = p * np.exp(2 * 0.6) / (p_one * np.exp(2) + p * np.exp(2 * 0.6) + (entries - 2) * p)
    of_end = p / (p_one + (entries - 1) * p)
    whole = np.exp(3 * 0.8) / (np.exp(3) + np.exp(3 * 0.8) + entries - 2)
    wanted = 0.1 * p + 0.3 * (of_one + of_end) / 2 + 0.4 * whole
    assert found.tolist() == pytest.approx([np.log(wanted)])


def test_training_lowers_the_loss_and_keeps_what_was_read(fitted, small_corpus):
    folder, _, report = fitted
    (one,) = report.models.values()
    assert one.steps == 4
    first, last = one.evaluations[0][1], one.evaluations[-1][1]
    assert last > first
    assert np.load(folder / "all" / "sentences.npy").shape[0] == len(small_corpus)
