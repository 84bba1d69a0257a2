"""Sentences encoded by an exported surrogate of SSBC, and by the default model in one engine."""

from __future__ import annotations

import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

import condsim
from benchmarks.contexts_text import sentences
from benchmarks.machine import version_of
from benchmarks.result import Result
from condsim.model.onnx import OnnxScorer
from condsim.training.export import export_onnx
from condsim_contexts.corpus import prepare_corpus
from condsim_contexts.recipe import SurrogateSettings
from condsim_contexts.surrogate import MAX_TOKENS, new_backbone
from condsim_contexts.tokens import CorpusTokens, learn_vocabulary

__all__ = ["BAR", "run"]

BAR = 1.0

_REPEATS = 5
# Sentences that the tokenizer is learned from.
_LEARNED = 20_000


def run(*, quick: bool) -> list[Result]:
    """Export an untrained surrogate of the default size, which is as fast as a trained one.

    Args:
        quick: Whether to encode 1,000 sentences rather than 10,000.

    Returns:
        One result.
    """
    texts, origin = sentences()
    chosen = np.random.default_rng(0).permutation(len(texts))[: 1_000 if quick else 10_000]
    encoded = [texts[row] for row in chosen]
    settings = SurrogateSettings()
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as name:
        sides = {"ours": _surrogate(Path(name), texts, settings), "theirs": condsim.load()}
        for scorer in sides.values():
            # The first run sets up memory.
            scorer.encode(encoded[:64])
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(1 if quick else _REPEATS):
            for side, scorer in sides.items():
                started = time.perf_counter()
                scorer.encode(encoded)
                seconds[side].append(time.perf_counter() - started)
    rates = {side: len(encoded) / statistics.median(times) for side, times in seconds.items()}
    return [
        Result(
            benchmark="contexts_surrogate",
            measured=f"a surrogate from scratch ({settings.layers} layers, {settings.width} wide)",
            peer=f"the default model, {version_of('onnxruntime')}",
            unit="sentences/s",
            ours=rates["ours"],
            theirs=rates["theirs"],
            ratio=rates["ours"] / rates["theirs"],
            bar=BAR,
            notes=(
                f"{len(encoded):,} of {origin}, no condition; both int8 in the same engine; "
                f"medians of {len(seconds['ours'])}, in turns",
            ),
        )
    ]


def _surrogate(folder: Path, texts: list[str], settings: SurrogateSettings) -> OnnxScorer:
    """A surrogate as ``condsim contexts`` makes it, but for its training, exported."""
    text = folder / "text.txt"
    text.write_text("\n".join(texts[:_LEARNED]) + "\n", encoding="utf-8")
    corpus = prepare_corpus([text], folder / "corpus")
    vocabulary = learn_vocabulary(corpus, folder / "vocabulary")
    backbone = new_backbone(
        folder / "vocabulary",
        partial(CorpusTokens.build, corpus, vocabulary),
        folder / "backbone",
        settings,
    )
    transformer = Transformer(str(backbone), max_seq_length=MAX_TOKENS)
    model = SentenceTransformer(modules=[transformer, Pooling(settings.width, "mean")])
    model.save(str(folder / "model"))
    export_onnx(folder / "model", folder / "exported", samples=[(one, "") for one in texts[:100]])
    return OnnxScorer(folder / "exported")
