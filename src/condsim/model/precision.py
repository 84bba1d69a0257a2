"""Which number format a network computes in."""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import Literal

import torch
from torch import nn

_LOGGER = logging.getLogger(__name__)
_CLEARLY = 1.2  # below that, two runs would differ by chance


def uses_bfloat16(precision: Literal["auto", "float32", "bfloat16"]) -> bool:
    """Decides whether a network is trained or run under bfloat16 autocast."""
    # ``auto`` asks a GPU, and measures a CPU with AVX512-BF16 once in a process: without AMX it is
    # slower in bfloat16. Weights, optimizer and losses stay float32.
    if precision != "auto":
        return precision == "bfloat16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False)) and _faster_in_bfloat16()


@cache
def _faster_in_bfloat16() -> bool:
    """Times a step of a small layer in both, in processor time: busy neighbours must not decide."""
    seconds = {torch.float32: float("inf"), torch.bfloat16: float("inf")}
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        layer = nn.Sequential(nn.Linear(384, 1536), nn.GELU(), nn.Linear(1536, 384))
        inputs = torch.randn(256, 384)
        for turn in range(9):  # the first one warms up
            for kind in seconds:
                started = time.process_time()
                with torch.autocast("cpu", torch.bfloat16, enabled=kind == torch.bfloat16):
                    layer(inputs).float().square().mean().backward()
                taken = time.process_time() - started
                seconds[kind] = min(seconds[kind], taken if turn else float("inf"))
    faster = seconds[torch.float32] > _CLEARLY * seconds[torch.bfloat16]
    shown = ", ".join(f"{str(kind)[6:]} {1000 * taken:.1f}" for kind, taken in seconds.items())
    _LOGGER.info("ms for a step: %s; using %s", shown, "bfloat16" if faster else "float32")
    return faster
