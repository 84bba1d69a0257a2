"""Weighted sums of objectives, with one forward for all of them (BCL takes a second)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from condsim.errors import InputError, unknown_name
from condsim.losses.base import LossOptions, Targets, encode_batch
from condsim.losses.contrastive import new_head, project_batch
from condsim.losses.registry import OBJECTIVES


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
        options: LossOptions | None = None,
    ) -> None:
        """Makes the loss.

        Args:
            weights: Weight of each objective by its name in ``OBJECTIVES``, at least 0. An
                objective of weight 0 is not computed.
            options: Numbers of the objectives.

        Raises:
            InputError: If a name is unknown, a weight negative or no weight above 0.
        """
        super().__init__()
        self.model = model
        self.weights = checked_weights(weights)
        self.options = options or LossOptions()
        projected = (name for name, one in OBJECTIVES.items() if one.compares == "projections")
        self._projected = [name for name in projected if name in self.weights]
        self.head = new_head(model) if self._projected else None
        self._with_view = any(OBJECTIVES[name].load().needs_view for name in self._projected)

    def forward(
        self, sentence_features: Iterable[dict[str, Any]], labels: Tensor
    ) -> dict[str, Tensor]:
        """Computes the weighted terms of a batch.

        Args:
            sentence_features: The two preprocessed columns, ``rows`` rows each.
            labels: ``(rows,)`` or ``(rows, 2)``, see :meth:`Targets.from_labels`; objectives on
                pairs need the ids.

        Returns:
            A float32 scalar per objective with a weight above 0, multiplied by its weight.

        Raises:
            InputError: If there are not two columns, or the labels break their rules.
        """
        batch = encode_batch(self.model, sentence_features, labels)
        terms = weighted_terms(batch.similarities, batch.targets, self.weights, self.options)
        if self.head is not None:
            projected = project_batch(self.model, self.head, batch, with_view=self._with_view)
            for name in self._projected:
                loss = OBJECTIVES[name].load()
                terms[name] = self.weights[name] * loss.compute(projected, self.options)
        return terms

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"weights": self.weights, **asdict(self.options)}


class CCLLoss(WeightedSumLoss):
    """``λ1 W-ACL + λ2 BCL + λ3 MSE + λ4 C-MSE`` (CCL Eq. 3; all λ are 1 in §4.1).

    In-batch negatives of BCL are those of one process and one step: neither gradient accumulation
    nor more processes add to them. W-ACL takes the pairs whose two rows share that batch.

    Example:
        >>> CCLLoss(model, tau=3.0, sigma=0.75)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        w_acl: float = 1.0,
        bcl: float = 1.0,
        mse: float = 1.0,
        c_mse: float = 1.0,
        tau: float = 5.0,
        sigma: float = 0.5,
    ) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train, a bi- or a tri-encoder.
            w_acl: λ1, at least 0. A term of weight 0 is not computed.
            bcl: λ2, at least 0. Above 0 it costs a second forward over sentence 1.
            mse: λ3, at least 0.
            c_mse: λ4, at least 0.
            tau: τ of BCL, above 0.
            sigma: σ of BCL in [0, 1].

        Raises:
            InputError: If a weight is negative or all are 0, or if τ or σ is out of its range.
        """
        weights = {"w-acl": w_acl, "bcl": bcl, "mse": mse, "c-mse": c_mse}
        super().__init__(model, weights, LossOptions(tau=tau, sigma=sigma))


def weighted_terms(
    similarities: Tensor, targets: Targets, weights: Mapping[str, float], options: LossOptions
) -> dict[str, Tensor]:
    """Computes each objective on the similarities, ``(rows,)``, times its weight."""
    return {
        name: weight * OBJECTIVES[name].load().compute(similarities, targets, options)
        for name, weight in weights.items()
        if OBJECTIVES[name].compares in ("rows", "pairs")
    }


def checked_weights(weights: Mapping[str, float], *, kind: str | None = None) -> dict[str, float]:
    """Checks the weights of a sum, of objectives of one kind if it is given; drops the zeros."""
    known = [
        name
        for name, one in OBJECTIVES.items()
        if (one.compares == kind if kind else not one.stands_alone)
    ]
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
