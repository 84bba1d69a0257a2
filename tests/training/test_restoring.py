"""An exported folder becomes a float32 encoder again, the same network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from condsim.data.rewordings import load_rewordings
from condsim.errors import ModelError
from condsim.model.builders import build_bi_encoder
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER, ModelSettings
from condsim.model.torch import load_trained
from condsim.training.export import export_onnx, restore_onnx
from condsim.training.recipe import Recipe
from condsim.training.trainer import build_model

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_backbone) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    build_bi_encoder(str(tiny_backbone), max_seq_length=40).save_pretrained(str(folder))
    ModelSettings(kind="bi-encoder", name="tiny", order="sentence-first", max_seq_length=40).save(
        folder
    )
    return folder


@pytest.mark.parametrize(
    ("quantize", "large", "nearest"),
    [(None, False, 0.99999), ("int8", False, 0.99), ("int8", True, 0.98)],
)
def test_restore_of_an_export_gives_the_network_back(
    trained, tmp_path, monkeypatch, quantize, large, nearest
) -> None:
    if large:
        monkeypatch.setattr("condsim.training.export.LARGE_MODEL_PARAMETERS", 0)
    export_onnx(trained, tmp_path / "onnx", quantize=quantize)
    restore_onnx(tmp_path / "onnx", tmp_path / "again")
    first, again = load_trained(trained), load_trained(tmp_path / "again")
    assert (again.name, again.order) == ("tiny", "sentence-first")
    texts = ["A man throws a ball.", "Two dogs run in the park."]
    for conditions in (["color", "number of people"], None):
        cosines = np.einsum(
            "nd,nd->n", first.encode(texts, conditions), again.encode(texts, conditions)
        )
        assert cosines.min() > nearest


def test_restore_of_a_model_with_a_dense_layer_is_an_error(tiny_backbone, tmp_path) -> None:
    model = build_bi_encoder(str(tiny_backbone), transform=True, max_seq_length=40)
    model.save_pretrained(str(tmp_path / "dense"))
    export_onnx(tmp_path / "dense", tmp_path / "onnx", quantize=None)
    with pytest.raises(ModelError, match="cannot be rebuilt as a BERT with mean pooling"):
        restore_onnx(tmp_path / "onnx", tmp_path / "again")


def test_backbone_of_an_exported_folder_starts_from_its_weights(trained, tmp_path) -> None:
    export_onnx(trained, tmp_path / "onnx", quantize=None)
    recipe = Recipe(
        name="x", train="t", dev="d", backbone=str(tmp_path / "onnx"), max_seq_length=40
    )
    pair = [["A dog runs.", "color"]]
    found = build_model(recipe).encode(pair, normalize_embeddings=True)
    expected = load_trained(trained).encode("A dog runs.", "color")
    assert found[0] @ expected > 0.99999


@pytest.mark.slow
def test_restore_of_the_default_model_keeps_vectors_and_scores(tmp_path) -> None:
    restore_onnx(DEFAULT_FOLDER, tmp_path / "start")
    export_onnx(tmp_path / "start", tmp_path / "again")
    rows = load_rewordings()
    columns = rows.sentences1[:120], rows.sentences2[:120], rows.conditions[:120]
    shipped, rebuilt = OnnxScorer(DEFAULT_FOLDER), load_trained(tmp_path / "start")
    vectors = shipped.encode(columns[0], columns[2]), rebuilt.encode(columns[0], columns[2])
    cosines = np.einsum("nd,nd->n", *vectors)  # the activations of the one are int8
    assert cosines.mean() > 0.995
    assert cosines.min() > 0.97
    again = OnnxScorer(tmp_path / "again").score(*columns)
    # int8 ranges of the two are measured on other rows, which moves scores by up to 0.08 here.
    assert np.abs(again - shipped.score(*columns)).max() < 0.09
