"""Any weighted sum of the objectives, with one forward for all of them (BCL takes a second)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from condsim.errors import InputError, unknown_name
from condsim.losses.base import LossOptions, SimilarityLoss, Targets, encode_batch
from condsim.losses.contrastive import (
    ACLLoss,
    BCLLoss,
    CMSELoss,
    FDLLoss,
    ProjectedLoss,
    RDLLoss,
    WACLLoss,
    new_head,
    project_batch,
)
from condsim.losses.ranking import CoSENTLoss, ListNetLoss, PairOrderLoss, RankNetLoss
from condsim.losses.similarity import CorrelationLoss, MSELoss, QuadLoss, SoftmaxLoss, TripletLoss

LOSSES: dict[str, type[SimilarityLoss]] = {
    "mse": MSELoss,
    "quad": QuadLoss,
    "correlation": CorrelationLoss,
    "cosent": CoSENTLoss,
    "ranknet": RankNetLoss,
    "listnet": ListNetLoss,
    "pair-order": PairOrderLoss,
    "fdl": FDLLoss,
    "rdl": RDLLoss,
    "acl": ACLLoss,
    "w-acl": WACLLoss,
}
"""The objectives on the cosine, by the name that a recipe uses."""

PROJECTED_LOSSES: dict[str, type[ProjectedLoss]] = {"bcl": BCLLoss, "c-mse": CMSELoss}
"""The objectives in the projected space, by the name that a recipe uses."""


class WeightedSumLoss(nn.Module):
    """A weighted sum of objectives, such as Quad + MSE (C-STS §4.1).

    Returns a dict with one entry per term, already weighted; the sentence-transformers trainer logs
    each and trains on their sum. All terms share the embeddings, and BCL and C-MSE one projection
    head, which exists only if one of them has a weight above 0.

    Example:
        >>> WeightedSumLoss(model, {"mse": 1.0, "correlation": 0.5})  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weights: Mapping[str, float],
        *,
        margin: float = 1.0,
        scale: float = 20.0,
        tau: float = 5.0,
        sigma: float = 0.5,
        middle_tolerance: float = 0.0,
    ) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
            weights: Weight of each objective by its name in ``LOSSES`` or ``PROJECTED_LOSSES``, at
                least 0. An objective of weight 0 is not computed.
            margin: λ of Quad, at least 0.
            scale: Inverse temperature of CoSENT, RankNet, ListNet and pair order, above 0.
            tau: τ of BCL, above 0.
            sigma: σ of BCL in [0, 1].
            middle_tolerance: See ``LossOptions``.

        Raises:
            InputError: If a name is unknown, a weight negative or no weight above 0, or if one of
                the numbers is out of its range.
        """
        super().__init__()
        self.model = model
        self.weights = checked_weights(weights)
        self.options = LossOptions(
            margin=margin, scale=scale, tau=tau, sigma=sigma, middle_tolerance=middle_tolerance
        )
        projected = [name for name in self.weights if name in PROJECTED_LOSSES]
        self.head = new_head(model) if projected else None
        self._with_view = any(PROJECTED_LOSSES[name].needs_view for name in projected)

    def forward(
        self, sentence_features: Iterable[dict[str, Any]], labels: Tensor
    ) -> dict[str, Tensor]:
        """Computes the weighted terms of a batch.

        Args:
            sentence_features: The two preprocessed columns, ``rows`` rows each.
            labels: ``(rows,)`` or ``(rows, 2)``, see ``Targets.from_labels``; Quad needs the ids.

        Returns:
            A float32 scalar per objective with a weight above 0, multiplied by its weight.

        Raises:
            InputError: If there are not two columns, or the labels break their rules.
        """
        batch = encode_batch(self.model, sentence_features, labels)
        terms = weighted_terms(batch.similarities, batch.targets, self.weights, self.options)
        if self.head is not None:
            projected = project_batch(self.model, self.head, batch, with_view=self._with_view)
            for name, loss in PROJECTED_LOSSES.items():
                if name in self.weights:
                    terms[name] = self.weights[name] * loss.compute(projected, self.options)
        return terms

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"weights": self.weights, **asdict(self.options)}


def weighted_terms(
    similarities: Tensor, targets: Targets, weights: Mapping[str, float], options: LossOptions
) -> dict[str, Tensor]:
    """Computes each objective on the cosine and multiplies it by its weight.

    Args:
        similarities: Predicted similarity of each row, ``(rows,)``.
    """
    return {
        name: weight * LOSSES[name].compute(similarities, targets, options)
        for name, weight in weights.items()
        if name in LOSSES
    }


def checked_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Checks the weights of a sum and drops the zeros."""
    known = {**LOSSES, **PROJECTED_LOSSES}
    for name, weight in weights.items():
        if name not in known:
            raise unknown_name("objective", name, known)
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"The weight of objective {name!r} must be at least 0. Got {weight} instead."
            )
    kept = {name: float(weight) for name, weight in weights.items() if weight > 0}
    if not kept:
        raise InputError(
            f"At least one objective must have a weight above 0. Got {dict(weights)} instead."
        )
    return kept


LONE_LOSSES: dict[str, type[SoftmaxLoss] | type[TripletLoss]] = {
    "softmax": SoftmaxLoss,
    "triplet": TripletLoss,
}
"""The objectives that take data of their own and stand alone, by the name that a recipe uses."""
