"""The generators: their loss, their log-probabilities and the backbones they are made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condsim.contexts.corpus.vocabulary import learn_vocabulary
from condsim.contexts.generator.items import ItemBuilder
from condsim.contexts.generator.model import backbone_vocabulary, new_generator
from condsim.contexts.settings import SHAPES, GeneratorSettings, Shape
from condsim.errors import InputError


@pytest.fixture(scope="module")
def vocabulary(small_corpus, tmp_path_factory):
    return learn_vocabulary(small_corpus, tmp_path_factory.mktemp("vocabulary"), size=300)


@pytest.fixture(scope="module")
def t5_folder(small_corpus, vocabulary, tmp_path_factory):
    """A random T5 checkpoint, which scales its decoder states."""
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("tiny-t5")
    config = T5Config(
        vocab_size=300,
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
    AutoTokenizer.from_pretrained(vocabulary.folder).save_pretrained(folder)
    return folder


def some_items(vocabulary, *, joint: bool = False) -> ItemBuilder:
    random = np.random.default_rng(0)
    sizes = (4, 1, 7, 3, 5)
    sentences = {n: random.integers(5, 300, size) for n, size in enumerate(sizes)}
    settings = GeneratorSettings(encoder="joint" if joint else "apart")
    builder = ItemBuilder(sentences, settings, vocabulary)
    for task in ("centre", "left", "right"):
        builder.add(task, 2, (0, 1, 3, 4))
        builder.add(task, 1, (-1, 4, 0, -1))
    return builder


def randomised(settings, vocabulary):
    model = new_generator(settings, vocabulary).eval()
    torch.manual_seed(1)
    for parameter in (model.places, model.tasks):
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def one_by_one(model, builder) -> list[float]:
    found = []
    for row in range(len(builder.items)):
        items = type(builder.items)(*(part[row : row + 1] for part in vars(builder.items).values()))
        found.append(model.token_scores(builder.units, items).sum().item())
    return found


@pytest.mark.parametrize("encoder", ["apart", "joint"])
@pytest.mark.parametrize("kind", ["scratch", "t5"])
@pytest.mark.parametrize("copy", [False, True])
def test_log_probabilities_equal_the_backbones_own_forward(
    vocabulary, t5_folder, encoder, kind, copy
):
    backbone = str(t5_folder) if kind == "t5" else None
    settings = GeneratorSettings(encoder=encoder, backbone=backbone, copy=copy, max_tokens=16)
    model = randomised(settings, vocabulary)
    builder = some_items(vocabulary, joint=encoder == "joint")
    with torch.inference_mode():
        found = model.log_probabilities(model.encode(builder.units), builder.items)
        wanted = one_by_one(model, builder)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)
    count = sum(len(target) for target in builder.items.targets)
    loss = model.loss(builder.units, builder.items).item()
    assert loss == pytest.approx(-sum(wanted) / count, rel=1e-4)


def test_log_probabilities_depend_on_place_task_and_given_sentences(vocabulary):
    model = randomised(GeneratorSettings(max_tokens=16), vocabulary)
    builder = some_items(vocabulary)
    with torch.inference_mode():
        before = model.log_probabilities(model.encode(builder.units), builder.items)
        builder.items.tasks = builder.items.tasks[::-1]
        other = model.log_probabilities(model.encode(builder.units), builder.items)
        assert not torch.isclose(before, other)[[0, 1, 4, 5]].any()
        builder.items.tasks = builder.items.tasks[::-1]
        builder.units.places = [4 - places for places in builder.units.places]
        other = model.log_probabilities(model.encode(builder.units), builder.items)
        assert not torch.isclose(before, other).any()


@pytest.mark.parametrize("copy", [False, True])
def test_loss_gives_every_weight_a_gradient(vocabulary, copy):
    model = new_generator(GeneratorSettings(max_tokens=16, copy=copy), vocabulary).train()
    builder = some_items(vocabulary)
    model.loss(builder.units, builder.items).backward()
    for name, parameter in model.named_parameters():
        # A key's bias shifts all attention scores alike, so its gradient is nothing but rounding.
        if not name.endswith(("k_proj.bias", "copy.key.bias")):
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name


def test_loss_falls_to_nothing_where_the_context_tells_the_target(vocabulary, monkeypatch):
    monkeypatch.setitem(SHAPES, "tiny", Shape(32, 1, 64, 2, 1e-2))
    settings = GeneratorSettings(max_tokens=4, dropout=0.0, left=1, right=1)
    model = new_generator(settings, vocabulary).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    words = {number: np.array([5 + number]) for number in range(8)}
    builder = ItemBuilder(words, settings, vocabulary)
    random = np.random.default_rng(0)
    for centre, other in random.integers(0, 8, (64, 2)).tolist():
        builder.add("centre", centre, (centre, other))  # the sentence before it, once more
    for _ in range(120):
        optimizer.zero_grad()
        model.loss(builder.units, builder.items).backward()
        optimizer.step()
    assert model.loss(builder.units, builder.items).item() < 0.1
    builder.items.units = builder.items.units[1:] + builder.items.units[:1]
    assert model.loss(builder.units, builder.items).item() > 1


def test_new_generator_same_seed_has_the_same_weights(vocabulary):
    one, other = (new_generator(GeneratorSettings(), vocabulary) for _ in range(2))
    for mine, its in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, its)


def test_new_generator_pretrained_starts_as_the_checkpoint(vocabulary, t5_folder, tmp_path):
    settings = GeneratorSettings(backbone=str(t5_folder))
    own = backbone_vocabulary(settings, tmp_path / "vocabulary")
    assert (own.pad_id, own.start_id, own.end_id, own.separator_id) == (0, 0, 2, 4)
    model = new_generator(settings, own)
    assert not model.places.any()
    assert not model.tasks.any()


def test_new_generator_backbone_that_scales_its_embeddings_is_an_error(vocabulary, tmp_path):
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    config = PegasusConfig(
        vocab_size=len(vocabulary), d_model=8, scale_embedding=True, **sizes, **heads
    )
    PegasusForConditionalGeneration(config).save_pretrained(tmp_path / "pegasus")
    with pytest.raises(InputError, match="does more to its tokens than look up their embeddings"):
        new_generator(GeneratorSettings(backbone=str(tmp_path / "pegasus")), vocabulary)


def test_new_generator_backbone_that_is_none_is_an_error(vocabulary, tiny_backbone, tmp_path):
    with pytest.raises(InputError, match="as an encoder-decoder"):
        new_generator(GeneratorSettings(backbone=str(tiny_backbone)), vocabulary)
    with pytest.raises(InputError, match="Cannot load the backbone"):
        backbone_vocabulary(GeneratorSettings(backbone=str(tmp_path / "none")), tmp_path)


def test_large_is_transformer_large():
    shape = SHAPES["large"]
    assert (shape.width, shape.layers, shape.inner, shape.heads) == (1024, 6, 4096, 16)
    assert all(shape.width == 64 * shape.heads for shape in SHAPES.values())


def test_settings_out_of_range_is_an_error():
    for key, least in (("left", 1), ("max_tokens", 2)):
        with pytest.raises(InputError, match=f"Generators key '{key}' must be at least {least}"):
            GeneratorSettings(**{key: least - 1})
