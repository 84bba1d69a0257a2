"""An encoder whose scores are known: 1 where the condition's word is the same, else 0."""

from __future__ import annotations

import numpy as np

from condsim.model.embedding import EmbeddingScorer

WORDS = {"the color": ("red", "black", "blue"), "the animal": ("cat", "dog")}
ALL = [word for words in WORDS.values() for word in words]


class WordEncoder(EmbeddingScorer):
    """Embeds a text as the words of it that its condition names."""

    def __init__(self):
        super().__init__(name="words", order="condition-first", dimension=6, calibration=None)
        self.calls = []

    def _embed(self, texts):
        self.calls.append(len(texts))
        vectors = np.zeros((len(texts), 6), np.float32)
        for row, text in enumerate(texts):
            condition, sentence = ("", text) if isinstance(text, str) else text
            words = WORDS.get(condition, ALL)
            vectors[row] = [*(word in words and word in sentence for word in ALL), 0]
            vectors[row, 5] = not vectors[row].any()
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
