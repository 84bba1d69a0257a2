"""Int8 quantization of an ONNX encoder, with smoothed activations.

Dynamic quantization, the usual choice, takes one scale for all activations of a batch, so the score
of a row moves with its neighbors (by up to 0.04 for MiniLM), and a few outlier channels use most
of the 256 levels. Here outliers are moved into the weights (SmoothQuant, Xiao et al., 2023, Eq. 3
and 4): ``x W = (x / s) (s W)``, and a row has the same score in any batch.

`quantize_static` fixes the activation scales beforehand on sample texts. In a large model one token
of a text may have activations forty times as large as all others, which no fixed scale fits:
`quantize_compact` takes a scale for each token. Errors in queries and keys weigh most, so it stores
the activations that several products read twice, as 8 bits and as 8 bits of what these left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

# Share of an outlier that moves into the weights; the best of 0.4 to 1 for MiniLM.
STATIC_ALPHA = 0.75

# Shares of a channel's size that move into the weights: the best of 0.3 to 0.5 for MPNet, and of
# 0.35 to 0.55 for MiniLM.
COMPACT_ALPHA, TOKEN_ALPHA = 0.45, 0.55

# Floor of magnitudes, so that a dead channel does not divide by zero.
MIN_MAGNITUDE = 1e-4

# A gathered table with more numbers is an embedding that is worth quantizing.
MAX_PLAIN_NUMBERS = 512

# Numbers of a 4-bit table that share a scale.
TABLE_BLOCK = 32

# Domain of ONNX Runtime's own operators.
MICROSOFT = "com.microsoft"

Float32Array = NDArray[np.float32]
Batches = Iterable[Mapping[str, NDArray[np.int64]]]
Channels = tuple[Float32Array, Float32Array, Float32Array]
"""Lowest value, highest value and sum of squares of an activation's channels, ``(K,)`` each."""

Parts = tuple[list[NodeProto], list[TensorProto]]
Replacement = dict[str, list[NodeProto]]
"""New nodes by the first output of the node that they replace."""


def quantize_static(model: ModelProto, samples: Batches) -> ModelProto:
    """Quantize matrix products and embedding tables to 8 bits.

    Activations are unsigned, with one fixed scale and zero point per product. Weights have one
    scale per output channel, embedding tables one per row.
    """
    products = partial(_fixed_scale_products, biases=_biases(model))
    return _quantized(model, samples, products, _byte_lookup)


def quantize_by_token(model: ModelProto, samples: Batches) -> ModelProto:
    """Quantize as `quantize_static`, with one activation scale per token: nearer, and slower."""
    products = partial(_token_scale_products, alpha=TOKEN_ALPHA)
    return _quantized(model, samples, products, _byte_lookup, per_token=True)


def quantize_compact(model: ModelProto, samples: Batches) -> ModelProto:
    """Quantize matrix products to 8 bits and embedding tables to 4.

    Activations are unsigned, with one scale per token and one fixed zero point per product. Weights
    have one scale per output channel, embedding tables one per block of a row.
    """
    result = _quantized(model, samples, _token_scale_products, _block_lookup, per_token=True)
    _halve_vectors(result)
    return result


def _quantized(
    model: ModelProto,
    samples: Batches,
    replace_products: Callable[..., list[TensorProto]],
    replace_lookup: Callable[[NodeProto, TensorProto], Parts],
    *,
    per_token: bool = False,
) -> ModelProto:
    """Copy a model with its products with a constant matrix and its embedding tables replaced."""
    constants = {item.name: item for item in model.graph.initializer}
    # Products by the activation that they read.
    products: dict[str, list[NodeProto]] = defaultdict(list)
    replacement: Replacement = {}
    added: list[TensorProto] = []
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            products[node.input[0]].append(node)
        table = constants.get(node.input[0]) if node.op_type == "Gather" else None
        if table is not None and _is_embedding_table(table):
            replacement[node.output[0]], tensors = replace_lookup(node, table)
            added += tensors
    channels = _measured_channels(model, list(products), samples, per_token=per_token)
    for activation, nodes in products.items():
        weights = [numpy_helper.to_array(constants[node.input[1]]) for node in nodes]
        added += replace_products(replacement, activation, nodes, weights, channels[activation])
    return _replace_nodes(model, replacement, added)


def _measured_channels(
    model: ModelProto, names: list[str], samples: Batches, *, per_token: bool
) -> dict[str, Channels]:
    """Run the model on samples; ``per_token`` divides each token by its largest magnitude."""
    probe = ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    zero = np.zeros(1, np.float32)
    channels: dict[str, Channels] = dict.fromkeys(names, (zero, zero, zero))
    for batch in samples:
        for name, values in zip(names, session.run(names, dict(batch)), strict=True):
            tokens = values.reshape(-1, values.shape[-1])
            if per_token:
                largest = np.abs(tokens).max(axis=1, keepdims=True)
                tokens = tokens / np.maximum(largest, MIN_MAGNITUDE)
            low, high, squares = channels[name]
            channels[name] = (
                np.minimum(low, tokens.min(axis=0)),
                np.maximum(high, tokens.max(axis=0)),
                squares + np.square(tokens).sum(axis=0),
            )
    return channels


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


def _fixed_scale_products(
    replacement: Replacement,
    activation: str,
    nodes: list[NodeProto],
    weights: list[Float32Array],
    channels: Channels,
    *,
    biases: Mapping[str, tuple[NodeProto, str]],
) -> list[TensorProto]:
    """Replace products that read one activation ``x``, with the same scale for every token.

    ``x W`` is ``t (q - z) Q``, with ``q = round(x / (s t)) + z`` in bytes and ``Q`` the bytes of
    ``s W``. The range of ``x / s`` in the samples fixes the step ``t`` and the zero point ``z``.
    """
    low, high, _ = channels
    smooth = _smoothing_by_maximum(weights, np.maximum(np.abs(low), np.abs(high)))  # (K,)
    floor, ceiling = float((low / smooth).min()), float((high / smooth).max())
    scale = max(ceiling - floor, MIN_MAGNITUDE) / 255
    constants = {
        "smooth": (1 / smooth).astype(np.float32),
        "scale": np.float32(scale),
        "zero": np.uint8(round(-floor / scale)),
    }
    tensors = _named_tensors(activation, constants)
    operation = partial(_operation, activation)
    before = [
        helper.make_node("Mul", [activation, f"{activation}_smooth"], [f"{activation}_smoothed"]),
        operation("QuantizeLinear", "smoothed scale zero", "quantized"),
    ]
    for node, weight in zip(nodes, weights, strict=True):
        name = output = node.output[0]
        tensors += _quantized_weight(name, weight * smooth[:, None])
        inputs = _product_inputs(activation, name, "quantized", "scale", "zero")
        if name in biases:
            addition, bias = biases[name]
            inputs += ["", bias]
            output = addition.output[0]
            replacement[output] = []
        product = helper.make_node("MatMulIntegerToFloat", inputs, [output], domain=MICROSOFT)
        replacement[name] = [*before, product]
        before = []
    return tensors


def _token_scale_products(
    replacement: Replacement,
    activation: str,
    nodes: list[NodeProto],
    weights: list[Float32Array],
    channels: Channels,
    *,
    alpha: float = COMPACT_ALPHA,
) -> list[TensorProto]:
    """Replace products that read one activation ``x``, with a scale for each token.

    As in `_fixed_scale_products`, but the step ``t`` is as small as the token's own range allows;
    only ``s`` and ``z`` are fixed. If several products read ``x``, it is stored twice: ``q``, and
    255 times what its rounding left out, so that ``x W`` is ``t ((q - z) + (r - 128) / 255) Q``.
    """
    lowest, highest, squares = channels
    smooth = _smoothing_by_mean_square(weights, squares, alpha)  # (K,)
    low, high = float((-lowest / smooth).mean()), float((highest / smooth).mean())
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
    tensors = _named_tensors(activation, constants)
    operation = partial(_operation, activation)
    before = [
        helper.make_node("Mul", [activation, f"{activation}_smooth"], [f"{activation}_smoothed"]),
        operation("ReduceMax", "smoothed", "high", axes=[-1]),
        operation("ReduceMin", "smoothed", "low", axes=[-1]),
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
        tensors += _quantized_weight(name, weight * smooth[:, None])
        outputs = [f"{name}_{part[0]}" for part in parts]
        products = [
            helper.make_node(
                "MatMulIntegerToFloat",
                _product_inputs(activation, name, *part),
                [output],
                domain=MICROSOFT,
            )
            for part, output in zip(parts, outputs, strict=True)
        ]
        replacement[name] = [
            *before,
            *products,
            helper.make_node("Sum", outputs, [f"{name}_scaled"]),
            helper.make_node("Mul", [f"{name}_scaled", f"{activation}_step"], [name]),
        ]
        before = []
    return tensors


def _named_tensors(prefix: str, constants: Mapping[str, Any]) -> list[TensorProto]:
    return [
        numpy_helper.from_array(np.asarray(value), f"{prefix}_{name}")
        for name, value in constants.items()
    ]


def _operation(
    activation: str,
    kind: str,
    inputs: str,
    output: str,
    **attributes: Any,  # noqa: ANN401
) -> NodeProto:
    """Make a node whose inputs and output have names that begin with the activation's."""
    names = [f"{activation}_{name}" for name in inputs.split()]
    return helper.make_node(kind, names, [f"{activation}_{output}"], **attributes)


def _product_inputs(activation: str, product: str, *parts: str) -> list[str]:
    """Inputs of ``MatMulIntegerToFloat``; ``parts`` are quantized activation, scale and zero."""
    quantized, scale, zero = (f"{activation}_{part}" for part in parts)
    return [quantized, f"{product}_weight", scale, f"{product}_steps", zero]


def _smoothing_by_maximum(weights: list[Float32Array], magnitude: Float32Array) -> Float32Array:
    """Factors of SmoothQuant, ``(K,)``: ``max|x|^alpha / max|w|^(1 - alpha)`` of each channel."""
    weight = np.maximum.reduce([np.abs(array).max(axis=1) for array in weights])  # (K,)
    factors = np.maximum(magnitude, MIN_MAGNITUDE) ** STATIC_ALPHA / np.maximum(
        weight, MIN_MAGNITUDE
    ) ** (1 - STATIC_ALPHA)
    smooth: Float32Array = (factors / factors.mean()).astype(np.float32)
    return smooth


def _smoothing_by_mean_square(
    weights: list[Float32Array], squares: Float32Array, alpha: float
) -> Float32Array:
    """Factors ``|x|^alpha / |w|^(1 - alpha)`` of the root mean squares of channels, ``(K,)``."""
    rows = np.square(np.concatenate(weights, axis=1)).sum(axis=1)  # (K,)
    x, w = (
        np.sqrt(np.maximum(sums / max(sums.max(), MIN_MAGNITUDE), MIN_MAGNITUDE**2))
        for sums in (squares, rows)
    )
    factors = x**alpha / w ** (1 - alpha)
    smooth: Float32Array = (factors / factors.mean()).astype(np.float32)
    return smooth


def _quantized_weight(name: str, weight: Float32Array) -> list[TensorProto]:
    """Quantize the matrix of a product, ``(K, N)``, with a scale per output channel."""
    # x86 without VNNI instructions adds two neighboring products of a byte and a signed byte in 16
    # bits. With a pair of weights that sum to 128 at most, 255 times that still fits.
    even = np.pad(weight, ((0, weight.shape[0] % 2), (0, 0)))
    pairs = even.reshape(-1, 2, weight.shape[1])  # (K / 2, 2, N)
    positive, negative = np.maximum(pairs, 0).sum(axis=1), np.maximum(-pairs, 0).sum(axis=1)
    largest = np.maximum(positive, negative).max(axis=0)
    steps = (np.maximum(largest, MIN_MAGNITUDE**2) / 127).astype(np.float32)  # (N,)
    return _named_tensors(name, {"weight": np.rint(weight / steps).astype(np.int8), "steps": steps})


def _is_embedding_table(tensor: TensorProto) -> bool:
    return (
        tensor.data_type == TensorProto.FLOAT
        and len(tensor.dims) == 2
        and tensor.dims[0] * tensor.dims[1] > MAX_PLAIN_NUMBERS
    )


def _byte_lookup(node: NodeProto, tensor: TensorProto) -> Parts:
    """Replace a lookup in an embedding table by one of bytes and one of their scales."""
    table = numpy_helper.to_array(tensor)  # (rows, d)
    largest = np.maximum(np.abs(table).max(axis=1, keepdims=True), MIN_MAGNITUDE**2)
    steps = largest / 127  # (rows, 1)
    name, out = tensor.name, node.output[0]
    numbers = np.rint(table / steps).astype(np.int8)
    nodes = [
        helper.make_node("Gather", [f"{name}_bytes", node.input[1]], [f"{out}_bytes"]),
        helper.make_node("Gather", [f"{name}_steps", node.input[1]], [f"{out}_steps"]),
        _to_float32(f"{out}_bytes", f"{out}_floats"),
        helper.make_node("Mul", [f"{out}_floats", f"{out}_steps"], [out]),
    ]
    return nodes, _named_tensors(name, {"bytes": numbers, "steps": steps.astype(np.float32)})


def _block_lookup(node: NodeProto, tensor: TensorProto) -> Parts:
    """Replace a lookup in an embedding table by one in 4-bit numbers with a scale per block."""
    if tensor.dims[1] % TABLE_BLOCK:
        return _byte_lookup(node, tensor)
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
    stored = TensorProto(
        name=f"{name}_int4",
        data_type=TensorProto.INT4,
        dims=table.shape,
        raw_data=packed.astype(np.uint8).tobytes(),
    )
    lookup = helper.make_node(
        "GatherBlockQuantized",
        [f"{name}_int4", node.input[1], f"{name}_steps"],
        [f"{output}_half"],
        domain=MICROSOFT,
        gather_axis=0,
        quantize_axis=1,
        block_size=TABLE_BLOCK,
    )
    tensors = [stored, numpy_helper.from_array(steps[..., 0], f"{name}_steps")]
    return [lookup, _to_float32(f"{output}_half", output)], tensors


def _replace_nodes(
    model: ModelProto, replacement: Replacement, added: list[TensorProto]
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
