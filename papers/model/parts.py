"""Weights as int8 in parts of a few megabytes, and back: how a backbone travels to another machine.

``python -m papers.model.parts split CHECKPOINT FOLDER --megabytes 16`` and ``... join FOLDER
CHECKPOINT``. Matrices have one step for each row; vectors stay float32.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from papers.model.encoder import EncoderConfig, transformers_names

_LOGGER = logging.getLogger("condsim")

INDEX_FILE = "parts.json"
_MEGABYTE = 1 << 20
_LAYER = re.compile(r"\.layer\.(\d+)\.")


def quantised(weight: Tensor) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Rows of a matrix as whole steps from -127 to 127, and the step of each row."""
    values = weight.float().numpy()
    steps = np.maximum(np.abs(values).max(axis=1), 1e-12) / 127
    return np.round(values / steps[:, None]).astype(np.int8), steps.astype(np.float32)


def split(checkpoint: Path, folder: Path, *, megabytes: int, from_layer: int = 0) -> list[Path]:
    """Write the weights of a checkpoint in parts."""
    folder.mkdir(parents=True, exist_ok=True)
    state = load_file(checkpoint / "model.safetensors")
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    names = transformers_names(EncoderConfig.from_transformers(config)).values()
    arrays: dict[str, NDArray[np.generic]] = {}
    for name in sorted(names):
        layer = _LAYER.search(name)
        if from_layer and (layer is None or int(layer[1]) < from_layer):
            continue
        if state[name].ndim == 2:
            whole, steps = quantised(state[name])
            # A matrix larger than a part is cut into bands of rows.
            rows = max(1, (megabytes * _MEGABYTE * 9 // 10) // whole.shape[1])
            for number, start in enumerate(range(0, len(whole), rows)):
                arrays[f"{name}|{number}"] = whole[start : start + rows]
            arrays[f"{name}|steps"] = steps
        else:
            arrays[name] = state[name].float().numpy()
    parts: list[Path] = []
    pending: dict[str, NDArray[np.generic]] = {}
    size = 0

    def flush() -> None:
        path = folder / f"part-{len(parts):02}.npz"
        np.savez(path, **pending)  # type: ignore[arg-type]
        parts.append(path)
        pending.clear()

    for name, array in arrays.items():
        if pending and size + array.nbytes > megabytes * _MEGABYTE * 95 // 100:
            flush()
            size = 0
        pending[name] = array
        size += array.nbytes
    flush()
    (folder / INDEX_FILE).write_text(
        json.dumps({"config": config, "parts": [path.name for path in parts]}, indent=1),
        encoding="utf-8",
    )
    tokenizer = checkpoint / "tokenizer.json"
    if tokenizer.is_file():
        (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    return parts


def join(folder: Path, checkpoint: Path, *, base: Path | None = None) -> None:
    """Rebuild the checkpoint folder of parts, float16."""
    index = json.loads((folder / INDEX_FILE).read_text(encoding="utf-8"))
    arrays: dict[str, NDArray[np.generic]] = {}
    for name in index["parts"]:
        with np.load(folder / name) as stored:
            arrays |= {key: stored[key] for key in stored.files}
    state: dict[str, Tensor] = {}
    if base is not None:
        state = {k: v.half() for k, v in load_file(base / "model.safetensors").items()}
    for key, steps in arrays.items():
        if "|" not in key:
            state[key] = torch.from_numpy(steps).half()
        elif key.endswith("|steps"):
            name = key.removesuffix("|steps")
            count = sum(other.startswith(f"{name}|") for other in arrays) - 1
            whole = np.concatenate([arrays[f"{name}|{number}"] for number in range(count)])
            values = whole.astype(np.float32) * steps.astype(np.float32)[:, None]
            state[name] = torch.from_numpy(values).half()
    checkpoint.mkdir(parents=True, exist_ok=True)
    save_file(state, checkpoint / "model.safetensors")
    (checkpoint / "config.json").write_text(json.dumps(index["config"]), encoding="utf-8")
    tokenizer = folder / "tokenizer.json"
    if tokenizer.is_file():
        (checkpoint / "tokenizer.json").write_bytes(tokenizer.read_bytes())


def main() -> None:
    """Split or joins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("split", "join"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--from-layer", type=int, default=0)
    parser.add_argument("--base", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.action == "split":
        for path in split(
            options.source,
            options.target,
            megabytes=options.megabytes,
            from_layer=options.from_layer,
        ):
            _LOGGER.info("%s: %d bytes", path.name, path.stat().st_size)
    else:
        join(options.source, options.target, base=options.base)


if __name__ == "__main__":
    main()
