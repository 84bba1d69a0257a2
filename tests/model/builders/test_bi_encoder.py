from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from condsim.model.builders import Pooling, build_bi_encoder

POOLINGS = get_args(Pooling)


@pytest.fixture(params=["bert", "roberta"])
def folder(request: pytest.FixtureRequest) -> str:
    name = "tiny_backbone" if request.param == "bert" else "tiny_roberta_backbone"
    return str(request.getfixturevalue(name))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_bi_encoder_embedding_equals_naive_pooling(
    pooling: Any, folder: str, pairs: list[list[str]]
) -> None:
    model = build_bi_encoder(folder, pooling=pooling)
    backbone = model[0].model.eval()
    embeddings = model.encode(pairs)
    for pair, embedding in zip(pairs, embeddings, strict=True):
        tokens = model.tokenizer([pair[0]], [pair[1]], return_tensors="pt")
        with torch.no_grad():
            layers = backbone(**tokens, output_hidden_states=True).hidden_states  # 0: embeddings
        expected = {
            "cls": layers[-1][0, 0],
            "mean": layers[-1][0].mean(0),
            "mean_top2": (layers[-1][0].mean(0) + layers[-2][0].mean(0)) / 2,
            "mean_first_last": (layers[-1][0].mean(0) + layers[0][0].mean(0)) / 2,
        }[pooling]
        np.testing.assert_allclose(embedding, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_bi_encoder_saved_and_loaded_is_equal(
    pooling: Any, folder: str, pairs: list[list[str]], tmp_path: Path
) -> None:
    model = build_bi_encoder(
        folder, pooling=pooling, transform=True, dropout=0.3, max_seq_length=20
    )
    model.save(str(tmp_path), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path))
    assert loaded.max_seq_length == 20
    assert loaded[0].config.hidden_dropout_prob == 0.3
    np.testing.assert_array_equal(loaded.encode(pairs), model.encode(pairs))


def test_bi_encoder_transform_is_dense_activation_dropout(tiny_backbone: Path) -> None:
    model = build_bi_encoder(str(tiny_backbone), transform=True, dropout=0.2)
    dense, dropout = model[2], model[3]
    assert (dense.in_features, dense.out_features) == (32, 32)
    assert isinstance(dense.activation_function, torch.nn.GELU)
    assert dropout.dropout == 0.2


def test_bi_encoder_saved_loads_where_condsim_is_absent(
    tiny_backbone: Path, pairs: list[list[str]], tmp_path: Path
) -> None:
    model = build_bi_encoder(str(tiny_backbone), pooling="mean_first_last", transform=True)
    model.save(str(tmp_path), create_model_card=False)
    code = (
        "import json, sys\nsys.modules['condsim'] = None\n"
        "from sentence_transformers import SentenceTransformer\n"
        "pairs = json.loads(sys.argv[2])\n"
        "print(json.dumps(SentenceTransformer(sys.argv[1], device='cpu').encode(pairs).tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), json.dumps(pairs)],
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_allclose(json.loads(done.stdout), model.encode(pairs), atol=1e-5)
