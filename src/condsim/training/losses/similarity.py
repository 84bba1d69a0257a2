"""The objectives on the cosine: MSE, correlation, Quad; and those of other data, from SBERT."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    SoftmaxLoss as LibrarySoftmaxLoss,
    TripletLoss as LibraryTripletLoss,
)
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.base import LossOptions, SimilarityLoss, Targets, Ties
from condsim.training.losses.functional import (
    correlation_loss,
    high_low_pairs,
    mse_loss,
    quad_loss,
    tolerant_labels,
)


class PairedLoss(SimilarityLoss):
    """Base of the objectives over a sentence pair's two cosines, under its two conditions.

    The two rows must share a batch and a pair id. Rows without a partner add nothing, nor do pairs
    whose labels are equal, for they have no positive; with ``ties="kept"`` the first row is it.
    """

    @classmethod
    def compute(cls, similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """Finds the pairs of the batch and hands them to :meth:`compute_pairs`.

        Raises:
            InputError: If the labels carry no pair ids.
        """
        if targets.pair_ids is None:
            raise InputError(
                f"{cls.__name__} compares two rows of one sentence pair, so labels must have shape "
                "(rows, 2): gold similarity and pair id. Got gold similarities only."
            )
        ties = options.ties == "kept"
        high, low = high_low_pairs(targets.gold, targets.pair_ids, ties=ties)
        gaps = targets.gold[high] - targets.gold[low]
        return cls.compute_pairs(similarities[high], similarities[low], gaps, options)

    @staticmethod
    @abstractmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """Computes the objective itself.

        Args:
            high: Similarity of each pair under its higher-labelled condition, ``(pairs,)``.
            low: Similarity of the same pairs under the lower-labelled condition, ``(pairs,)``.
            gaps: Gold of the first minus gold of the second, ``(pairs,)``, at least 0.

        Returns:
            A float32 scalar, lower is better.
        """


class MSELoss(SimilarityLoss):
    """``mean((cos(h1, h2) - gold)²)`` (C-STS §4.1).

    Example:
        >>> loss = MSELoss(model)  # doctest: +SKIP
        >>> SentenceTransformerTrainer(model, loss=loss, ...)  # doctest: +SKIP
    """

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See :func:`mse_loss` and :func:`tolerant_labels`."""
        gold = tolerant_labels(targets.gold, similarities, tolerance=options.middle_tolerance)
        return mse_loss(similarities, gold, targets.weights)


class CorrelationLoss(SimilarityLoss):
    """One minus the Pearson correlation of cosine and gold over the batch.

    Not from the papers. It asks for the right order and spacing but not for the level, so the
    encoder need not push unrelated texts to a cosine of 0. The larger the batch, the better the
    estimate; a batch of equal labels adds nothing.
    """

    @staticmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """See :func:`correlation_loss` and :func:`tolerant_labels`."""
        gold = tolerant_labels(targets.gold, similarities, tolerance=options.middle_tolerance)
        return correlation_loss(similarities, gold, targets.weights)


class QuadLoss(PairedLoss):
    """``mean(max(λ + cos(n1, n2) - cos(p1, p2), 0))`` over the pairs of the batch (C-STS §4.1).

    p is the row of a sentence pair with the higher label, n the one with the lower.
    """

    shown = ("margin", "ties")

    def __init__(
        self, model: SentenceTransformer, *, margin: float = 1.0, ties: Ties = "dropped"
    ) -> None:
        """Makes the loss; λ is ``margin``, at least 0, or InputError."""
        super().__init__(model, LossOptions(margin=margin, ties=ties))

    @staticmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """See :func:`quad_loss`; the gap between the labels does not matter."""
        return quad_loss(high, low, margin=options.margin)


class SoftmaxLoss(LibrarySoftmaxLoss):
    """Cross-entropy of ``softmax(W [u; v; |u - v|] + b)``, sentence-transformers' ``SoftmaxLoss``.

    W and b belong to the loss: they are trained and kept in the checkpoints of a run, and a saved
    encoder has none of them. In a run of several processes their gradients are averaged over them,
    as the encoder's are; the library's would drift apart.

    References:
        - Reimers and Gurevych, 2019, "Sentence-BERT", §3, classification objective.
        - Sun et al., 2022 (SSBC), §4.2, "partially supervised".

    Inputs:
        | columns                               | labels              |
        |---------------------------------------|---------------------|
        | premise, hypothesis (plain sentences) | number of the class |
    """

    def __init__(self, model: SentenceTransformer, *, classes: int = 3) -> None:
        """Makes the loss with a fresh classifier.

        Args:
            classes: Number of classes, at least 2.

        Raises:
            InputError: If there are fewer than two classes, or the model does not know its
                dimension.
        """
        dimension = model.get_embedding_dimension()
        if dimension is None:
            raise InputError("The softmax objective needs an encoder that knows its dimension.")
        if classes < 2:
            raise InputError(f"The softmax objective needs two classes or more. Got {classes}.")
        super().__init__(model, dimension, num_labels=classes)
        for weight in self.classifier.parameters():
            weight.register_hook(_mean_over_processes)  # type: ignore[no-untyped-call]


def _mean_over_processes(gradient: Tensor) -> Tensor:
    """Averages a gradient over the processes of a run; of one process it stays as it is."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return gradient
    total = gradient.clone()
    torch.distributed.all_reduce(total)
    return total / torch.distributed.get_world_size()


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
            margin: How much further the negative is to be, at least 0.

        Raises:
            InputError: If the margin is negative or not finite.
        """
        if not (math.isfinite(margin) and margin >= 0):
            raise InputError(f"The margin of triplets must be at least 0. Got {margin} instead.")
        super().__init__(model, triplet_margin=margin)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Computes the loss of anchors, positives and negatives, ``(rows, dim)`` each."""
        if len(embeddings) != 3:
            raise InputError(
                "The triplet objective takes three columns: anchor, positive, negative. "
                f"Got {len(embeddings)} instead."
            )
        floats = [batch.float() for batch in embeddings]
        return super().compute_loss_from_embeddings(floats, labels)
