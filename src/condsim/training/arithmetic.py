"""What a run computes in: the number format and the attention, the fastest that was measured."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from pydantic import Field
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import PreTrainedModel

from condsim.config import Settings
from condsim.errors import InputError
from condsim.io import write_text
from condsim.model.precision import uses_bfloat16
from condsim.training.folder import HISTORY
from condsim.training.recipe import Recipe

_LOGGER = logging.getLogger("condsim")
_TEXTS, _TOKENS, _STEPS = 16, 40, 2
_CLEARLY = 1.1  # times as fast as float32 with the library's attention, to be used instead


class Arithmetic(Settings):
    """What a run computes in.

    Attributes:
        bfloat16: Whether it is trained under bfloat16 autocast; weights stay float32.
        attention: Implementation of the attention, as transformers names it.
        texts_per_second: What was measured, forward and backward, by format and attention; empty
            where nothing was.
    """

    bfloat16: bool
    attention: str
    texts_per_second: dict[str, float] = Field(default_factory=dict)


def choose_arithmetic(
    model: SentenceTransformer | CrossEncoder, recipe: Recipe, output: Path
) -> Arithmetic:
    """Chooses what a run computes in, sets the attention, and notes it in the run's folder.

    Args:
        model: The model, whose own layers are measured.
        output: The folder of the run; a resumed one keeps what it was started with.

    Returns:
        The choice, the same in all processes.

    Raises:
        InputError: If the backbone has no such attention.
    """
    process = PartialState()
    chosen: list[dict[str, Any]] = [{}]
    if process.is_main_process:
        found = _noted(output) or _chosen(model, recipe)
        output.mkdir(parents=True, exist_ok=True)
        write_text(output / HISTORY, json.dumps({"precision": found.model_dump()}, indent=2))
        chosen = [found.model_dump()]
    if process.num_processes > 1:
        broadcast_object_list(chosen)
    arithmetic = Arithmetic(**chosen[0])
    _set_attention(backbone_of(model), arithmetic.attention)
    return arithmetic


def _noted(output: Path) -> Arithmetic | None:
    """What the run in a folder was started with."""
    with suppress(OSError, ValueError, KeyError, InputError):
        noted = json.loads((output / HISTORY).read_text(encoding="utf-8"))
        return Arithmetic(**noted["precision"])
    return None


def _chosen(model: SentenceTransformer | CrossEncoder, recipe: Recipe) -> Arithmetic:
    backbone = backbone_of(model)
    own = str(backbone.config._attn_implementation)
    wanted = own if recipe.attention == "auto" else recipe.attention
    if recipe.precision != "auto" or model.device.type != "cpu":
        return Arithmetic(bfloat16=uses_bfloat16(recipe.precision), attention=wanted)
    attentions = dict.fromkeys([own, "eager"] if recipe.attention == "auto" else [wanted])
    speeds = measure(backbone, tuple(attentions))
    best = max(speeds, key=speeds.__getitem__)
    first = next(iter(speeds))
    if speeds[best] < _CLEARLY * speeds[first]:  # or two runs would differ by chance
        best = first
    shown = ", ".join(f"{kind} {speed:.1f}" for kind, speed in speeds.items())
    _LOGGER.info("texts/s by format and attention: %s; using %s", shown, best)
    kind, _, attention = best.partition(" ")
    return Arithmetic(bfloat16=kind == "bfloat16", attention=attention, texts_per_second=speeds)


def backbone_of(model: SentenceTransformer | CrossEncoder) -> PreTrainedModel:
    """The transformer in an encoder."""
    return next(one for one in model.modules() if isinstance(one, PreTrainedModel))


def _set_attention(backbone: PreTrainedModel, attention: str) -> None:
    if backbone.config._attn_implementation == attention:
        return
    try:
        backbone.set_attn_implementation(attention)
    except ValueError as error:
        raise InputError(f"Recipe key 'attention': {str(error).splitlines()[0]}") from None
    if backbone.config._attn_implementation != attention:
        raise InputError(
            f"Recipe key 'attention': {type(backbone).__name__} cannot use {attention!r}. "
            "Leave it at 'auto'."
        )


def measure(backbone: PreTrainedModel, attentions: tuple[str, ...]) -> dict[str, float]:
    """Measures training steps of a backbone; its weights and the random numbers stay as they are.

    Args:
        backbone: The backbone, on a CPU.
        attentions: Implementations of the attention to try.

    Returns:
        Texts per second, the best of two steps after a first one that is not counted, by number
        format and attention, such as ``bfloat16 eager``.
    """
    kinds = [(kind, one) for kind in ("float32", "bfloat16") for one in attentions]
    training, best = backbone.training, dict.fromkeys(kinds, float("inf"))
    with torch.random.fork_rng(devices=[]):
        backbone.train()
        for turn in range(_STEPS + 1):
            for kind, attention in kinds:
                _set_attention(backbone, attention)
                started = time.perf_counter()
                _step(backbone, bfloat16=kind == "bfloat16")
                if turn:
                    elapsed = time.perf_counter() - started
                    best[kind, attention] = min(best[kind, attention], elapsed)
    backbone.train(training)
    return {" ".join(key): round(_TEXTS / seconds, 1) for key, seconds in best.items()}


def _step(backbone: PreTrainedModel, *, bfloat16: bool) -> None:
    """One forward and backward; the gradients are dropped."""
    words = int(backbone.config.vocab_size)
    positions = int(getattr(backbone.config, "max_position_embeddings", 0) or _TOKENS + 2)
    tokens = torch.arange(_TEXTS * min(_TOKENS, positions - 2)).view(_TEXTS, -1)
    batch = {
        "input_ids": 5 + tokens % max(words - 5, 1),  # numbers below 5 are special tokens
        "attention_mask": torch.ones_like(tokens),
    }
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        states: Any = backbone(**batch)[0]
    if states.requires_grad:  # not of a backbone that is frozen
        states.float().square().mean().backward()
    backbone.zero_grad(set_to_none=True)
