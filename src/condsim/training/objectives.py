"""Training objectives: which loss function compares what, with which options.

A new objective takes a function in `condsim.training.losses`, a line in `OBJECTIVES` and a row in
``docs/training.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import Field
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss, TripletLoss

from condsim.config import Settings
from condsim.errors import InputError, unknown_name
from condsim.training import losses


class LossOptions(Settings):
    """Numbers that the objectives take; `condsim.training.recipe.Recipe` describes them.

    With ``ties`` kept, the objectives on the two rows of a sentence pair take rows of equal labels,
    the first row as the positive. The text of C-STS asks for a higher label; the released code and
    CCL (§3.1) take them.
    """

    what: ClassVar[str] = "loss option"

    margin: float = Field(default=1.0, ge=0)
    scale: float = Field(default=20.0, gt=0)
    tau: float = Field(default=5.0, gt=0)
    sigma: float = Field(default=0.5, ge=0, le=1)
    middle_tolerance: float = Field(default=0.0, ge=0, le=0.5)
    ranking_margin: float = Field(default=0.1, ge=0, le=2)
    ties: Literal["dropped", "kept"] = "dropped"


Compares = Literal[
    "rows",
    "weighted rows",
    "pairs",
    "pair gaps",
    "lists",
    "projections",
    "views",
    "levels",
    "classes",
    "triplets",
    "vectors",
]


@dataclass(frozen=True)
class Objective:
    """Loss function of a recipe's term, what it compares and the options it takes.

    Attributes:
        function: The loss function; for ``classes`` and ``triplets`` a sentence-transformers loss.
        compares: Its arguments:

            - ``rows``: similarities and golds of all rows; ``weighted rows``: row weights, too.
            - ``pairs``: similarities of a sentence pair under its two conditions, the higher label
              first; ``pair gaps``: the gaps between the labels, too.
            - ``lists``: similarities and golds of rows with a pair id or list id in common.
            - ``projections``: the cosines of projected embeddings, and golds; ``views``: those of
              a second view of sentence 1 and of all sentences 2.
            - ``levels``: the logits of a cross-encoder, one for each label, and golds.
            - ``classes`` and ``triplets``: data of these kinds, for a bi-encoder.
            - ``vectors``: embeddings, and those of a teacher, for a source with vectors.
        options: The fields of `LossOptions` by the parameters that they fill.
        cross_encoder: Whether it applies to a cross-encoder, which encodes no sentence by itself.
    """

    function: Callable[..., Any]
    compares: Compares
    options: Mapping[str, str] = field(default_factory=dict)
    cross_encoder: bool = False

    @property
    def needs_pairs(self) -> bool:
        """True if it compares the rows of a sentence pair."""
        return self.compares in ("pairs", "pair gaps", "lists")

    @property
    def uses_similarities(self) -> bool:
        """True if it takes nothing but the similarities of rows and their labels."""
        return self.needs_pairs or self.compares in ("rows", "weighted rows")

    @property
    def stands_alone(self) -> bool:
        """True if it takes data of its own kind, so that no other objective goes with it."""
        return self.compares in ("classes", "triplets")

    def arguments(self, options: LossOptions) -> dict[str, float]:
        """Values of the options that the function takes, by parameter."""
        return {name: getattr(options, key) for name, key in self.options.items()}


SCALE = {"scale": "scale"}

OBJECTIVES: dict[str, Objective] = {
    "mse": Objective(losses.mse_loss, "weighted rows", cross_encoder=True),
    "classification": Objective(losses.classification_loss, "levels", cross_encoder=True),
    "quad": Objective(losses.quad_loss, "pairs", {"margin": "margin"}),
    "correlation": Objective(losses.correlation_loss, "weighted rows", cross_encoder=True),
    "cosent": Objective(losses.cosent_loss, "rows", SCALE, cross_encoder=True),
    "ranknet": Objective(losses.ranknet_loss, "rows", SCALE, cross_encoder=True),
    "listnet": Objective(losses.listnet_loss, "rows", SCALE, cross_encoder=True),
    "pair-order": Objective(losses.pair_order_loss, "pairs", SCALE, cross_encoder=True),
    "ranking": Objective(
        losses.ranking_loss, "lists", {**SCALE, "margin": "ranking_margin"}, cross_encoder=True
    ),
    "fdl": Objective(losses.fdl_loss, "pair gaps"),
    "rdl": Objective(losses.rdl_loss, "pair gaps"),
    "acl": Objective(losses.acl_loss, "pair gaps"),
    "w-acl": Objective(losses.w_acl_loss, "pair gaps"),
    "bcl": Objective(losses.bcl_loss, "views", {"tau": "tau", "sigma": "sigma"}),
    "c-mse": Objective(losses.mse_loss, "projections"),
    "softmax": Objective(SoftmaxLoss, "classes"),
    "triplet": Objective(TripletLoss, "triplets"),
    "vectors": Objective(losses.vector_loss, "vectors"),
    "relations": Objective(losses.relation_loss, "vectors"),
}
"""Every objective by its name in a recipe."""


def check_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Check the weights of a sum of objectives and drop those of 0."""
    for name, weight in weights.items():
        if name not in OBJECTIVES:
            raise unknown_name("objective", name, OBJECTIVES)
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"The weight of objective {name!r} must be at least 0; got {weight:g}."
            )
    positive = {name: float(weight) for name, weight in weights.items() if weight > 0}
    if not positive:
        raise InputError(f"An objective needs a weight above 0; got {dict(weights)}.")
    return positive
