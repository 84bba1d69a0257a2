"""Bi- and tri-encoders as sentence-transformers loads them. Needs the ``train`` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condsim.encoders.conditioning import Order
from condsim.scorers.calibration import Calibration
from condsim.scorers.embedding import EmbeddingScorer
from condsim.types import FloatArray

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["EncoderScorer"]


class EncoderScorer(EmbeddingScorer):
    """Scores with a bi- or tri-encoder of sentence-transformers.

    Attributes:
        model: The encoder, not a copy.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        name: str,
        order: Order = "condition-first",
        calibration: Calibration | None = None,
        batch_size: int = 32,
    ) -> None:
        """Wraps a loaded model.

        Args:
            model: A bi- or tri-encoder that takes pairs of texts.
            name: Short name, shown in tables.
            order: Which of condition and sentence comes first.
            calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
            batch_size: Texts encoded at once.

        Raises:
            InputError: If the order is unknown.
        """
        super().__init__(
            name=name,
            order=order,
            dimension=model.get_embedding_dimension() or 0,
            calibration=calibration,
        )
        self.model = model
        self._batch_size = batch_size

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds texts or pairs; sentence-transformers sorts them by length itself."""
        vectors = self.model.encode(
            texts,
            batch_size=self._batch_size,
            show_progress_bar=False,
            normalize_embeddings=True,
        )
        return np.asarray(vectors, dtype=np.float32)
