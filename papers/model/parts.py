"""Weights as int8 in one file, and back: how a backbone travels to another machine, in pieces.

``python -m papers.model.parts quantize CHECKPOINT FILE`` and ``... restore FILE CHECKPOINT``.
Matrices have one step for each row; vectors stay float32. ``device.sh`` splits and joins the file.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from papers.model.encoder import EncoderConfig, transformers_names

STEPS = "|steps"
"""End of the names of the steps of a matrix."""

TEXT_FILES = ("config.json", "tokenizer.json")
_LAYER = re.compile(r"\.layer\.(\d+)\.")


def quantized(weight: Tensor) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Rows of a matrix as whole steps from -127 to 127, and the step of each row."""
    values = weight.float().numpy()
    steps = np.maximum(np.abs(values).max(axis=1), 1e-12) / 127
    return np.round(values / steps[:, None]).astype(np.int8), steps.astype(np.float32)


def quantize(checkpoint: Path, output: Path, *, from_layer: int = 0) -> None:
    """Write a checkpoint as an ``.npz``, without the layers below ``from_layer``."""
    state = load_file(checkpoint / "model.safetensors")
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    arrays: dict[str, NDArray[np.generic]] = {}
    for name in transformers_names(EncoderConfig.from_transformers(config)).values():
        layer = _LAYER.search(name)
        if from_layer and (layer is None or int(layer[1]) < from_layer):
            continue
        if state[name].ndim == 2:
            arrays[name], arrays[name + STEPS] = quantized(state[name])
        else:
            arrays[name] = state[name].float().numpy()
    for name in TEXT_FILES:
        if (checkpoint / name).is_file():
            arrays[name] = np.frombuffer((checkpoint / name).read_bytes(), np.uint8)
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def restore(file: Path, checkpoint: Path, *, base: Path | None = None) -> None:
    """Rebuild a checkpoint folder, float16; ``base`` has the weights that the file leaves out."""
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files}
    checkpoint.mkdir(parents=True, exist_ok=True)
    for name in TEXT_FILES:
        if name in arrays:
            (checkpoint / name).write_bytes(arrays.pop(name).tobytes())
    state: dict[str, Tensor] = {}
    if base is not None:
        state = {k: v.half() for k, v in load_file(base / "model.safetensors").items()}
    for name, array in arrays.items():
        if not name.endswith(STEPS):
            steps = arrays.get(name + STEPS)
            values = array.astype(np.float32) * (1 if steps is None else steps[:, None])
            state[name] = torch.from_numpy(values).half()
    save_file(state, checkpoint / "model.safetensors")


def main() -> None:
    """Quantize or restore weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("quantize", "restore"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--from-layer", type=int, default=0)
    parser.add_argument("--base", type=Path)
    options = parser.parse_args()
    if options.action == "quantize":
        quantize(options.source, options.target, from_layer=options.from_layer)
    else:
        restore(options.source, options.target, base=options.base)


if __name__ == "__main__":
    main()
