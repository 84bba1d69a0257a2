"""Rebuilds the float32 encoder behind an exported folder, so that it can be trained further."""

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
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from condsim.errors import ModelError
from condsim.model.backbone import without_progress_bars
from condsim.model.builders import build_bi_encoder
from condsim.model.conditions import conditional_sentences
from condsim.model.onnx import MODEL_FILE, TOKENIZER_FILE, OnnxScorer
from condsim.model.settings import Settings, model_folder
from condsim.training.export import SAMPLES

_NEAR = 0.99  # mean cosine of the samples: int8 keeps 0.996 of MiniLM, another network next to none
_STAGE = "stages.0."  # the transformer; what follows it must have no weights
_SPECIAL = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}

_Arrays = dict[str, NDArray[Any]]


@without_progress_bars()
def restore_onnx(folder: Path | str, output: Path | str) -> SentenceTransformer:
    """Rebuilds an encoder from the folder that `export_onnx` wrote, float32 or int8.

    The weights of an int8 graph come back as whole steps of their quantisation. The activations are
    float32 again, so the rebuilt encoder is a little nearer to the one that was exported.

    Args:
        folder: A folder with ``model.onnx``, of a BERT with mean pooling, such as the bundled one.
        output: The folder to write: what sentence-transformers loads, with ``condsim.json``.

    Raises:
        ModelError: If a file is missing or damaged, or the graph is of another kind.

    Example:
        >>> from condsim.model import DEFAULT_FOLDER
        >>> model = restore_onnx(DEFAULT_FOLDER, "start")  # doctest: +SKIP
    """
    source, target = Path(folder), Path(output)
    scorer = OnnxScorer(source)  # which checks the folder
    graph = onnx.load(str(source / MODEL_FILE))
    weights = _weights(graph)
    length = scorer.settings.max_seq_length or 128
    try:
        network = BertModel(_config(graph, weights))
        state = {name: torch.tensor(one) for name, one in weights.items()}
        for name, one in network.state_dict().items():
            if name.startswith("pooler."):  # unused, and transformers asks for it
                state[name] = torch.zeros_like(one)
        network.load_state_dict(state)
    except (KeyError, StopIteration, RuntimeError, ValueError) as error:
        raise _other_kind(source, next(iter(str(error).splitlines()), "")) from error
    with tempfile.TemporaryDirectory(prefix="condsim-") as checkpoint:
        network.save_pretrained(checkpoint)
        tokenizer = Tokenizer.from_file(str(source / TOKENIZER_FILE))
        PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=tokenizer,
            model_max_length=length,
            model_input_names=[one.name for one in graph.graph.input],
            **_SPECIAL,
        ).save_pretrained(checkpoint)
        model = build_bi_encoder(checkpoint, max_seq_length=length)
    _check(model, scorer, source)
    model.save_pretrained(str(target), create_model_card=False)
    Settings.load(source).save(target)
    return model


def exported_folder(model: Path | str) -> Path | None:
    """Finds the exported folder that a name stands for, such as ``default``; None if none."""
    folder = model_folder(model)
    return folder if (folder / MODEL_FILE).is_file() else None


@contextmanager
def open_backbone(name: str) -> Iterator[str]:
    """Gives what a backbone is loaded from; an exported one is rebuilt in a temporary folder."""
    folder = exported_folder(name)
    if folder is None:
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="condsim-") as rebuilt:
        restore_onnx(folder, rebuilt)
        yield rebuilt


def _weights(graph: ModelProto) -> _Arrays:
    """The weights of the network, by their names in transformers."""
    constants = _constants(graph)

    def array(name: str) -> NDArray[Any]:
        return numpy_helper.to_array(constants[name])

    found: _Arrays = {}
    for node in graph.graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            name = node.input[1].removesuffix("_weight")
            smooth = array(f"{node.input[0].removesuffix('_quantized')}_smooth")  # (K,) is 1 / s
            steps = array(node.input[3])  # (N,)
            found[_dense(name)] = (smooth[:, None] * array(node.input[1]) * steps).T  # (N, K)
        elif node.op_type == "MatMul" and node.input[1] in constants:
            found[_dense(node.output[0])] = array(node.input[1]).T
    for name in constants:
        if name.endswith("_bytes"):
            table = name.removesuffix("_bytes")
            found[_plain(table)] = array(name) * array(f"{table}_steps")
        elif name.startswith(_STAGE) and not name.endswith("_steps"):
            found[_plain(name)] = array(name)
        elif name.startswith("stages.") and not name.startswith(_STAGE):
            raise _other_kind(Path(MODEL_FILE), f"{name} follows the transformer")
    return {name: np.array(one, np.float32) for name, one in found.items()}


def _constants(graph: ModelProto) -> dict[str, TensorProto]:
    """The stored tensors by name; equal weights, such as biases that are all 0, share one."""
    constants = {item.name: item for item in graph.graph.initializer}
    for node in graph.graph.node:
        if node.op_type == "Identity" and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
    return constants


def _plain(name: str) -> str:
    """The name of a weight that kept its own: ``stages.0.model.embeddings...``."""
    return name.removeprefix(_STAGE).removeprefix("model.")


def _dense(product: str) -> str:
    """The name of a weight after its product: ``/stages.0/encoder/layer.0/.../MatMul_output_0``."""
    path = product.removeprefix("/stages.0/").partition("/MatMul")[0]
    return f"{path.replace('/', '.').removeprefix('model.')}.weight"


def _config(graph: ModelProto, weights: _Arrays) -> BertConfig:
    """What the shapes of the weights and the traced nodes say of the network."""
    words, hidden = weights["embeddings.word_embeddings.weight"].shape
    layers = {int(one) for one in re.findall(r"encoder\.layer\.(\d+)\.", " ".join(weights))}
    nodes = {name: node for node in graph.graph.node for name in node.output}
    norm = next(node for node in graph.graph.node if node.op_type == "LayerNormalization")
    epsilon = next((one.f for one in norm.attribute if one.name == "epsilon"), 1e-5)
    return BertConfig(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=len(layers),
        num_attention_heads=hidden // _head_width(graph, nodes),
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        layer_norm_eps=float(f"{epsilon:.3g}"),
    )


def _head_width(graph: ModelProto, nodes: dict[str, NodeProto]) -> int:
    """The last dimension that the queries of the first layer are reshaped to."""
    reshape = next(
        node
        for node in graph.graph.node
        if node.op_type == "Reshape" and "/self/query/" in node.input[0]
    )
    shape = nodes[reshape.input[1]]
    last = nodes[shape.input[-1]] if shape.op_type == "Concat" else shape
    value = next(one.t for one in last.attribute if one.name == "value")
    return int(numpy_helper.to_array(value).ravel()[-1])


def _check(model: SentenceTransformer, scorer: OnnxScorer, source: Path) -> None:
    """Refuses an encoder whose embeddings are not those of the folder."""
    sentences, conditions = zip(*SAMPLES, strict=True)
    pairs = conditional_sentences(sentences, conditions, order=scorer.order)
    model.eval()
    rebuilt = model.encode(pairs, normalize_embeddings=True, show_progress_bar=False)
    expected = scorer.encode(sentences, conditions)
    cosine = float(np.einsum("nd,nd->n", np.asarray(rebuilt), expected).mean())
    if cosine < _NEAR:
        raise _other_kind(source, f"its mean cosine to the graph is {cosine:.3f}")


def _other_kind(source: Path, reason: str) -> ModelError:
    return ModelError(
        f"{source} cannot be rebuilt as a BERT with mean pooling ({reason}). Give the folder that "
        "'condsim train' wrote, before its export."
    )
