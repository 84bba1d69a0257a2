"""Static int8 quantization of an ONNX encoder, with smoothed activations.

Dynamic quantization, the usual choice, takes one scale for all activations of a batch, so the score
of a row moves with its neighbors (by up to 0.04 for MiniLM), and a few outlier channels use most
of the 256 levels. Here activation scales are fixed beforehand on sample texts and outliers are
moved into the weights (SmoothQuant, Xiao et al., 2023, Eq. 3 and 4): ``x W = (x / s) (s W)``. A row
then has the same score in any batch, and embeddings are nearer to float32.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

# Share of an outlier that moves into the weights; the best of 0.4 to 1 for MiniLM.
SMOOTHING_ALPHA = 0.75

# Floor of magnitudes, so that a dead channel does not divide by zero.
MIN_MAGNITUDE = 1e-4

# A gathered table with more numbers is an embedding that is worth quantizing.
MAX_PLAIN_NUMBERS = 512

# Domain of ONNX Runtime's own operators.
MICROSOFT = "com.microsoft"

Float32Array = NDArray[np.float32]
Batches = Iterable[Mapping[str, NDArray[np.int64]]]


def quantize_static(model: ModelProto, samples: Batches) -> ModelProto:
    """Quantize matrix products and embedding tables to 8 bits.

    Activations are unsigned, with one fixed scale and zero point per product. Weights have one
    scale per output channel, embedding tables one per row.
    """
    products = products_of(model)
    ranges = _channel_ranges(model, list(products), samples)
    # New nodes by the first output of the node that they replace.
    replacement: dict[str, list[NodeProto]] = {}
    added: list[TensorProto] = []
    biases = _biases(model)
    constants = {item.name: item for item in model.graph.initializer}
    for activation, nodes in products.items():
        weights = [numpy_helper.to_array(constants[node.input[1]]) for node in nodes]
        added += _quantized_products(
            replacement, activation, nodes, weights, biases, *ranges[activation]
        )
    for node, table in table_lookups(model):
        replacement[node.output[0]], tensors = quantized_lookup(node, table)
        added += tensors
    return replace_nodes(model, replacement, added)


def products_of(model: ModelProto) -> dict[str, list[NodeProto]]:
    """Find the products with a constant matrix, by the activation that they read."""
    constants = {item.name for item in model.graph.initializer}
    products: dict[str, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            products[node.input[0]].append(node)
    return products


def table_lookups(model: ModelProto) -> Iterator[tuple[NodeProto, TensorProto]]:
    """Find the lookups in an embedding table, with the table."""
    constants = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        table = constants.get(node.input[0]) if node.op_type == "Gather" else None
        if table is not None and _is_embedding_table(table):
            yield node, table


def activation_values(
    model: ModelProto, names: list[str], samples: Batches
) -> Iterator[tuple[str, Float32Array]]:
    """Run the model; yield each activation of each batch, ``(tokens, K)``."""
    probe = ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for batch in samples:
        for name, value in zip(names, session.run(names, dict(batch)), strict=True):
            yield name, value.reshape(-1, value.shape[-1])


def _channel_ranges(
    model: ModelProto, activations: list[str], samples: Batches
) -> dict[str, tuple[Float32Array, Float32Array]]:
    """Measure the lowest and highest value of each activation's channels, ``(K,)``."""
    ranges: dict[str, tuple[Float32Array, Float32Array]] = {}
    for name, tokens in activation_values(model, activations, samples):
        low, high = tokens.min(axis=0), tokens.max(axis=0)
        lowest, highest = ranges.get(name, (low, high))
        ranges[name] = np.minimum(lowest, low), np.maximum(highest, high)
    return ranges


def _biases(model: ModelProto) -> dict[str, tuple[NodeProto, str]]:
    """Find the additions of a constant vector to a product that nothing else reads."""
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            readers[name].append(node)
    vectors = {item.name for item in model.graph.initializer if len(item.dims) == 1}
    biases = {}
    for product, nodes in readers.items():
        if len(nodes) == 1 and nodes[0].op_type == "Add":
            addends = [name for name in nodes[0].input if name != product]
            if len(addends) == 1 and addends[0] in vectors:
                biases[product] = (nodes[0], addends[0])
    return biases


def _quantized_products(
    replacement: dict[str, list[NodeProto]],
    activation: str,
    nodes: list[NodeProto],
    weights: list[Float32Array],
    biases: Mapping[str, tuple[NodeProto, str]],
    low: Float32Array,
    high: Float32Array,
) -> list[TensorProto]:
    """Replace products that read one activation, which is smoothed and quantized once for all."""
    smooth = _smoothing(weights, np.maximum(np.abs(low), np.abs(high)))  # (K,)
    floor, ceiling = min(0.0, float((low / smooth).min())), max(0.0, float((high / smooth).max()))
    scale = max(ceiling - floor, MIN_MAGNITUDE) / 255
    smoothed, quantized = f"{activation}_smoothed", f"{activation}_quantized"
    smooth_name, scale_name, zero_name = (
        f"{activation}_{part}" for part in ("smooth", "scale", "zero")
    )
    tensors = [
        numpy_helper.from_array((1 / smooth).astype(np.float32), smooth_name),
        numpy_helper.from_array(np.array(scale, np.float32), scale_name),
        numpy_helper.from_array(np.array(round(-floor / scale), np.uint8), zero_name),
    ]
    before = [
        helper.make_node("Mul", [activation, smooth_name], [smoothed]),
        helper.make_node("QuantizeLinear", [smoothed, scale_name, zero_name], [quantized]),
    ]
    for node, weight in zip(nodes, weights, strict=True):
        name = node.output[0]
        tensors += quantized_weight(name, weight * smooth[:, None])
        inputs = [quantized, f"{name}_weight", scale_name, f"{name}_steps", zero_name]
        output = name
        if name in biases:
            addition, bias = biases[name]
            inputs += ["", bias]
            output = addition.output[0]
            replacement[output] = []
        product = helper.make_node("MatMulIntegerToFloat", inputs, [output], domain=MICROSOFT)
        replacement[name] = [*before, product]
        before = []
    return tensors


def _smoothing(weights: list[Float32Array], magnitude: Float32Array) -> Float32Array:
    """Factors of SmoothQuant, ``(K,)``: ``max|x|^alpha / max|w|^(1 - alpha)`` of each channel."""
    weight = np.maximum.reduce([np.abs(array).max(axis=1) for array in weights])  # (K,)
    factors = np.maximum(magnitude, MIN_MAGNITUDE) ** SMOOTHING_ALPHA / np.maximum(
        weight, MIN_MAGNITUDE
    ) ** (1 - SMOOTHING_ALPHA)
    smooth: Float32Array = (factors / factors.mean()).astype(np.float32)
    return smooth


def quantized_weight(name: str, weight: Float32Array) -> list[TensorProto]:
    """Quantize the matrix of a product, ``(K, N)``, with a scale per output channel."""
    steps = _weight_steps(weight)  # (N,)
    return [
        numpy_helper.from_array(np.rint(weight / steps).astype(np.int8), f"{name}_weight"),
        numpy_helper.from_array(steps, f"{name}_steps"),
    ]


def _weight_steps(weight: Float32Array) -> Float32Array:
    """Scale of each output channel, ``(N,)``, so that no processor saturates."""
    # x86 without VNNI instructions adds two neighboring products of a byte and a signed byte in 16
    # bits. With a pair of weights that sum to 128 at most, 255 times that still fits.
    even = np.pad(weight, ((0, weight.shape[0] % 2), (0, 0)))
    pairs = even.reshape(-1, 2, weight.shape[1])  # (K / 2, 2, N)
    positive, negative = np.maximum(pairs, 0).sum(axis=1), np.maximum(-pairs, 0).sum(axis=1)
    largest = np.maximum(positive, negative).max(axis=0)
    steps: Float32Array = (np.maximum(largest, MIN_MAGNITUDE**2) / 127).astype(np.float32)
    return steps


def _is_embedding_table(tensor: TensorProto) -> bool:
    return (
        tensor.data_type == TensorProto.FLOAT
        and len(tensor.dims) == 2
        and tensor.dims[0] * tensor.dims[1] > MAX_PLAIN_NUMBERS
    )


def quantized_lookup(
    node: NodeProto, tensor: TensorProto
) -> tuple[list[NodeProto], list[TensorProto]]:
    """Replace a lookup in an embedding table by one of bytes and one of their scales."""
    table = numpy_helper.to_array(tensor)  # (rows, d)
    steps = (
        np.maximum(np.abs(table).max(axis=1, keepdims=True), MIN_MAGNITUDE**2) / 127
    )  # (rows, 1)
    name, out = tensor.name, node.output[0]
    constants = [
        numpy_helper.from_array(np.rint(table / steps).astype(np.int8), f"{name}_bytes"),
        numpy_helper.from_array(steps.astype(np.float32), f"{name}_steps"),
    ]
    nodes = [
        helper.make_node("Gather", [f"{name}_bytes", node.input[1]], [f"{out}_bytes"]),
        helper.make_node("Gather", [f"{name}_steps", node.input[1]], [f"{out}_steps"]),
        helper.make_node("Cast", [f"{out}_bytes"], [f"{out}_floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{out}_floats", f"{out}_steps"], [out]),
    ]
    return nodes, constants


def replace_nodes(
    model: ModelProto, replacement: Mapping[str, list[NodeProto]], added: list[TensorProto]
) -> ModelProto:
    """Copy a model with new nodes in the place of old ones, without constants nothing reads."""
    result = ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes += replacement.get(node.output[0], [node])
    inputs: set[str] = {name for node in nodes for name in node.input}
    constants: dict[str, Any] = {item.name: item for item in [*graph.initializer, *added]}
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(item for name, item in constants.items() if name in inputs)
    if all(entry.domain != MICROSOFT for entry in result.opset_import):
        result.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return result
