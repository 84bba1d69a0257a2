"""Float32 encoder behind an exported folder, rebuilt so that it can be trained further."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from condsim.errors import ModelError, one_line
from condsim.model.builders import build_bi_encoder, without_progress_bars
from condsim.model.inputs import conditional_sentences
from condsim.model.onnx import MODEL_FILE, TOKENIZER_FILE, OnnxScorer
from condsim.model.settings import ModelSettings, model_folder
from condsim.training.export import SAMPLES

# Lowest mean cosine of the samples: int8 keeps 0.996 of MiniLM, another network next to none.
MIN_MEAN_COSINE = 0.99

# Names in the graph begin so in the transformer; modules after it must have no weights.
TRANSFORMER_STAGE = "stages.0."

SPECIAL_TOKENS = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}

Arrays = dict[str, NDArray[Any]]


@without_progress_bars()
def restore_onnx(folder: Path | str, output: Path | str) -> SentenceTransformer:
    """Rebuild an encoder from the folder that `export_onnx` wrote, float32 or int8.

    The weights of an int8 graph are whole steps of their quantization. The activations are float32
    again, so the rebuilt encoder is a little nearer to the one that was exported.

    The graph must be of a BERT with mean pooling, such as the default model. The output is a folder
    that sentence-transformers loads, with ``condsim.json``.
    """
    source = Path(folder)
    # The scorer checks the folder.
    scorer = OnnxScorer(source)
    length = scorer.settings.max_seq_length or 128
    message = f"{source} cannot be rebuilt as a BERT with mean pooling"
    advice = "Give the folder that 'condsim train' wrote, before its export."
    causes = (KeyError, StopIteration, RuntimeError, ValueError)
    with one_line(message, *causes, advice=advice, kind=ModelError):
        graph = onnx.load(str(source / MODEL_FILE))
        constants = _constants(graph)
        weights = _network_weights(graph, constants)
        network = BertModel(_bert_config(graph, weights))
        state = {name: torch.tensor(array) for name, array in weights.items()}
        # BERT's own pooler is unused, and transformers expects its weights.
        for name, value in network.state_dict().items():
            if name.startswith("pooler."):
                state[name] = torch.zeros_like(value)
        network.load_state_dict(state)
        with tempfile.TemporaryDirectory(prefix="condsim-") as checkpoint:
            network.save_pretrained(checkpoint)
            PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
                tokenizer_object=Tokenizer.from_file(str(source / TOKENIZER_FILE)),
                model_max_length=length,
                model_input_names=[tensor.name for tensor in graph.graph.input],
                **SPECIAL_TOKENS,
            ).save_pretrained(checkpoint)
            model = build_bi_encoder(checkpoint, max_seq_length=length)
        _check_embeddings(model, scorer)
    model.save_pretrained(str(output), create_model_card=False)
    ModelSettings.load(source).save(Path(output))
    return model


@contextmanager
def open_backbone(name: str) -> Iterator[str]:
    """Yield the name or folder to load a backbone from; an exported one is rebuilt temporarily."""
    folder = model_folder(name)
    if not (folder / MODEL_FILE).is_file():
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="condsim-") as rebuilt:
        restore_onnx(folder, rebuilt)
        yield rebuilt


def _constants(graph: ModelProto) -> Arrays:
    """Stored arrays by name; equal weights, such as biases that are all 0, share one."""
    constants = {item.name: numpy_helper.to_array(item) for item in graph.graph.initializer}
    for node in graph.graph.node:
        if node.op_type == "Identity" and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
        # Vectors of a compact graph are float16.
        elif node.op_type == "Cast" and node.input[0] in constants:
            constants[node.output[0]] = constants.pop(node.input[0])
    return constants


def _network_weights(graph: ModelProto, constants: Arrays) -> Arrays:
    """Weights of the network, by their names in transformers."""
    weights: Arrays = {}
    for node in graph.graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            product = node.input[1].removesuffix("_weight")
            activation = node.input[0].removesuffix("_quantized").removesuffix("_rest")
            smooth = constants[f"{activation}_smooth"]  # (K,)
            steps = constants[node.input[3]]  # (N,)
            quantized = constants[node.input[1]]  # (K, N)
            weights[_dense_name(product)] = (smooth[:, None] * quantized * steps).T  # (N, K)
        elif node.op_type == "MatMul" and node.input[1] in constants:
            weights[_dense_name(node.output[0])] = constants[node.input[1]].T
    for name, array in constants.items():
        if name.endswith("_bytes"):
            table = name.removesuffix("_bytes")
            weights[_plain_name(table)] = array * constants[f"{table}_steps"]
        elif name.endswith("_int4"):
            table = name.removesuffix("_int4")
            steps = constants[f"{table}_steps"].astype(np.float32)[..., None]
            blocks = array.astype(np.float32).reshape(*steps.shape[:2], -1)
            weights[_plain_name(table)] = (blocks * steps).reshape(array.shape)
        elif name.startswith(TRANSFORMER_STAGE) and not name.endswith("_steps"):
            weights[_plain_name(name)] = array
        elif name.startswith("stages.") and not name.startswith(TRANSFORMER_STAGE):
            raise ValueError(f"{name} follows the transformer")
    return {name: np.array(array, np.float32) for name, array in weights.items()}


def _plain_name(name: str) -> str:
    """Name in transformers of a weight that kept its own: ``stages.0.model.embeddings...``."""
    return name.removeprefix(TRANSFORMER_STAGE).removeprefix("model.")


def _dense_name(product: str) -> str:
    """Name of the weight of a product: ``/stages.0/encoder/layer.0/.../MatMul_output_0``."""
    path = product.removeprefix("/stages.0/").partition("/MatMul")[0]
    return f"{path.replace('/', '.').removeprefix('model.')}.weight"


def _bert_config(graph: ModelProto, weights: Arrays) -> BertConfig:
    """Derive the configuration from the shapes of the weights and from the traced nodes."""
    words, hidden = weights["embeddings.word_embeddings.weight"].shape
    layers = {int(index) for index in re.findall(r"encoder\.layer\.(\d+)\.", " ".join(weights))}
    norm = next(node for node in graph.graph.node if node.op_type == "LayerNormalization")
    epsilons = [attribute.f for attribute in norm.attribute if attribute.name == "epsilon"]
    return BertConfig(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=len(layers),
        num_attention_heads=hidden // _head_width(graph),
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        layer_norm_eps=float(f"{epsilons[0] if epsilons else 1e-5:.3g}"),
    )


def _head_width(graph: ModelProto) -> int:
    """Last dimension that the queries of the first layer are reshaped to."""
    nodes = {name: node for node in graph.graph.node for name in node.output}
    reshape = next(
        node
        for node in graph.graph.node
        if node.op_type == "Reshape" and "/self/query/" in node.input[0]
    )
    shape = nodes[reshape.input[1]]
    last = nodes[shape.input[-1]] if shape.op_type == "Concat" else shape
    value = next(attribute.t for attribute in last.attribute if attribute.name == "value")
    return int(numpy_helper.to_array(value).ravel()[-1])


def _check_embeddings(model: SentenceTransformer, scorer: OnnxScorer) -> None:
    """Refuse an encoder whose embeddings are not those of the graph."""
    sentences, conditions = zip(*SAMPLES, strict=True)
    pairs = conditional_sentences(sentences, conditions, order=scorer.order)
    rebuilt = model.eval().encode(pairs, normalize_embeddings=True, show_progress_bar=False)
    expected = scorer.encode(sentences, conditions)
    cosine = float(np.einsum("nd,nd->n", np.asarray(rebuilt), expected).mean())
    if cosine < MIN_MEAN_COSINE:
        raise ValueError(f"its mean cosine to the graph is {cosine:.3f}")
