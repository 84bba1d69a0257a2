"""Compact int8 quantization of a large ONNX encoder: a scale per token and 4-bit tables.

In a large model one token of a text may have activations forty times as large as all others, which
no fixed scale fits. Here each token has a separate scale, so a row still has the same score in any
batch. Errors in queries and keys weigh most, so the activations that several products read are
stored twice, as 8 bits and as 8 bits of what these left out. Embedding tables have 4 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from condsim.training.quantize import (
    MAX_PLAIN_NUMBERS,
    MICROSOFT,
    MIN_MAGNITUDE,
    Batches,
    Float32Array,
    activation_values,
    products_of,
    quantized_lookup,
    quantized_weight,
    replace_nodes,
    table_lookups,
)

# Share of a channel's size that moves into the weights; the best of 0.3 to 0.5 for MPNet.
SMOOTHING_ALPHA = 0.45

# Numbers of a 4-bit table that share a scale.
TABLE_BLOCK = 32


def quantize_compact(model: ModelProto, samples: Batches) -> ModelProto:
    """Quantize matrix products to 8 bits and embedding tables to 4.

    Activations are unsigned, with one scale per token and one fixed zero point per product. Weights
    have one scale per output channel, embedding tables one per block of a row.
    """
    products = products_of(model)
    zero = np.zeros(1, np.float32)
    channels = {name: _Channels(zero, zero, zero) for name in products}
    for name, tokens in activation_values(model, list(products), samples):
        channels[name].add(tokens)
    constants = {item.name: item for item in model.graph.initializer}
    # New nodes by the first output of the node that they replace.
    replacement: dict[str, list[NodeProto]] = {}
    added: list[TensorProto] = []
    for activation, nodes in products.items():
        weights = [numpy_helper.to_array(constants[node.input[1]]) for node in nodes]
        added += _quantized_products(replacement, activation, nodes, weights, channels[activation])
    for node, table in table_lookups(model):
        lookup = quantized_lookup if table.dims[1] % TABLE_BLOCK else _block_lookup
        replacement[node.output[0]], tensors = lookup(node, table)
        added += tensors
    result = replace_nodes(model, replacement, added)
    _halve_vectors(result)
    return result


@dataclass
class _Channels:
    """Channels of an activation, each token divided by its largest magnitude; all ``(K,)``."""

    low: Float32Array
    high: Float32Array
    squares: Float32Array

    def add(self, tokens: Float32Array) -> None:
        """Take in the tokens of a batch, ``(tokens, K)``."""
        tokens = tokens / np.maximum(np.abs(tokens).max(axis=1, keepdims=True), MIN_MAGNITUDE)
        self.low = np.minimum(self.low, tokens.min(axis=0))
        self.high = np.maximum(self.high, tokens.max(axis=0))
        self.squares = self.squares + np.square(tokens).sum(axis=0)


def _quantized_products(
    replacement: dict[str, list[NodeProto]],
    activation: str,
    nodes: list[NodeProto],
    weights: list[Float32Array],
    channels: _Channels,
) -> list[TensorProto]:
    """Replace products that read one activation, which is smoothed and quantized once for all."""
    smooth = _smoothing(weights, channels.squares)  # (K,)
    low, high = float((-channels.low / smooth).mean()), float((channels.high / smooth).mean())
    zero = min(max(round(255 * low / max(low + high, MIN_MAGNITUDE)), 1), 254)
    constants = {
        "smooth": (1 / smooth).astype(np.float32),
        "zero": np.uint8(zero),
        "above": np.float32(1 / (255 - zero)),
        "below": np.float32(-1 / zero),
        # A token of zeros must not divide by zero.
        "least": np.float32(MIN_MAGNITUDE**2),
        "one": np.float32(1),
        "part": np.float32(1 / 255),
        "middle": np.uint8(128),
    }
    tensors = [
        numpy_helper.from_array(np.asarray(value), f"{activation}_{name}")
        for name, value in constants.items()
    ]

    def operation(kind: str, inputs: str, output: str) -> NodeProto:
        names = [f"{activation}_{name}" for name in inputs.split()]
        return helper.make_node(kind, names, [f"{activation}_{output}"])

    before = [
        helper.make_node("Mul", [activation, f"{activation}_smooth"], [f"{activation}_smoothed"]),
        *(
            helper.make_node(kind, [f"{activation}_smoothed"], [f"{activation}_{name}"], axes=[-1])
            for kind, name in (("ReduceMax", "high"), ("ReduceMin", "low"))
        ),
        operation("Mul", "high above", "step_above"),
        operation("Mul", "low below", "step_below"),
        operation("Max", "step_above step_below least", "step"),
        operation("Div", "smoothed step", "scaled"),
        operation("QuantizeLinear", "scaled one zero", "quantized"),
    ]
    parts = [("quantized", "one", "zero")]
    if len(nodes) > 1:
        parts.append(("rest_quantized", "part", "middle"))
        before += [
            operation("DequantizeLinear", "quantized one zero", "rounded"),
            operation("Sub", "scaled rounded", "rest"),
            operation("QuantizeLinear", "rest part middle", "rest_quantized"),
        ]
    for node, weight in zip(nodes, weights, strict=True):
        name = node.output[0]
        tensors += quantized_weight(name, weight * smooth[:, None])
        products = []
        for quantized, scale, middle in parts:
            inputs = [f"{activation}_{quantized}", f"{name}_weight", f"{activation}_{scale}"]
            inputs += [f"{name}_steps", f"{activation}_{middle}"]
            output = [f"{name}_{quantized}"]
            products.append(
                helper.make_node("MatMulIntegerToFloat", inputs, output, domain=MICROSOFT)
            )
        outputs = [product.output[0] for product in products]
        replacement[name] = [
            *before,
            *products,
            helper.make_node("Sum", outputs, [f"{name}_scaled"]),
            helper.make_node("Mul", [f"{name}_scaled", f"{activation}_step"], [name]),
        ]
        before = []
    return tensors


def _smoothing(weights: list[Float32Array], squares: Float32Array) -> Float32Array:
    """Factors ``|x|^alpha / |w|^(1 - alpha)`` of the root mean squares of channels, ``(K,)``."""
    rows = np.square(np.concatenate(weights, axis=1)).sum(axis=1)  # (K,)
    x, w = (
        np.sqrt(np.maximum(sums / max(sums.max(), MIN_MAGNITUDE), MIN_MAGNITUDE**2))
        for sums in (squares, rows)
    )
    factors = x**SMOOTHING_ALPHA / w ** (1 - SMOOTHING_ALPHA)
    smooth: Float32Array = (factors / factors.mean()).astype(np.float32)
    return smooth


def _block_lookup(
    node: NodeProto, tensor: TensorProto
) -> tuple[list[NodeProto], list[TensorProto]]:
    """Replace a lookup in an embedding table by one in 4-bit numbers with a scale per block."""
    table = numpy_helper.to_array(tensor)  # (rows, d)
    blocks = table.reshape(len(table), -1, TABLE_BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=2)[..., None], axis=2)
    # Numbers are -8 to 7; the sign of the scale makes the largest of a block -8.
    steps = (largest / -8).astype(np.float16)  # (rows, d / block, 1)
    steps[steps == 0] = 1
    rounded = np.rint(blocks / steps.astype(np.float32))
    numbers = np.clip(rounded, -8, 7).astype(np.int8).reshape(table.shape)
    # Two numbers share a byte, the first in its lower half.
    packed = (numbers[:, 0::2] & 0xF) | ((numbers[:, 1::2] & 0xF) << 4)
    name, output = tensor.name, node.output[0]
    constants = [
        TensorProto(
            name=f"{name}_int4",
            data_type=TensorProto.INT4,
            dims=table.shape,
            raw_data=packed.astype(np.uint8).tobytes(),
        ),
        numpy_helper.from_array(steps[..., 0], f"{name}_steps"),
    ]
    lookup = helper.make_node(
        "GatherBlockQuantized",
        [f"{name}_int4", node.input[1], f"{name}_steps"],
        [f"{output}_half"],
        domain=MICROSOFT,
        gather_axis=0,
        quantize_axis=1,
        block_size=TABLE_BLOCK,
    )
    return [lookup, _to_float32(f"{output}_half", output)], constants


def _halve_vectors(model: ModelProto) -> None:
    """Store biases and scales as float16; ONNX Runtime makes them float32 when it loads."""
    casts = []
    for tensor in model.graph.initializer:
        large = len(tensor.dims) == 1 and tensor.dims[0] > MAX_PLAIN_NUMBERS
        if large and tensor.data_type == TensorProto.FLOAT:
            name = tensor.name
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, f"{name}_half"))
            casts.append(_to_float32(f"{name}_half", name))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _to_float32(name: str, output: str) -> NodeProto:
    return helper.make_node("Cast", [name], [output], to=TensorProto.FLOAT)
