"""Memory of preparing and indexing a large corpus."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.contexts_text import synthetic_sentences
from benchmarks.memory import peak_memory
from benchmarks.result import Result
from condsim_contexts.corpus import Corpus

__all__ = ["LIMIT", "run"]

# 4 GB, in MiB.
LIMIT = 4e9 / 2**20

_WORK = """
import sys
from pathlib import Path
from condsim_contexts import Corpus, TfidfIndex
from condsim_contexts.corpus import prepare_corpus
text, folder = map(Path, sys.argv[2:])
if sys.argv[1] == "prepare":
    prepare_corpus([text], folder / "corpus")
else:
    corpus = Corpus(folder / "corpus")
    TfidfIndex.build(corpus.chunk_texts(), folder / "index", revision=corpus.revision)
"""


def run(*, quick: bool) -> list[Result]:
    """Measure the peak memory of preparing a gigabyte of text, and of indexing it.

    Args:
        quick: Whether to take 50 megabytes instead.

    Returns:
        One result a step.

    Raises:
        subprocess.CalledProcessError: If a step fails.
    """
    size = 50_000_000 if quick else 1_000_000_000
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        text = Path(folder, "text.txt")
        with text.open("w", encoding="utf-8") as file:
            file.writelines(synthetic_sentences(size))
        words = [str(text), folder]
        peaks = {
            step: peak_memory([sys.executable, "-c", _WORK, step, *words])
            for step in ("prepare", "index")
        }
        counts = Corpus(Path(folder, "corpus")).counts
        index = sum(file.stat().st_size for file in Path(folder, "index").iterdir())
    return [
        Result(
            benchmark="contexts_memory",
            measured=f"peak memory, {step} {size // 1_000_000:,} MB of text",
            peer="the 4 GB promised for 1 GB",
            unit="MiB",
            ours=peak,
            theirs=LIMIT,
            ratio=LIMIT / peak,
            bar=1.0,
            notes=(
                f"{counts.sentences:,} sentences kept, {sum(counts.dropped.values()):,} dropped; "
                f"index of {index // 1_000_000:,} MB",
            ),
        )
        for step, peak in peaks.items()
    ]
