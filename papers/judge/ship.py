"""Export of a trained judge to the folder that condsim ships: int8, with calibrated probabilities.

``python -m papers.judge.ship --run FOLDER --start CHECKPOINT --out FOLDER --name NAME``.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from scipy.optimize import minimize
from tokenizers import Tokenizer
from torch import Tensor, nn

from condsim.model.judge import SETTINGS_FILE, VERDICTS, calibrated
from condsim.model.session import TOKENIZER_FILE
from condsim.model.settings import MODEL_FILE
from condsim.training.export import INPUT_NAMES, traced
from condsim.training.quantize import quantize_static
from condsim.types import FloatArray, IntArray
from papers.judge.rows import Row, verdict_rows
from papers.judge.train import Judge, Reader, padded, torch_judge

MAX_TOKENS = 256
SAMPLES, SAMPLES_PER_BATCH = 320, 16

_LOGGER = logging.getLogger("condsim")


class _VerdictLogits(nn.Module):
    """The part of a judge that ships."""

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self.judge = judge

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return logits, (n, 5)."""
        logits: Tensor = self.judge(ids, types, mask)["verdict"]
        return logits


def ship(run: Path, start: Path, output: Path, name: str) -> None:
    """Export, quantize, and calibrate a judge."""
    judge, read = torch_judge(start, run), Reader(start, MAX_TOKENS)
    rows = list(verdict_rows("train"))
    chosen = np.random.default_rng(0).permutation(len(rows))[:SAMPLES]
    batches = _batches([rows[place] for place in chosen], read)
    example = {key: torch.from_numpy(value) for key, value in batches[0].items()}
    graph = traced(_VerdictLogits(judge), example, "verdict")
    quantized = quantize_static(graph, batches)
    dev = list(verdict_rows("dev"))
    wanted = np.array([row.place for row in dev])
    before, after = (_logits(model, dev, read) for model in (graph, quantized))
    for title, logits in (("float32", before), ("int8", after)):
        _LOGGER.info("%s: %.1f %% of dev right", title, 100 * (logits.argmax(1) == wanted).mean())
    temperature, bias = _calibration(after, wanted)
    output.mkdir(parents=True, exist_ok=True)
    onnx.save(quantized, str(output / MODEL_FILE))
    tokenizer = Tokenizer.from_file(str(start / TOKENIZER_FILE))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(output / TOKENIZER_FILE), pretty=False)
    values = {"name": name, "max_tokens": MAX_TOKENS, "temperature": temperature, "bias": bias}
    (output / SETTINGS_FILE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _batches(rows: Sequence[Row], read: Reader) -> list[dict[str, IntArray]]:
    batches = []
    for first in range(0, len(rows), SAMPLES_PER_BATCH):
        part = rows[first : first + SAMPLES_PER_BATCH]
        ids, types, mask = padded([read(row) for row in part])
        arrays = (ids.numpy(), mask.numpy(), types.numpy())
        batches.append(dict(zip(INPUT_NAMES, arrays, strict=True)))
    return batches


def _logits(graph: onnx.ModelProto, rows: Sequence[Row], read: Reader) -> FloatArray:
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    return np.concatenate([session.run(None, batch)[0] for batch in _batches(rows, read)])


def _calibration(logits: FloatArray, wanted: FloatArray) -> tuple[float, list[float]]:
    """Fit a temperature, and a bias that stays near 0, on dev."""

    def loss(values: FloatArray) -> float:
        found = calibrated(logits, float(np.exp(values[0])), values[1:])
        right = found[np.arange(len(wanted)), wanted]
        return float(-np.log(right + 1e-9).mean() + 0.01 * (values[1:] ** 2).sum())

    found = minimize(loss, np.zeros(1 + len(VERDICTS)), method="Powell").x
    return round(float(np.exp(found[0])), 4), [round(float(value), 4) for value in found[1:]]


def main() -> None:
    """Export a judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("run", "start", "out"):
        parser.add_argument(f"--{option}", type=Path, required=True)
    parser.add_argument("--name", required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ship(options.run, options.start, options.out, options.name)


if __name__ == "__main__":
    main()
