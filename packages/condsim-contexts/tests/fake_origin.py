"""An origin of no model, for processes of their own: the harvest's tests import it by its path."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from condsim_contexts.corpus import Corpus
from condsim_contexts.harvest import Harvest, harvest_pairs
from condsim_contexts.index import TfidfIndex
from condsim_contexts.recipe import HarvestSettings


class FakeScorer:
    """Scores a pair by a hash of its text."""

    def __init__(self, *, delay: float = 0.0) -> None:
        self.without_contexts = 0
        self.delay = delay

    def cosines(self, sentences1: Any, sentences2: Any) -> Any:
        time.sleep(self.delay)
        self.without_contexts += sum("bread" in text for text in sentences1)
        texts = [one + other for one, other in zip(sentences1, sentences2, strict=True)]
        hashes = [hashlib.sha256(text.encode()).digest()[0] / 128 - 1 for text in texts]
        return np.array(hashes, np.float32)


class FakeOrigin:
    """The corpus and index of a folder, with the fake scorer."""

    def __init__(self, folder: Path, *, delay: float = 0.0) -> None:
        self.corpus = Corpus(folder / "corpus")
        self.index = TfidfIndex.build(
            self.corpus.chunk_texts(), folder / "index", revision=self.corpus.revision
        )
        self.single_index = None
        self.scorer = FakeScorer(delay=delay)


SETTINGS = HarvestSettings(pairs=600, shard_pairs=40, seed=3)
IDENTITY = {"corpus": "c0", "selection": {"size": 5}}


def run(folder: Path, *, delay: float = 0.0) -> Harvest:
    """Harvests into the folder ``harvest`` beside the corpus."""
    origin = FakeOrigin(folder, delay=delay)
    return harvest_pairs(folder / "harvest", SETTINGS, lambda: origin, identity=IDENTITY)


if __name__ == "__main__":
    run(Path(sys.argv[1]), delay=float(sys.argv[2]))
