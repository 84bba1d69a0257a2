"""Stores weights in half the bytes; they are loaded as float32 all the same."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from condsim.files import replacing

__all__ = ["store_as_float16"]


def store_as_float16(folder: Path) -> None:
    """Rewrites the weights of a model folder in float16 and notes that float32 is to be used.

    transformers takes the number format from ``config.json``, so whoever loads the model computes
    in float32, with weights rounded to 11 significant bits.

    Args:
        folder: A folder that sentence-transformers wrote.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        with safe_open(path, framework="pt") as weights:
            metadata = weights.metadata()
            tensors = {name: weights.get_tensor(name) for name in weights.keys()}
        halved = {
            name: value.to(torch.float16) if value.is_floating_point() else value
            for name, value in tensors.items()
        }
        with replacing(path) as partial:
            save_file(halved, partial, metadata=metadata)
    config = folder / "config.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    content["dtype"] = "float32"
    with replacing(config) as partial:
        partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
