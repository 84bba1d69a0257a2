from __future__ import annotations

import zlib

import numpy as np
import pytest

from condsim.model.calibration import Calibration
from condsim.model.embedding import EmbeddingScorer

pytest.importorskip("lancedb")


class WordsScorer(EmbeddingScorer):
    """Counts words in 64 places; under a condition, those that end in its last letter count more.

    So 'red' and 'wood' are near under 'd'. Scores are cosines, halved and raised by a half.
    """

    def __init__(self):
        calibration = Calibration((-1.0, 1.0), (0.0, 1.0))
        super().__init__(
            name="words", order="condition-first", dimension=64, calibration=calibration
        )
        self.encoded = 0

    def _embed(self, texts):
        vectors = np.zeros((len(texts), 64), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            condition, sentence = ("", text) if isinstance(text, str) else text
            for word in sentence.lower().strip(".").split():
                weight = 5.0 if condition and word.endswith(condition[-1]) else 1.0
                vector[zlib.crc32(word.encode()) % 64] += weight
        self.encoded += len(texts)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def scorer():
    return WordsScorer()


@pytest.fixture
def rows():
    return [
        {"id": "a", "text": "A red boat on blue water", "year": 2019, "tags": ["x", "y"]},
        {"id": "b", "text": "A red car on grey road", "year": 2020, "tags": []},
        {"id": "c", "text": "A green car on blue road", "year": 2021, "tags": None},
        {"id": "d", "text": "Two dogs sleep", "year": 2022},
        {"id": "e", "text": "Three dogs sleep", "year": None},
    ]
