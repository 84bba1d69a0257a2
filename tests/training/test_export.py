from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from sentence_transformers import SentenceTransformer

from condsim.errors import InputError, ModelError
from condsim.model.builders import build_bi_encoder, build_cross_encoder
from condsim.model.calibration import Calibration
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import ModelSettings
from condsim.model.tri_encoder import build_tri_encoder
from condsim.training.export import export_onnx
from condsim.training.quantize import quantize_compact, quantize_static

SENTENCES = ["a man kicks a ball", "two birds", "the dog runs on a table in the street", "a cat"]
CONDITIONS = ["the sport", "the number of people", "the animal", "color"]


def save(model, folder, **settings):
    model.save_pretrained(str(folder))
    if settings:
        ModelSettings(**{"kind": "bi-encoder", "name": "tiny", **settings}).save(folder)
    return folder


@pytest.fixture(scope="module")
def source(tiny_backbone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    return save(build_bi_encoder(str(tiny_backbone), max_seq_length=40), folder)


@pytest.mark.parametrize(
    ("pooling", "transform"),
    [("cls", True), ("cls", False), ("mean", True), ("mean_top2", True), ("mean_first_last", True)],
)
@pytest.mark.parametrize("backbone", ["tiny_backbone", "tiny_roberta_backbone"])
def test_export_float32_equals_the_model(request, tmp_path, backbone, pooling, transform):
    folder = str(request.getfixturevalue(backbone))
    model = build_bi_encoder(folder, pooling=pooling, transform=transform, max_seq_length=40)
    save(model, tmp_path / "model", order="sentence-first")
    export_onnx(tmp_path / "model", tmp_path / "out", quantize=None)
    pairs = [list(pair) for pair in zip(SENTENCES, CONDITIONS, strict=True)]
    expected = model.encode(pairs, normalize_embeddings=True)
    found = OnnxScorer(tmp_path / "out", threads=1).encode(SENTENCES, CONDITIONS)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_export_int8_near_the_model_and_independent_of_the_batch(source, tmp_path):
    result = export_onnx(source, tmp_path / "out")
    assert result.cosine_worst > 0.99
    assert 0 <= result.change_mean <= result.change_worst < 0.1
    scorer = OnnxScorer(tmp_path / "out", threads=1)
    model = SentenceTransformer(str(source), device="cpu")
    pairs = [list(pair) for pair in zip(CONDITIONS, SENTENCES, strict=True)]
    expected = model.encode(pairs, normalize_embeddings=True)
    found = scorer.encode(SENTENCES, CONDITIONS)
    assert np.einsum("nd,nd->n", found, expected).min() > 0.99
    alone = [scorer.encode(*pair) for pair in zip(SENTENCES, CONDITIONS, strict=True)]
    np.testing.assert_allclose(found, alone, atol=1e-5)


def test_export_int8_whose_scores_move_takes_a_scale_for_each_token(source, tmp_path):
    fast = export_onnx(source, tmp_path / "fast")
    near = export_onnx(source, tmp_path / "near", largest_change=0.0)
    assert near.change_mean < fast.change_mean
    operators = {
        name: {node.op_type for node in onnx.load(tmp_path / name / "model.onnx").graph.node}
        for name in ("fast", "near")
    }
    assert "ReduceMax" in operators["near"] - operators["fast"]


def test_export_of_a_large_model_has_4_bit_tables_and_no_other_scores_in_a_batch(
    source, tmp_path, monkeypatch
):
    small = export_onnx(source, tmp_path / "small")
    monkeypatch.setattr("condsim.training.export.LARGE_MODEL_PARAMETERS", 0)
    assert export_onnx(source, tmp_path / "out").cosine_mean > min(0.98, small.cosine_mean - 0.02)
    graph = onnx.load(str(tmp_path / "out" / "model.onnx")).graph
    tables = [item for item in graph.initializer if item.data_type == onnx.TensorProto.INT4]
    assert len(tables) >= 2
    scorer = OnnxScorer(tmp_path / "out", threads=1)
    together = scorer.encode(SENTENCES, CONDITIONS)
    alone = [scorer.encode(*pair) for pair in zip(SENTENCES, CONDITIONS, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_export_int8_holds_no_large_float_constant(source, tmp_path):
    result = export_onnx(source, tmp_path / "out")
    graph = onnx.load(str(tmp_path / "out" / "model.onnx")).graph
    floats = [item for item in graph.initializer if item.data_type == onnx.TensorProto.FLOAT]
    assert max(np.prod(item.dims) for item in floats) <= 200
    assert result.size == (tmp_path / "out" / "model.onnx").stat().st_size


def test_export_keeps_what_the_model_says_of_itself(tiny_backbone, tmp_path):
    calibration = Calibration((-1.0, 1.0), (0.0, 1.0))
    save(
        build_bi_encoder(str(tiny_backbone), max_seq_length=40),
        tmp_path / "model",
        order="sentence-first",
        calibration=calibration,
        facts={"dev_spearman": 70.1},
    )
    export_onnx(tmp_path / "model", tmp_path / "out", facts={"license": "Apache-2.0"})
    settings = ModelSettings.load(tmp_path / "out")
    assert (settings.name, settings.order) == ("tiny", "sentence-first")
    assert settings.calibration == calibration
    assert (settings.dimension, settings.max_seq_length) == (32, 40)
    assert settings.facts["dev_spearman"] == 70.1
    assert settings.facts["license"] == "Apache-2.0"
    assert settings.facts["precision"] == "int8"
    assert settings.facts["parameters"] > 1000
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "| dev spearman | 70.1 |" in card
    assert "pair (sentence; condition)" in card
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"model.onnx", "tokenizer.json", "condsim.json", "README.md"}


@pytest.mark.parametrize(
    ("build", "kind"), [(build_tri_encoder, "tri-encoder"), (build_cross_encoder, "cross-encoder")]
)
def test_export_other_kind_refused(tiny_backbone, tmp_path, build, kind):
    model = build(str(tiny_backbone))
    save(model, tmp_path / "model", kind=kind, order="condition-first")
    with pytest.raises(ModelError, match=f"is a {kind}; only a bi-encoder can be exported"):
        export_onnx(tmp_path / "model", tmp_path / "out")
    (tmp_path / "model" / "condsim.json").unlink()
    with pytest.raises(ModelError):
        export_onnx(tmp_path / "model", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_export_bad_options_refused(source, tmp_path):
    with pytest.raises(InputError, match="Unknown quantize 'int4'"):
        export_onnx(source, tmp_path / "out", quantize="int4")
    with pytest.raises(InputError, match="at least one"):
        export_onnx(source, tmp_path / "out", samples=[])
    with pytest.raises(InputError, match="contains no exported model"):
        export_onnx(source, source)


def product_model(weight, bias):
    """``y = x W + b`` as an ONNX model with one float32 input (tokens, K)."""
    helper, constant = onnx.helper, onnx.numpy_helper.from_array
    rows, columns = weight.shape
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["tokens", rows])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["tokens", columns])
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"]),
            helper.make_node("Add", ["b", "xw"], ["y"]),
        ],
        "product",
        [x],
        [y],
        [constant(weight, "w"), constant(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def run_graph(model, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})


@pytest.fixture
def product():
    """A random weight (64, 16), bias (16,) and inputs (200, 64)."""
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in ((64, 16), 16, (200, 64))]


def test_quantize_static_outlier_channel_harms_no_other(product):
    weight, bias, x = product
    x[:, 7] *= 60  # with one scale for all, the others would get 2 levels of 255
    weight[7] /= 60
    (found,) = run_graph(quantize_static(product_model(weight, bias), [{"x": x}]), x)
    expected = x @ weight + bias
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < 0.03


def test_quantize_compact_outlier_token_harms_no_other(product):
    weight, bias, x = product
    x[3] *= 60  # with one scale for all, the others would get 4 levels of 255
    x[4] = 0
    expected = x @ weight + bias
    for quantize, passes in ((quantize_compact, True), (quantize_static, False)):
        (found,) = run_graph(quantize(product_model(weight, bias), [{"x": x}]), x)
        errors = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
        assert (errors.max() < 0.03) == passes


def test_quantize_static_neighboring_weights_cannot_saturate():
    random = np.random.default_rng(1)
    weight = random.normal(0, 1, (63, 16)).astype(np.float32)
    model = product_model(weight, np.zeros(16, np.float32))
    x = random.normal(0, 1, (50, 63)).astype(np.float32)
    constants = {
        item.name: onnx.numpy_helper.to_array(item)
        for item in quantize_static(model, [{"x": x}]).graph.initializer
    }
    stored = constants["xw_weight"].astype(np.int32)
    pairs = np.pad(stored, ((0, 1), (0, 0))).reshape(32, 2, 16)
    # 255 times a pair's sum of one sign must fit in 16 bits.
    assert 255 * np.maximum(pairs, 0).sum(axis=1).max() <= 32767
    assert 255 * np.minimum(pairs, 0).sum(axis=1).min() >= -32768
    assert np.abs(stored).max() > 60
