"""Which number format the backbone computes in while it is trained."""

from __future__ import annotations

from typing import Literal

import torch


def uses_bfloat16(precision: Literal["auto", "float32", "bfloat16"]) -> bool:
    """Decides whether training runs under bfloat16 autocast.

    ``auto`` takes bfloat16 where the processor multiplies it natively (a GPU since Ampere, a CPU
    with AVX512-BF16 or AMX); elsewhere it would be emulated and slower than float32.
    Weights, optimizer and losses stay float32 either way.
    """
    if precision != "auto":
        return precision == "bfloat16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False))
