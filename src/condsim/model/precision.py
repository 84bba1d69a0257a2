"""Number format of a network, and the attention of a training; measured on a CPU."""

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

MIN_SPEEDUP = 1.2
"""Speed relative to float32 from which bfloat16, or in training another attention, is used: below,
two runs would differ by chance."""

MEASURED_TEXTS = 16
MEASURED_TOKENS = 40
MEASURED_STEPS = 2

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


class TrainingPrecision(Settings):
    """Number format (bfloat16 autocast or float32) and attention of a training.

    ``texts_per_second`` has the measured speed of a step by both, such as ``bfloat16 eager``.
    """

    bfloat16: bool
    attention: str
    texts_per_second: dict[str, float] = Field(default_factory=dict)


def choose_training_precision(
    backbone: PreTrainedModel, precision: Literal["auto", "float32", "bfloat16"]
) -> TrainingPrecision:
    """Choose the number format and the attention of a run; on a CPU ``auto`` is measured."""
    default = str(backbone.config._attn_implementation)
    if precision != "auto" or backbone.device.type != "cpu":
        return TrainingPrecision(bfloat16=uses_bfloat16(precision), attention=default)
    speeds = training_speeds(backbone, [default, "eager"])
    fastest = fastest_training(speeds)
    text = ", ".join(f"{name} {speed:.1f}" for name, speed in speeds.items())
    _LOGGER.info("texts/s by format and attention: %s; using %s", text, fastest)
    number_format, _, attention = fastest.partition(" ")
    return TrainingPrecision(
        bfloat16=number_format == "bfloat16", attention=attention, texts_per_second=speeds
    )


def fastest_training(speeds: dict[str, float]) -> str:
    """Name the fastest format and attention; the first, unless another is clearly faster."""
    first = next(iter(speeds))
    fastest = max(speeds, key=speeds.__getitem__)
    return fastest if speeds[fastest] >= MIN_SPEEDUP * speeds[first] else first


def training_speeds(backbone: PreTrainedModel, attentions: Sequence[str]) -> dict[str, float]:
    """Measure training steps on a CPU; weights and random numbers stay as they are.

    Texts per second are measured on the best of two steps after one that warms up. ``float32`` with
    the first attention comes first.
    """
    kinds = [(kind, name) for kind in ("float32", "bfloat16") for name in dict.fromkeys(attentions)]
    was_training = backbone.training
    seconds = dict.fromkeys(kinds, float("inf"))
    with torch.random.fork_rng(devices=[]):
        backbone.train()
        for turn in range(MEASURED_STEPS + 1):
            for kind, attention in kinds:
                backbone.set_attn_implementation(attention)
                started = time.perf_counter()
                _training_step(backbone, bfloat16=kind == "bfloat16")
                elapsed = time.perf_counter() - started
                if turn:
                    seconds[kind, attention] = min(seconds[kind, attention], elapsed)
    backbone.train(was_training)
    return {" ".join(key): round(MEASURED_TEXTS / value, 1) for key, value in seconds.items()}


def backbone_of(model: nn.Module) -> PreTrainedModel:
    """Find the transformer in an encoder."""
    return next(module for module in model.modules() if isinstance(module, PreTrainedModel))


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
