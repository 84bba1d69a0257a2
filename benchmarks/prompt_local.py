"""Prompts answered by a model on this machine, against one ``generate`` for each of them."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from benchmarks.machine import usable_cores, version_of
from benchmarks.result import Result
from benchmarks.rows import generated_rows
from condsim_llm.backend import MAX_NEW_TOKENS, PromptSettings
from condsim_llm.local import LocalBackend
from condsim_llm.prompt import Example, render

__all__ = ["BAR", "mixed_prompts", "random_model", "run"]

BAR = 4.0

_REPEATS = 3
_INSTRUCTIONS = (
    "",
    "Say from 1 to 5 how similar the two sentences are under the condition.",
    "Two sentences and a condition follow. Look only at what the condition names, and leave aside "
    "all else that the sentences say. Answer with one number: 1 if they have nothing in common in "
    "that respect, 2 if they are on the whole different, 3 if they are alike in part, 4 if they "
    "are nearly the same and 5 if there is no difference at all.",
)
_SHOTS = (0, 2, 4)
_VOCABULARY = 2000
_END = "</s>"

Side = Callable[[Sequence[str]], list[str]]


def run(*, quick: bool) -> list[Result]:
    """Answer the same prompts with both, in turns, with a causal and a sequence-to-sequence model.

    Args:
        quick: Whether to answer 32 prompts rather than 384.

    Returns:
        Rows per second of both models.
    """
    torch.set_num_threads(usable_cores())
    prompts = mixed_prompts(32 if quick else 384, seed=0)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        for kind in ("causal", "seq2seq"):
            folder = random_model(Path(temporary) / kind, prompts, seq2seq=kind == "seq2seq")
            results.append(_compare(folder, kind, prompts))
    return results


def mixed_prompts(number: int, *, seed: int) -> list[str]:
    """Write prompts of all lengths: three instructions with 0, 2 and 4 examples, in random order.

    Args:
        number: How many.
        seed: Seed of rows and order.

    Returns:
        The prompts.
    """
    rows = generated_rows(seed=seed)
    kinds = cycle((text, shots) for text in _INSTRUCTIONS for shots in _SHOTS)
    prompts = []
    for instruction, shots in islice(kinds, number):
        examples = [Example(*row) for row in islice(rows, shots)]
        sentence1, sentence2, condition, _ = next(rows)
        prompts.append(
            render(sentence1, sentence2, condition, instruction=instruction, examples=examples)
        )
    random.Random(seed).shuffle(prompts)
    return prompts


def random_model(folder: Path, texts: Sequence[str], *, seq2seq: bool) -> Path:
    """Make a tiny model with random weights: 2 layers (T5: on each side), 64 wide.

    Args:
        folder: The folder to write.
        texts: What its tokenizer is trained on.
        seq2seq: Whether to make a T5; else a GPT-2.

    Returns:
        The folder.
    """
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        texts, vocab_size=_VOCABULARY, special_tokens=["<pad>", _END], show_progress=False
    )
    fast = Tokenizer.from_str(bpe.to_str())
    if seq2seq:
        fast.post_processor = TemplateProcessing(single=f"$A {_END}", special_tokens=[(_END, 1)])
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=fast, pad_token="<pad>", eos_token=_END, model_max_length=1024
    )
    tokenizer.save_pretrained(folder)
    model: Any
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if seq2seq:
            config = T5Config(
                vocab_size=len(tokenizer),
                d_model=64,
                d_kv=16,
                d_ff=256,
                num_layers=2,
                num_heads=4,
                initializer_factor=3.0,
            )
            config.decoder_start_token_id = 0
            model = T5ForConditionalGeneration(config)
        else:
            model = GPT2LMHeadModel(
                GPT2Config(
                    vocab_size=len(tokenizer),
                    n_positions=1024,
                    n_embd=64,
                    n_layer=2,
                    n_head=4,
                    initializer_range=0.3,
                    bos_token_id=1,
                    eos_token_id=1,
                )
            )
    model.save_pretrained(folder)
    return folder


def _compare(folder: Path, kind: str, prompts: Sequence[str]) -> Result:
    backend = LocalBackend(PromptSettings(model=str(folder), device="cpu"))
    lengths = [backend.count_tokens(prompt) for prompt in prompts]
    sides: dict[str, Side] = {"ours": _batched(backend), "theirs": _one_by_one(folder, kind)}
    speeds, answers = _in_turns(sides, prompts)
    same = sum(map(str.__eq__, answers["ours"], answers["theirs"]))
    note = (
        f"prompts of {min(lengths)} to {max(lengths)} tokens, {statistics.median(lengths):.0f} in "
        f"the middle; up to {MAX_NEW_TOKENS} new tokens; float32, medians of {_REPEATS}; "
        f"{same} of {len(prompts)} answers are the same text on both sides"
    )
    return Result(
        benchmark="prompt_local",
        measured=f"{kind}, {len(prompts):,} prompts, cores: {usable_cores()}",
        peer=f"{version_of('transformers')} (one by one)",
        unit="rows/s",
        ours=speeds["ours"],
        theirs=speeds["theirs"],
        ratio=speeds["ours"] / speeds["theirs"],
        bar=BAR,
        notes=(note,),
    )


def _batched(backend: LocalBackend) -> Side:
    def answer(prompts: Sequence[str]) -> list[str]:
        found = dict(backend.answers(prompts))
        return [found[place].text for place in range(len(prompts))]

    return answer


def _one_by_one(folder: Path, kind: str) -> Side:
    """Answer one prompt as the documentation of transformers shows."""
    auto: Any = AutoModelForSeq2SeqLM if kind == "seq2seq" else AutoModelForCausalLM
    model = auto.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def answer(prompts: Sequence[str]) -> list[str]:
        texts = []
        for prompt in prompts:
            inputs = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
            output = model.generate(
                **inputs,
                do_sample=False,
                max_new_tokens=MAX_NEW_TOKENS,
                pad_token_id=tokenizer.pad_token_id,
            )
            start = 1 if kind == "seq2seq" else inputs["input_ids"].shape[1]
            texts.append(tokenizer.decode(output[0, start:], skip_special_tokens=True))
        return texts

    return answer


def _in_turns(
    sides: dict[str, Side], prompts: Sequence[str]
) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Let each side answer in turn, a few times; return prompts per second and answers."""
    # Weights and memory are set up in the first run.
    for side in sides.values():
        side(prompts[:8])
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    answers: dict[str, list[str]] = {}
    for _ in range(_REPEATS):
        for name, side in sides.items():
            start = time.perf_counter()
            answers[name] = side(prompts)
            seconds[name].append(time.perf_counter() - start)
    return {name: len(prompts) / statistics.median(some) for name, some in seconds.items()}, answers
