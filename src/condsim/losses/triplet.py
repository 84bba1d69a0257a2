"""Triplet: the anchor is nearer to its positive than to its negative, by a margin."""

from __future__ import annotations

import math

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import TripletLoss as LibraryTripletLoss
from torch import Tensor

from condsim.errors import InputError

__all__ = ["TripletLoss"]


class TripletLoss(LibraryTripletLoss):
    """``mean(max(‖a - p‖ - ‖a - n‖ + margin, 0))``, sentence-transformers' ``TripletLoss``.

    Euclidean distances and the margin 1, as in SBERT; the library's own default is 5. Distances are
    taken in float32, or under bfloat16 those of near texts would be equal.

    References:
        - Reimers and Gurevych, 2019, "Sentence-BERT", §3, triplet objective.
        - Sun et al., 2022 (SSBC), §4.5, "triple objective".

    Inputs:
        | columns                                      | labels |
        |----------------------------------------------|--------|
        | anchor, positive, negative (plain sentences) | none   |
    """

    def __init__(self, model: SentenceTransformer, *, margin: float = 1.0) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
            margin: How much further the negative is to be, at least 0.

        Raises:
            InputError: If the margin is negative or not finite.
        """
        if not (math.isfinite(margin) and margin >= 0):
            raise InputError(f"The margin of triplets must be at least 0. Got {margin} instead.")
        super().__init__(model, triplet_margin=margin)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Computes the loss of a batch.

        Args:
            embeddings: Those of anchors, positives and negatives, ``(rows, dim)`` each.
            labels: Not used.

        Returns:
            A float32 scalar.

        Raises:
            InputError: If there are not three columns.
        """
        if len(embeddings) != 3:
            raise InputError(
                "The triplet objective takes three columns: anchor, positive, negative. "
                f"Got {len(embeddings)} instead."
            )
        floats = [batch.float() for batch in embeddings]
        return super().compute_loss_from_embeddings(floats, labels)
