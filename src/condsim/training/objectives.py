"""Training objectives: the loss function of each name in a recipe, and what it compares.

A new objective takes a function in `condsim.training.losses`, a line in `OBJECTIVES` and a row in
``docs/training.md``. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from condsim.errors import InputError, check_name


@dataclass(frozen=True)
class LossOptions:
    """Numbers that the objectives take; `condsim.training.recipe.Recipe` describes them.

    With ``ties`` kept, the objectives on the two rows of a sentence pair take rows of equal labels,
    the first row as the positive. The text of C-STS asks for a higher label; the released code and
    CCL (§3.1) take them.
    """

    margin: float = 1.0
    scale: float = 20.0
    tau: float = 5.0
    sigma: float = 0.5
    middle_tolerance: float = 0.0
    ranking_margin: float = 0.1
    ties: Literal["dropped", "kept"] = "dropped"


ROWS = ("similarities", "labels")
WEIGHTED_ROWS = ("similarities", "tolerant_labels", "weights")
PAIRS = ("high", "low")
PAIR_GAPS = (*PAIRS, "gaps")
LISTS = ("similarities", "labels", "ids", "weights")
VECTORS = ("student", "teacher")


@dataclass(frozen=True)
class Objective:
    """Loss function of a recipe's term.

    Attributes:
        loss: Name of the function in `condsim.training.losses`; of a loss of sentence-transformers
            where ``takes`` is empty.
        takes: Values of a batch that it compares, in the order of its parameters:
            ``similarities``, ``labels`` and ``weights`` of all rows, ``tolerant_labels`` (with
            ``middle_tolerance``); ``high``, ``low`` and ``gaps`` of sentence pairs under two
            conditions; the ``ids`` of rows to rank; ``projected`` similarities, and with a second
            view of sentence 1 ``positives`` and ``negatives``; the ``logits`` of a cross-encoder;
            embeddings of a ``student`` and its ``teacher``. Empty for an objective with its own
            kind of data.
        options: Its parameters that are fields of `LossOptions`.
        cross_encoder: Whether it applies to a cross-encoder, which encodes no sentence by itself.
    """

    loss: str
    takes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    cross_encoder: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """The loss function; needs torch."""
        function: Callable[..., Any] = getattr(import_module("condsim.training.losses"), self.loss)
        return function

    @property
    def needs_pairs(self) -> bool:
        """True if it compares the rows of a sentence pair."""
        return not {"high", "ids"}.isdisjoint(self.takes)

    @property
    def uses_similarities(self) -> bool:
        """True if the similarities of rows and their labels are enough to compute it."""
        return self.needs_pairs or "similarities" in self.takes

    def arguments(self, options: LossOptions) -> dict[str, float]:
        """Values of the options that the function takes, by parameter."""
        return {name: getattr(options, name) for name in self.options}


SCALE = ("scale",)

OBJECTIVES: dict[str, Objective] = {
    "mse": Objective("mse_loss", WEIGHTED_ROWS, cross_encoder=True),
    "classification": Objective("classification_loss", ("logits", "labels"), cross_encoder=True),
    "quad": Objective("quad_loss", PAIRS, ("margin",)),
    "correlation": Objective("correlation_loss", WEIGHTED_ROWS, cross_encoder=True),
    "cosent": Objective("cosent_loss", ROWS, SCALE, cross_encoder=True),
    "ranknet": Objective("ranknet_loss", ROWS, SCALE, cross_encoder=True),
    "listnet": Objective("listnet_loss", ROWS, SCALE, cross_encoder=True),
    "pair-order": Objective("pair_order_loss", PAIRS, SCALE, cross_encoder=True),
    "ranking": Objective("ranking_loss", LISTS, ("scale", "ranking_margin"), cross_encoder=True),
    "fdl": Objective("fdl_loss", PAIR_GAPS),
    "rdl": Objective("rdl_loss", PAIR_GAPS),
    "acl": Objective("acl_loss", PAIR_GAPS),
    "w-acl": Objective("w_acl_loss", PAIR_GAPS),
    "bcl": Objective("bcl_loss", ("positives", "negatives", "labels"), ("tau", "sigma")),
    "c-mse": Objective("mse_loss", ("projected", "labels")),
    "softmax": Objective("SoftmaxLoss"),
    "triplet": Objective("TripletLoss"),
    "vectors": Objective("vector_loss", VECTORS),
    "relations": Objective("relation_loss", VECTORS),
}
"""Every objective by its name in a recipe."""


def check_weights(weights: dict[str, float]) -> dict[str, float]:
    """Check the names in a sum of objectives and return the weights as they are, zeros included."""
    for name in weights:
        check_name("objective", name, OBJECTIVES)
    if not any(weights.values()):
        raise InputError(f"An objective needs a weight above 0; got {weights}.")
    return weights
