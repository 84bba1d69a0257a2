"""ONNX Runtime sessions and tokenizers of the models that run without torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnxruntime
from tokenizers import Tokenizer

from condsim.errors import ModelError, one_line
from condsim.types import IntArray

TOKENIZER_FILE = "tokenizer.json"

MAX_BATCH_TOKENS = 512
"""Tokens of a batch; a larger one is no faster."""

DOWNLOAD_AGAIN = "Download the model again."


def open_tokenizer(path: Path, max_length: int) -> tuple[Tokenizer, int]:
    """Read a tokenizer that truncates at ``max_length`` tokens, and the id of its padding."""
    # Neither tokenizers nor onnxruntime raises a narrower class than Exception.
    with one_line(f"{path} cannot be read", Exception, advice=DOWNLOAD_AGAIN, kind=ModelError):
        tokenizer = Tokenizer.from_file(str(path))
    padding = int((tokenizer.padding or {}).get("pad_id", 0))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return tokenizer, padding


def open_session(path: Path, output: str) -> onnxruntime.InferenceSession:
    """Open a model with one output, which runs in the thread that calls it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Errors are raised, and need not be printed as well.
    options.log_severity_level = 4
    with one_line(f"{path} cannot be loaded", Exception, advice=DOWNLOAD_AGAIN, kind=ModelError):
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    outputs = [item.name for item in session.get_outputs()]
    if outputs != [output]:
        raise ModelError(f"{path} must have one output, {output!r}; got {outputs}.")
    return session


def available_processors() -> int:
    """Count the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_batches(
    run: Callable[[IntArray], None], batches: Sequence[IntArray], *, threads: int | None = None
) -> None:
    """Run batches in parallel, in as many threads as there are processors by default."""
    threads = threads or available_processors()
    if len(batches) <= 1 or threads == 1:
        for batch in batches:
            run(batch)
        return
    # Splitting each operator of one batch is slower.
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, batches))
