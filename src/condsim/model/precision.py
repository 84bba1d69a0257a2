"""Precision: whether a network computes in bfloat16."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn
from transformers import PreTrainedModel

from condsim.config import Settings
from condsim.errors import InputError

MIN_BF16_SPEEDUP = 1.2
"""Speed of bfloat16 relative to float32 from which it is used: below, two runs would differ by
chance."""

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
    faster = float32 > MIN_BF16_SPEEDUP * bfloat16
    choice = "bfloat16" if faster else "float32"
    _LOGGER.info("ms for a step: float32 %.1f, bfloat16 %.1f; using %s", float32, bfloat16, choice)
    return faster


# Speed of a number format and attention relative to float32 with the library's attention from which
# a run uses them: below, two runs would differ by chance.
MIN_TRAINING_SPEEDUP = 1.1

MEASURED_TEXTS = 16
MEASURED_TOKENS = 40
MEASURED_STEPS = 2


class TrainingPrecision(Settings):
    """Number format and attention that a network is trained with.

    Attributes:
        bfloat16: Whether it is trained under bfloat16 autocast; weights stay float32.
        attention: Implementation of the attention, as transformers names it.
        texts_per_second: Measured speed of a training step by format and attention, such as
            ``bfloat16 eager``; empty where nothing was measured.
    """

    bfloat16: bool
    attention: str
    texts_per_second: dict[str, float] = Field(default_factory=dict)


def choose_training_precision(
    backbone: PreTrainedModel,
    *,
    precision: Literal["auto", "float32", "bfloat16"],
    attention: Literal["auto", "eager", "sdpa"],
) -> TrainingPrecision:
    """Choose the number format and the attention of a run; on a CPU ``auto`` is measured."""
    default = str(backbone.config._attn_implementation)
    chosen = default if attention == "auto" else attention
    if precision != "auto" or backbone.device.type != "cpu":
        return TrainingPrecision(bfloat16=uses_bfloat16(precision), attention=chosen)
    speeds = training_speeds(backbone, [default, "eager"] if attention == "auto" else [chosen])
    fastest = fastest_training(speeds)
    text = ", ".join(f"{name} {speed:.1f}" for name, speed in speeds.items())
    _LOGGER.info("texts/s by format and attention: %s; using %s", text, fastest)
    number_format, _, chosen = fastest.partition(" ")
    return TrainingPrecision(
        bfloat16=number_format == "bfloat16", attention=chosen, texts_per_second=speeds
    )


def fastest_training(speeds: dict[str, float]) -> str:
    """Name the fastest format and attention; the first, unless another is clearly faster."""
    first = next(iter(speeds))
    fastest = max(speeds, key=speeds.__getitem__)
    return fastest if speeds[fastest] >= MIN_TRAINING_SPEEDUP * speeds[first] else first


def training_speeds(backbone: PreTrainedModel, attentions: Sequence[str]) -> dict[str, float]:
    """Measure training steps on a CPU; weights and random numbers stay as they are.

    Returns:
        Texts per second by number format and attention, such as ``bfloat16 eager``: the best of two
        steps after one that warms up. ``float32`` with the first attention comes first.
    """
    kinds = [
        (number_format, attention)
        for number_format in ("float32", "bfloat16")
        for attention in dict.fromkeys(attentions)
    ]
    was_training = backbone.training
    seconds = dict.fromkeys(kinds, float("inf"))
    with torch.random.fork_rng(devices=[]):
        backbone.train()
        for turn in range(MEASURED_STEPS + 1):
            for number_format, attention in kinds:
                set_attention(backbone, attention)
                started = time.perf_counter()
                _training_step(backbone, bfloat16=number_format == "bfloat16")
                elapsed = time.perf_counter() - started
                if turn:
                    key = number_format, attention
                    seconds[key] = min(seconds[key], elapsed)
    backbone.train(was_training)
    return {" ".join(key): round(MEASURED_TEXTS / value, 1) for key, value in seconds.items()}


def backbone_of(model: nn.Module) -> PreTrainedModel:
    """Find the transformer in an encoder."""
    return next(module for module in model.modules() if isinstance(module, PreTrainedModel))


def set_attention(backbone: PreTrainedModel, attention: str) -> None:
    """Set the implementation of a backbone's attention."""
    if backbone.config._attn_implementation == attention:
        return
    try:
        backbone.set_attn_implementation(attention)
    except ValueError as error:
        raise InputError(f"Key 'attention': {str(error).splitlines()[0]}") from None
    if backbone.config._attn_implementation != attention:
        name = type(backbone).__name__
        raise InputError(f"Key 'attention': {name} cannot use {attention!r}; leave it at 'auto'.")


def _training_step(backbone: PreTrainedModel, *, bfloat16: bool) -> None:
    """Run a forward and a backward pass and drop the gradients."""
    words = int(backbone.config.vocab_size)
    positions = getattr(backbone.config, "max_position_embeddings", 0) or MEASURED_TOKENS + 2
    length = min(MEASURED_TOKENS, int(positions) - 2)
    tokens = torch.arange(MEASURED_TEXTS * length).view(MEASURED_TEXTS, -1)
    # Numbers below 5 are special tokens.
    batch = {"input_ids": 5 + tokens % max(words - 5, 1), "attention_mask": torch.ones_like(tokens)}
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        states: Any = backbone(**batch)[0]
    # The states of a frozen backbone have no gradient.
    if states.requires_grad:
        states.float().square().mean().backward()
    backbone.zero_grad(set_to_none=True)
