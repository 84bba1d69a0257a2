"""From a SentenceTransformer to an ONNX graph: the whole pipeline, tokens in, embedding out."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import onnx
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

OPSET = 17  # the first with LayerNormalization; ONNX Runtime reads it since 1.14

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class _Pipeline(nn.Module):
    """Every module of an encoder in turn, then length 1."""

    def __init__(self, model: SentenceTransformer, names: tuple[str, ...]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(model.children())
        self.names = names

    def forward(self, *tokens: Tensor) -> Tensor:
        """Embeds tokens."""
        features = dict(zip(self.names, tokens, strict=True))
        for stage in self.stages:
            features = stage(features)
        return nn.functional.normalize(features["sentence_embedding"], p=2.0, dim=-1)


def input_names(model: SentenceTransformer) -> tuple[str, ...]:
    """Which of the three usual inputs a model reads."""
    features = model.preprocess([["a", "b"]])
    return tuple(name for name in _INPUTS if name in features)


def trace_encoder(model: SentenceTransformer) -> onnx.ModelProto:
    """Traces an encoder.

    The exporter is torch's older one (``dynamo=False``): it needs nothing but ``onnx``, and its
    graph is what ONNX Runtime's own fusions know.
    """
    names = input_names(model)
    # Rows of different lengths, so that the traced graph has seen padding.
    features = model.preprocess([["the color", "A red ball."], ["the animal", "A dog"]])
    axes = {name: {0: "batch", 1: "tokens"} for name in names} | {"embedding": {0: "batch"}}
    pipeline = _Pipeline(model, names).eval()
    with tempfile.TemporaryDirectory(prefix="condsim-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of itself and of each shape it reads
        path = Path(folder, "traced.onnx")
        with torch.no_grad():
            torch.onnx.export(
                pipeline,
                tuple(features[name] for name in names),
                str(path),
                input_names=list(names),
                output_names=["embedding"],
                dynamic_axes=axes,
                opset_version=OPSET,
                dynamo=False,
            )
        return onnx.load(str(path))
