"""The objectives by the names that recipes use. Reading this needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal


@dataclass(frozen=True)
class Objective:
    """What a recipe must know of an objective.

    Attributes:
        loss: Module and class below this package, imported late; a function for ``levels``
            and ``vectors``.
        compares: ``rows``: the cosine of each row with its label; ``pairs``: the cosines of a
            sentence pair under its two conditions; ``projections``: projected embeddings;
            ``classes`` and ``triplets``: data of these kinds, with no other objective;
            ``vectors``: embeddings with those of a teacher, for a source of its own; ``levels``:
            the logits of a cross-encoder, one for each label, with no other objective.
        cross_encoder: Whether it applies to a cross-encoder, which encodes no sentence by itself.
        tolerant: Whether it heeds the recipe key ``middle_tolerance``.
        needs_dropout: Whether the encoder must have dropout.
    """

    loss: str
    compares: Literal[
        "rows", "pairs", "projections", "classes", "triplets", "vectors", "levels"
    ] = "rows"
    cross_encoder: bool = False
    tolerant: bool = False
    needs_dropout: bool = False

    @property
    def stands_alone(self) -> bool:
        """Whether it takes data of its own kind, so that no other objective goes with it."""
        return self.compares in ("classes", "triplets", "vectors")

    def load(self) -> Any:  # noqa: ANN401  (a class of one of three bases, or a function)
        """Imports the loss."""
        module, _, name = self.loss.partition(".")
        return getattr(import_module(f"condsim.training.losses.{module}"), name)


OBJECTIVES: dict[str, Objective] = {
    "mse": Objective("similarity.MSELoss", cross_encoder=True, tolerant=True),
    "classification": Objective("functional.classification_loss", "levels", cross_encoder=True),
    "quad": Objective("similarity.QuadLoss", "pairs"),
    "correlation": Objective("similarity.CorrelationLoss", cross_encoder=True, tolerant=True),
    "cosent": Objective("ranking.CoSENTLoss", cross_encoder=True),
    "ranknet": Objective("ranking.RankNetLoss", cross_encoder=True),
    "listnet": Objective("ranking.ListNetLoss", cross_encoder=True),
    "pair-order": Objective("ranking.PairOrderLoss", "pairs", cross_encoder=True),
    "ranking": Objective("ranking.RankingLoss", "pairs", cross_encoder=True),
    "fdl": Objective("contrastive.FDLLoss", "pairs"),
    "rdl": Objective("contrastive.RDLLoss", "pairs"),
    "acl": Objective("contrastive.ACLLoss", "pairs"),
    "w-acl": Objective("contrastive.WACLLoss", "pairs"),
    "bcl": Objective("contrastive.BCLLoss", "projections", needs_dropout=True),
    "c-mse": Objective("contrastive.CMSELoss", "projections"),
    "softmax": Objective("similarity.SoftmaxLoss", "classes"),
    "triplet": Objective("similarity.TripletLoss", "triplets"),
    "vectors": Objective("weighted.vector_loss", "vectors"),
    "relations": Objective("weighted.relation_loss", "vectors"),
}
"""Every objective by its name in a recipe. A new one takes its class, a line here and a row in
``docs/training.md``."""
