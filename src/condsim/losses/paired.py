"""Base of the objectives that compare the two rows of a sentence pair."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from condsim.errors import InputError
from condsim.losses.base import LossOptions, SimilarityLoss, Targets
from condsim.losses.functional import high_low_pairs

__all__ = ["PairedLoss"]


class PairedLoss(SimilarityLoss):
    """Base of the objectives over a sentence pair's two cosines, under its two conditions.

    The two rows must share a batch and a pair id. Rows without a partner, and pairs whose labels
    are equal, add nothing: without a higher label there is no positive.
    """

    @classmethod
    def compute(cls, similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """Finds the pairs of the batch and hands them to ``compute_pairs``.

        Raises:
            InputError: If the labels carry no pair ids.
        """
        if targets.pair_ids is None:
            raise InputError(
                f"{cls.__name__} compares two rows of one sentence pair, so labels must have shape "
                "(rows, 2): gold similarity and pair id. Got gold similarities only."
            )
        high, low = high_low_pairs(targets.gold, targets.pair_ids)
        gaps = targets.gold[high] - targets.gold[low]
        return cls.compute_pairs(similarities[high], similarities[low], gaps, options)

    @staticmethod
    @abstractmethod
    def compute_pairs(high: Tensor, low: Tensor, gaps: Tensor, options: LossOptions) -> Tensor:
        """The objective itself.

        Args:
            high: Similarity of each pair under its higher-labelled condition, ``(pairs,)``.
            low: Similarity of the same pairs under the lower-labelled condition, ``(pairs,)``.
            gaps: Gold of the first minus gold of the second, ``(pairs,)``, above 0.
            options: Numbers of the objective.

        Returns:
            A float32 scalar, lower is better.
        """
