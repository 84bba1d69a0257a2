"""Static int8 quantisation of an ONNX encoder, with smoothed activations.

Dynamic quantisation, the usual choice, takes one scale for all activations of a batch, so the score
of a row moves with its neighbours (by up to 0.04 for MiniLM), and a few outlier channels use most
of the 256 levels. Here activation scales are fixed beforehand on sample texts and outliers are
moved into the weights (SmoothQuant, Xiao et al., 2023, Eq. 3 and 4): ``x W = (x / s) (s W)``. A row
then has the same score in any batch, and embeddings are nearer to float32.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

# Share of an outlier that moves into the weights; the best of 0.4 to 1 for MiniLM.
SMOOTHING_ALPHA = 0.75

# Floor of magnitudes, so that a dead channel does not divide by zero.
MIN_MAGNITUDE = 1e-4

# A gathered table with more numbers is an embedding that is worth quantising.
MAX_PLAIN_NUMBERS = 512

# Numbers of a 4-bit table that share a scale.
TABLE_BLOCK = 64

Float32Array = NDArray[np.float32]


def quantize_static(
    model: ModelProto,
    samples: Iterable[Mapping[str, NDArray[np.int64]]],
    *,
    table_bits: Literal[4, 8] = 8,
) -> ModelProto:
    """Quantise matrix products to 8 bits, and embedding tables to 8 or 4.

    Activations are unsigned, with one fixed scale and zero point per product. Weights have one
    scale per output channel, embedding tables one per row, or with 4 bits per block of a row.
    """
    result = ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    constants = {item.name: item for item in graph.initializer}
    # Products by the activation that they read.
    products: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            products[node.input[0]].append(node)
    ranges = _channel_ranges(model, list(products), samples)
    # New nodes by the first output of the node that they replace.
    replacement: dict[str, list[NodeProto]] = {}
    added: list[TensorProto] = []
    biases = _biases(model)
    for activation, nodes in products.items():
        weights = [numpy_helper.to_array(constants[node.input[1]]) for node in nodes]
        added += _quantized_products(
            replacement, activation, nodes, weights, biases, *ranges[activation]
        )
    for node in graph.node:
        table = constants.get(node.input[0]) if node.op_type == "Gather" else None
        if table is not None and _is_embedding_table(table):
            lookup = _block_lookup if table_bits == 4 else _quantized_lookup
            replacement[node.output[0]], tensors = lookup(node, table)
            added += tensors
    _replace(result, replacement, added)
    return result


def _channel_ranges(
    model: ModelProto, activations: list[str], samples: Iterable[Mapping[str, NDArray[np.int64]]]
) -> dict[str, tuple[Float32Array, Float32Array]]:
    """Run the model; return lowest and highest value of each activation's channels, ``(K,)``."""
    probe = ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in activations)
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    lows: dict[str, Float32Array] = {}
    highs: dict[str, Float32Array] = {}
    for batch in samples:
        for name, value in zip(activations, session.run(activations, dict(batch)), strict=True):
            flat = value.reshape(-1, value.shape[-1])  # (tokens, K)
            low, high = flat.min(axis=0), flat.max(axis=0)
            lows[name] = np.minimum(lows.get(name, low), low)
            highs[name] = np.maximum(highs.get(name, high), high)
    return {name: (lows[name], highs[name]) for name in activations}


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
    """Replace products that read one activation, which is smoothed and quantised once for all."""
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
        scaled = weight * smooth[:, None]  # (K, N)
        steps = _weight_steps(scaled)  # (N,)
        name = node.output[0]
        tensors += [
            numpy_helper.from_array(np.rint(scaled / steps).astype(np.int8), f"{name}_weight"),
            numpy_helper.from_array(steps.astype(np.float32), f"{name}_steps"),
        ]
        inputs = [quantized, f"{name}_weight", scale_name, f"{name}_steps", zero_name]
        output = name
        if name in biases:
            addition, bias = biases[name]
            inputs += ["", bias]
            output = addition.output[0]
            replacement[output] = []
        product = helper.make_node("MatMulIntegerToFloat", inputs, [output], domain="com.microsoft")
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


def _weight_steps(weight: Float32Array) -> Float32Array:
    """Scale of each output channel, ``(N,)``, so that no processor saturates."""
    # x86 without VNNI instructions adds two neighbouring products of a byte and a signed byte in 16
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


def _quantized_lookup(
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


def _block_lookup(
    node: NodeProto, tensor: TensorProto
) -> tuple[list[NodeProto], list[TensorProto]]:
    """Replace a lookup in an embedding table by one in 4-bit numbers with a scale per block."""
    table = numpy_helper.to_array(tensor)  # (rows, d)
    blocks = table.reshape(len(table), -1, TABLE_BLOCK)
    steps = np.maximum(np.abs(blocks).max(axis=2), MIN_MAGNITUDE**2) / 7  # (rows, d / block)
    numbers = np.rint(blocks / steps[..., None]).astype(np.int8).reshape(table.shape)
    # Two numbers share a byte, the first in its lower half.
    packed = (numbers[:, 0::2] & 0xF) | ((numbers[:, 1::2] & 0xF) << 4)
    name = tensor.name
    constants = [
        TensorProto(
            name=f"{name}_int4",
            data_type=TensorProto.INT4,
            dims=table.shape,
            raw_data=packed.astype(np.uint8).tobytes(),
        ),
        numpy_helper.from_array(steps.astype(np.float32), f"{name}_steps"),
    ]
    lookup = helper.make_node(
        "GatherBlockQuantized",
        [f"{name}_int4", node.input[1], f"{name}_steps"],
        [node.output[0]],
        domain="com.microsoft",
        gather_axis=0,
        quantize_axis=1,
        block_size=TABLE_BLOCK,
    )
    return [lookup], constants


def _replace(
    model: ModelProto, replacement: Mapping[str, list[NodeProto]], added: list[TensorProto]
) -> None:
    """Put new nodes in the place of old ones and drop constants that nothing reads."""
    graph = model.graph
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes += replacement.get(node.output[0], [node])
    inputs: set[str] = {name for node in nodes for name in node.input}
    constants: dict[str, Any] = {item.name: item for item in [*graph.initializer, *added]}
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(item for name, item in constants.items() if name in inputs)
    if all(entry.domain != "com.microsoft" for entry in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
