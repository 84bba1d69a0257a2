from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest
import torch
from sentence_transformers import (
    SentenceTransformer,
)
from sentence_transformers.base.losses.merged_forward import embed_columns

from condsim.errors import InputError, ModelError
from condsim.model.builders import Pooling, build_bi_encoder
from condsim.model.tri_encoder import (
    Fusion,
    LowRank,
    TriEncoder,
    build_tri_encoder,
    load_tri_encoder,
)

FUSIONS = get_args(Fusion)


@pytest.fixture(params=["bert", "roberta"])
def folder(request):
    name = "tiny_backbone" if request.param == "bert" else "tiny_roberta_backbone"
    return str(request.getfixturevalue(name))


def backbone_rows(model):
    """Records the number of rows of each run through the backbone."""
    rows: list[int] = []

    def record(_, arguments, keywords):
        rows.append(keywords["input_ids"].shape[0])

    # On the embeddings: the library calls the forward of the model itself past any hook.
    model[0].transformer.model.embeddings.register_forward_pre_hook(record, with_kwargs=True)
    return rows


@pytest.mark.parametrize("fusion", FUSIONS)
def test_tri_encoder_batch_equals_each_row_alone(fusion, folder, pairs):
    model = build_tri_encoder(folder, fusion=fusion, transform=True)
    alone = np.concatenate([model.encode([pair]) for pair in pairs])
    np.testing.assert_allclose(model.encode(pairs), alone, atol=1e-5)


def test_tri_encoder_batch_runs_each_distinct_text_once(folder, pairs):
    model = build_tri_encoder(folder)
    rows = backbone_rows(model)
    model.encode(pairs)
    assert rows == [2, 2]  # 2 sentences, 2 conditions


def test_tri_encoder_merged_columns_run_each_distinct_text_once(folder, pairs):
    model = build_tri_encoder(folder).eval()
    # The columns share a sentence and both conditions, and are padded to different lengths.
    columns = [pairs, [[pair[0], "a cat sits."] for pair in pairs[:2]] + [pairs[0]]]
    expected = [model.encode(column, convert_to_tensor=True) for column in columns]
    rows = backbone_rows(model)
    found = embed_columns(model, [model.preprocess(c) for c in columns], separate_first=False)
    assert rows == [3, 2]
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=0)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_tri_encoder_equals_fusion_of_parts(fusion, tiny_backbone, pairs):
    model = build_tri_encoder(str(tiny_backbone), fusion=fusion, rank=5)
    # The same backbone and pooling, on single texts.
    plain = build_bi_encoder(str(tiny_backbone))
    sentences = plain.encode([pair[1] for pair in pairs], convert_to_tensor=True)
    conditions = plain.encode([pair[0] for pair in pairs], convert_to_tensor=True)
    layer = model[0].fusion_layer
    with torch.no_grad():
        conditions = model[0].condition_layer.eval()(conditions)
        if fusion == "hadamard":
            expected = sentences * conditions
        elif fusion == "concat":
            linear = layer.layer[0]
            both = torch.cat([sentences, conditions], dim=1)
            expected = torch.nn.functional.gelu(both @ linear.weight.T + linear.bias)
        else:
            matrices = layer.projection(conditions).reshape(3, 5, 32)
            expected = torch.stack([matrices[row] @ sentences[row] for row in range(3)])
    embeddings = model.encode(pairs, convert_to_tensor=True)
    torch.testing.assert_close(embeddings, expected, atol=1e-5, rtol=1e-4)
    assert model.get_embedding_dimension() == expected.shape[1]


def test_low_rank_value_by_hand():
    # d = 2, rank 2: the condition (1, 2) makes [[1, 0], [0, 2]] + bias 0, and s = (3, 4) -> (3, 8)
    fusion = LowRank(2, 2)
    with torch.no_grad():
        fusion.projection.bias.zero_()
        weight = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
        fusion.projection.weight.copy_(weight)
    found = fusion(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 2.0]]))
    assert found.tolist() == [[3.0, 8.0]]


def test_tri_encoder_hadamard_cosine_equals_two_products_over_stored_vectors(tiny_backbone):
    # cos(c∘s1, c∘s2) = ⟨c²∘s1, s2⟩ / (‖c∘s1‖ ‖c∘s2‖), and ‖c∘s‖² = ⟨c², s²⟩
    model = build_tri_encoder(str(tiny_backbone))
    module: TriEncoder = model[0].eval()
    texts = ["a man throws a ball.", "a girl kicks a ball.", "two dogs run."]
    batch = module.preprocess([["the sport", text] for text in texts])
    with torch.no_grad():
        stored = module.sentence_vectors(batch["input_ids"], batch["attention_mask"])  # (3, d)
        squared = (
            module.condition_vectors(batch["condition_tokens"], batch["condition_mask"])[0] ** 2
        )
        norms = (stored.square() @ squared).sqrt()  # (3,)
        found = (stored @ (squared * stored[0])) / (norms * norms[0])
    embeddings = model.encode([["the sport", text] for text in texts], convert_to_tensor=True)
    expected = torch.cosine_similarity(embeddings[:1], embeddings)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_tri_encoder_order_says_which_text_is_the_condition(tiny_backbone, pairs):
    model = build_tri_encoder(str(tiny_backbone))
    embeddings = model.encode(pairs)
    model[0].order = "sentence-first"
    np.testing.assert_array_equal(model.encode([pair[::-1] for pair in pairs]), embeddings)


@pytest.mark.parametrize(
    ("pooling", "fusion"), list(zip(get_args(Pooling), [*FUSIONS, "hadamard"], strict=True))
)
def test_tri_encoder_saved_and_loaded_is_equal(pooling, fusion, tiny_backbone, pairs, tmp_path):
    model = build_tri_encoder(
        str(tiny_backbone),
        order="sentence-first",
        pooling=pooling,
        fusion=fusion,
        transform=True,
        dropout=0.3,
        max_seq_length=8,
    )
    model.save(str(tmp_path), create_model_card=False)
    listed = json.loads((tmp_path / "modules.json").read_text())
    assert [entry["type"] for entry in listed] == ["condsim.model.tri_encoder.TriEncoder"]
    loaded = load_tri_encoder(str(tmp_path))
    assert (loaded.max_seq_length, loaded[0].order) == (8, "sentence-first")
    assert loaded[0].condition_layer[0].p == 0.3
    reverse = [pair[::-1] for pair in pairs]
    np.testing.assert_array_equal(loaded.encode(reverse), model.encode(reverse))
    trusting = SentenceTransformer(str(tmp_path), trust_remote_code=True)
    np.testing.assert_array_equal(trusting.encode(reverse), model.encode(reverse))


def test_tri_encoder_model_card_encodes_pairs(tiny_backbone, tmp_path, caplog):
    build_tri_encoder(str(tiny_backbone)).save(str(tmp_path))
    assert "A girl kicks a ball." in (tmp_path / "README.md").read_text("utf-8")
    assert "Error while computing" not in caplog.text


@pytest.mark.parametrize("inputs", [["a man"], [["a", "b"], ["a", "b", "c"]]])
def test_tri_encoder_not_pairs_raises(inputs, tiny_backbone):
    with pytest.raises(InputError, match="takes pairs of texts"):
        build_tri_encoder(str(tiny_backbone))[0].preprocess(inputs)


def test_tri_encoder_prompt_raises(tiny_backbone, pairs):
    with pytest.raises(InputError, match="no prompt"):
        build_tri_encoder(str(tiny_backbone)).encode(pairs, prompt="query: ")


def test_load_tri_encoder_other_model_raises(tiny_backbone, tmp_path):
    build_bi_encoder(str(tiny_backbone)).save(str(tmp_path), create_model_card=False)
    with pytest.raises(ModelError, match=r"is not a tri-encoder: its modules\.json must list"):
        load_tri_encoder(str(tmp_path))
    with pytest.raises(ModelError, match="no such file"):
        load_tri_encoder(str(tiny_backbone))
    with pytest.raises(ModelError, match="it must contain tri_encoder_config"):
        TriEncoder.load(str(tmp_path))
