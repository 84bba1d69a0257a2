"""Precision: whether a network computes in bfloat16."""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import Literal

import torch
from torch import nn

MIN_SPEEDUP = 1.2
"""Speed relative to float32 from which bfloat16, or in training another attention, is used: below,
two runs would differ by chance."""

_LOGGER = logging.getLogger(__name__)


def uses_bfloat16(precision: Literal["auto", "float32", "bfloat16"]) -> bool:
    """Decide whether a network is trained or run under bfloat16 autocast.

    ``auto`` asks a GPU, and measures a processor with AVX512-BF16 once in a process: without AMX
    it is slower in bfloat16. Weights, optimizer and losses stay float32.
    """
    if precision != "auto":
        return precision == "bfloat16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False)) and _faster_in_bfloat16()


@cache
def _faster_in_bfloat16() -> bool:
    """Time a training step of a small layer, in processor time so that other work counts less."""
    seconds = {torch.float32: float("inf"), torch.bfloat16: float("inf")}
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        layer = nn.Sequential(nn.Linear(384, 1536), nn.GELU(), nn.Linear(1536, 384))
        inputs = torch.randn(256, 384)
        for turn in range(9):
            for number_format in seconds:
                started = time.process_time()
                enabled = number_format == torch.bfloat16
                with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                    layer(inputs).float().square().mean().backward()
                elapsed = time.process_time() - started
                # The first turn warms up.
                if turn:
                    seconds[number_format] = min(seconds[number_format], elapsed)
    float32, bfloat16 = 1000 * seconds[torch.float32], 1000 * seconds[torch.bfloat16]
    faster = float32 > MIN_SPEEDUP * bfloat16
    choice = "bfloat16" if faster else "float32"
    _LOGGER.info("ms for a step: float32 %.1f, bfloat16 %.1f; using %s", float32, bfloat16, choice)
    return faster
