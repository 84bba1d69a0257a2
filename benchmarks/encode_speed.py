"""Sentences per second with and without length batching, on the processor and on a GPU.

SSBC Table 1 (Sun et al., 2022) as it can be measured: the paper gives neither the sentences nor the
batch size. Here each distinct sentence of C-STS is encoded once: in batches of 32 in the order of
the file, or sorted by length first. Loading a model is not counted; each way runs once
unmeasured and then a few times in turns, of which the median counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

import condsim
from benchmarks.machine import usable_cores, version_of
from benchmarks.result import Result
from benchmarks.rows import source
from condsim.model.torch import EncoderScorer

__all__ = ["PUBLISHED", "run"]

PUBLISHED = (
    "SSBC Table 1, CPU/GPU (i7-5820K, V100), sentences/s: InferSent 125/1527, Universal Sentence "
    "Encoder 72/1330, SBERT base 41/1315, with length batching 88/2112, Surrogate base 48/1514, "
    "with length batching 91/2175"
)

_OURS = ("condsim default,", "condsim encoder,")  # not condsim-minilm, which the peer may run
_BATCH = 32
_REPEATS = 3

Side = Callable[[Sequence[str]], None]


def run(peer: Path, data: Path, *, quick: bool) -> list[Result]:
    """Encodes the same sentences in each way.

    Args:
        peer: The default model in float32, or one of its size, for sentence-transformers.
        data: A C-STS file whose sentences are taken; some are generated where it is missing.
        quick: Whether to encode 300 sentences rather than 3,000.

    Returns:
        For each model and device the speed with length batching against that without, and ours
        against sentence-transformers on the processor.

    Raises:
        InputError: If the file breaks a rule.
    """
    rows = source(data, rows=10_000)
    sentences = list(dict.fromkeys((*rows.task.sentences1, *rows.task.sentences2)))
    sentences = sentences[: 300 if quick else 3_000]
    torch.set_num_threads(usable_cores())
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    sides: dict[str, Side] = {}
    scorer = condsim.load()
    sides |= _both("condsim default, int8, cpu", lambda texts: scorer.encode(texts))
    for device in devices:
        model = SentenceTransformer(str(peer), device=device, local_files_only=True)
        sides |= _both(f"{peer.name}, float32, {device}", _encoder(model))
        encoder = EncoderScorer(model, name=peer.name)
        for numbers in dict.fromkeys(("float32", encoder.with_precision("auto").numbers)):
            name = f"condsim encoder, {numbers}, {device}"
            sides |= _both(name, encoder.with_precision(numbers).encode)
    # On one core without a GPU the two clocks differ by what other processes took.
    alone = usable_cores() == 1 and devices == ["cpu"]
    clock = time.process_time if alone else time.perf_counter
    speeds = _in_turns(sides, sentences, clock)
    note = (
        f"{len(sentences):,} distinct sentences, {rows.origin}; batches of {_BATCH} as they come; "
        f"sorted, of {_BATCH} by sentence-transformers, of 512 tokens in int8 and of 1,024 by the "
        f"condsim encoder; cores: {usable_cores()}; "
        f"medians of {_REPEATS}, in seconds {'of processor time' if alone else 'by the clock'}"
    )
    return _results(speeds, note=note)


def _encoder(model: SentenceTransformer) -> Callable[[list[str]], object]:
    """Encodes with sentence-transformers, which sorts what it is given by length."""

    def encode(texts: list[str]) -> object:
        return model.encode(texts, batch_size=_BATCH, show_progress_bar=False)

    return encode


def _both(name: str, encode: Callable[[list[str]], object]) -> dict[str, Side]:
    """A model that gets all sentences at once and sorts them, and one that gets them in batches."""

    def sorted_by_length(sentences: Sequence[str]) -> None:
        encode(list(sentences))

    def as_they_come(sentences: Sequence[str]) -> None:
        for start in range(0, len(sentences), _BATCH):
            encode(list(sentences[start : start + _BATCH]))

    return {f"{name} | sorted": sorted_by_length, f"{name} | as they come": as_they_come}


def _in_turns(
    sides: Mapping[str, Side], sentences: Sequence[str], clock: Callable[[], float]
) -> dict[str, float]:
    """Lets each side encode the sentences in turn; returns sentences per second."""
    for side in sides.values():
        side(sentences[: 4 * _BATCH])
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(_REPEATS):
        for name, side in sides.items():
            start = clock()
            side(sentences)
            seconds[name].append(clock() - start)
    return {name: len(sentences) / statistics.median(some) for name, some in seconds.items()}


def _results(speeds: Mapping[str, float], *, note: str) -> list[Result]:
    """Sorted against unsorted for each model, then each of ours against the peer."""
    models = list(dict.fromkeys(name.partition(" | ")[0] for name in speeds))
    results = [
        _result(
            f"{model}, sorted by length",
            "the same, as they come",
            speeds[f"{model} | sorted"],
            speeds[f"{model} | as they come"],
            notes=(note, PUBLISHED) if model == models[0] else (),
        )
        for model in models
    ]
    ours = [model for model in models if model.startswith(_OURS)]
    peer = next(model for model in models if model not in ours)
    for model in ours:
        results.append(
            _result(
                f"{model}, sorted by length",
                f"{version_of('sentence-transformers')}, {peer}, sorted by length",
                speeds[f"{model} | sorted"],
                speeds[f"{peer} | sorted"],
            )
        )
    return results


def _result(
    measured: str, peer: str, ours: float, theirs: float, *, notes: tuple[str, ...] = ()
) -> Result:
    return Result(
        benchmark="encode_speed",
        measured=measured,
        peer=peer,
        unit="sentences/s",
        ours=ours,
        theirs=theirs,
        ratio=ours / theirs,
        notes=notes,
    )
