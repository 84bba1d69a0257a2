"""A recipe: everything that decides a training run, typed, in one YAML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from condsim.errors import InputError, unknown_name
from condsim.settings import override, read_mapping, typed, write_mapping

_ROW_OBJECTIVES = ("mse", "correlation", "cosent", "ranknet", "listnet")
_ENCODING_OBJECTIVES = ("quad", "fdl", "rdl", "acl", "w-acl")
_PAIR_OBJECTIVES = (*_ENCODING_OBJECTIVES, "pair-order")
_PROJECTED_OBJECTIVES = ("bcl", "c-mse")
_LONE_OBJECTIVES: tuple[Literal["softmax", "triplet"], ...] = ("softmax", "triplet")
_OBJECTIVES = (
    *(*_ROW_OBJECTIVES, *_PAIR_OBJECTIVES),
    *(*_PROJECTED_OBJECTIVES, *_LONE_OBJECTIVES),
)


@dataclass(frozen=True)
class Recipe:
    """One training run. The defaults are the settings of C-STS A.3, Table 7.

    Attributes:
        name: Name of the model, used on its card.
        train: Training file, relative to the working directory: similarities, for ``softmax``
            classes of NLI, for ``triplet`` triplets.
        dev: File the best epoch is chosen on, of similarities or triplets; never a test file.
        encoder: How sentences and condition meet (C-STS §4.1).
        backbone: Hub name or local folder of a pre-trained model.
        license: Licence of the model, as the Hub names it (``apache-2.0``), for its card.
        order: Whether the condition or the sentence (a cross-encoder: both sentences) comes first.
        pooling: How token states become one vector.
        transform: Whether a dense layer follows the pooling (C-STS A.3, "w/ MLP").
        fusion: How a tri-encoder joins sentence and condition.
        rank: Dimension of its embeddings where the fusion is ``low-rank``.
        dropout: Dropout of the backbone in [0, 1); None keeps the backbone's own.
        max_seq_length: Longest input in tokens; the rest is cut off.
        objective: Weight of each loss term, such as ``{mse: 1, quad: 1}``.
        margin: Margin of Quad (READING.md: 1), or of triplets (SBERT: 1).
        scale: Inverse temperature of the ranking objectives.
        tau: τ of BCL, which divides the cosines (CCL Eq. 10).
        sigma: σ of BCL in [0, 1]: from this label on, a row's own sentence 2 is no negative.
        middle_tolerance: How far ``mse`` and ``correlation`` let a row labelled 3 be from a gold of
            0.5, in [0, 0.5].
        epochs: Passes over the training rows.
        batch_size: Rows in a batch; the high and the low row of a pair are two rows.
        gradient_accumulation: Batches per optimizer step.
        learning_rate: Highest learning rate of AdamW.
        layer_decay: Factor in (0, 1] on the learning rate for each layer further from the output.
        schedule: Course of the learning rate after the warm-up.
        warmup: Share of the steps in [0, 1) over which the learning rate rises.
        weight_decay: Weight decay of AdamW, not on biases and layer norms.
        max_grad_norm: Gradients are clipped to this norm.
        inputs: What the model is given, in training and in evaluation (C-STS Table 10).
        train_rows: Train on this many labelled rows at most, whole pairs; None for all.
        plain: File of similarities without conditions, trained on beside the rows, so that a
            bi-encoder stays good without a condition; None for none.
        siblings: File of rows ``group, text``; texts of one group tell of the same thing.
        sibling_rate: Share in [0, 1] of the sentences with siblings that one of them replaces.
        length_grouped: Whether batches hold rows of like length.
        precision: ``auto`` is bfloat16 where the processor has it, else float32.
        checkpoint_steps: Steps between checkpoints within an epoch; 0 saves after each epoch only.
        seed: Seed of initialisation, dropout and the order of rows.
    """

    name: str
    train: str
    dev: str
    encoder: Literal["bi-encoder", "tri-encoder", "cross-encoder"] = "bi-encoder"
    backbone: str = "sentence-transformers/all-MiniLM-L6-v2"
    license: str | None = None
    order: Literal["condition-first", "sentence-first"] = "condition-first"
    pooling: Literal["cls", "mean", "mean_top2", "mean_first_last"] = "mean"
    transform: bool = False
    fusion: Literal["hadamard", "concat", "low-rank"] = "hadamard"
    rank: int = 64
    dropout: float | None = None
    max_seq_length: int = 128
    objective: dict[str, float] = field(default_factory=lambda: {"mse": 1.0})
    margin: float = 1.0
    scale: float = 20.0
    tau: float = 5.0
    sigma: float = 0.5
    middle_tolerance: float = 0.0
    epochs: int = 3
    batch_size: int = 32
    gradient_accumulation: int = 1
    learning_rate: float = 3e-5
    layer_decay: float = 1.0
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: float = 0.1
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    inputs: Literal["both", "condition", "sentences"] = "both"
    train_rows: int | None = None
    plain: str | None = None
    siblings: str | None = None
    sibling_rate: float = 0.0
    length_grouped: bool = True
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    checkpoint_steps: int = 0
    seed: int = 42

    def __post_init__(self) -> None:
        """Checks the ranges and the combinations that no type can express."""
        for key in ("epochs", "batch_size", "gradient_accumulation", "max_seq_length", "rank"):
            self._check(key, getattr(self, key) >= 1, "at least 1")
        self._check("learning_rate", self.learning_rate > 0, "above 0")
        self._check("layer_decay", 0 < self.layer_decay <= 1, "in (0, 1]")
        self._check("warmup", 0 <= self.warmup < 1, "in [0, 1)")
        self._check("dropout", self.dropout is None or 0 <= self.dropout < 1, "in [0, 1)")
        self._check("tau", self.tau > 0, "above 0")
        self._check("sigma", 0 <= self.sigma <= 1, "in [0, 1]")
        self._check("middle_tolerance", 0 <= self.middle_tolerance <= 0.5, "in [0, 0.5]")
        regression = any(self.objective.get(term) for term in ("mse", "correlation"))
        needs = "0 without 'mse' or 'correlation', which alone heed it"
        self._check("middle_tolerance", regression or not self.middle_tolerance, needs)
        self._check("train_rows", self.train_rows is None or self.train_rows >= 2, "at least 2")
        self._check("margin", self.margin >= 0, "at least 0")
        self._check("scale", self.scale > 0, "above 0")
        self._check("max_grad_norm", self.max_grad_norm > 0, "above 0")
        self._check("seed", 0 <= self.seed < 2**32, "in [0, 2^32)")
        self._check("sibling_rate", 0 <= self.sibling_rate <= 1, "in [0, 1]")
        self._check("weight_decay", self.weight_decay >= 0, "at least 0")
        self._check("checkpoint_steps", self.checkpoint_steps >= 0, "at least 0")
        for term, weight in self.objective.items():
            if term not in _OBJECTIVES:
                raise unknown_name("objective", term, _OBJECTIVES)
            self._check("objective", weight >= 0, "of weights of at least 0")
        self._check("objective", any(self.objective.values()), "of one weight above 0 or more")
        if self.lone_term:
            self._check_lone_objective(self.lone_term)
        if self.encoder == "cross-encoder":
            self._check_cross_encoder_objective()
        elif self.inputs == "condition":
            raise InputError(
                "Recipe key 'inputs': a bi- or tri-encoder that sees only the condition encodes "
                "both sides alike, so every similarity is 1. Use a cross-encoder."
            )
        if self.plain is not None and self.encoder != "bi-encoder":
            raise InputError(
                f"The recipe key 'plain' is for a bi-encoder, which reads a sentence with or "
                f"without a condition. Got a {self.encoder}."
            )
        self._check("batch_size", not self.pair_terms or self.batch_size >= 2, "at least 2")
        needs_dropout = self.objective.get("bcl", 0) > 0
        self._check("dropout", not needs_dropout or self.dropout != 0, "above 0 for 'bcl'")

    @property
    def pair_terms(self) -> tuple[str, ...]:
        """The terms of the objective that compare the two rows of a sentence pair."""
        return tuple(term for term in _PAIR_OBJECTIVES if self.objective.get(term, 0) > 0)

    @property
    def lone_term(self) -> Literal["softmax", "triplet"] | None:
        """The objective that takes data of its own, if the recipe has one."""
        return next((term for term in _LONE_OBJECTIVES if self.objective.get(term, 0) > 0), None)

    def _check_lone_objective(self, lone: str) -> None:
        others = [term for term, weight in self.objective.items() if weight and term != lone]
        if others or self.objective[lone] != 1:
            raise InputError(
                f"The objective {lone!r} stands alone, with the weight 1: its data have no "
                f"similarities. Got {self.objective!r}. Train by one recipe after the other, each "
                "with the folder of the one before as its backbone."
            )
        if self.encoder != "bi-encoder":
            raise InputError(
                f"The objective {lone!r} is for a bi-encoder: its data are sentences without "
                f"conditions, to be encoded one by one. Got a {self.encoder}."
            )
        if self.inputs != "both" or self.siblings is not None or self.plain is not None:
            raise InputError(
                f"The recipe keys 'inputs', 'siblings' and 'plain' do not apply to the objective "
                f"{lone!r}: its data have no conditions. Leave them out."
            )

    def _check_cross_encoder_objective(self) -> None:
        for term in (*_ENCODING_OBJECTIVES, *_PROJECTED_OBJECTIVES):
            if self.objective.get(term):
                raise InputError(
                    f"The objective {term!r} does not apply to a cross-encoder: it compares "
                    "encodings of each sentence under a condition, and a cross-encoder makes none "
                    f"(C-STS §4.1). Use one of {', '.join((*_ROW_OBJECTIVES, 'pair-order'))}, or a "
                    "bi- or tri-encoder."
                )

    def _check(self, key: str, holds: bool, rule: str) -> None:
        if not holds:
            raise InputError(f"Recipe key '{key}' must be {rule}. Got {getattr(self, key)!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Gives the recipe as plain values, in the order of the fields.

        Returns:
            A mapping that ``Recipe(**mapping)`` turns back into an equal recipe.
        """
        return dataclasses.asdict(self)


def load_recipe(path: Path, *, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and changes single keys of it.

    Args:
        path: A YAML file, a mapping from the fields of :class:`Recipe` to values.
        overrides: Texts such as ``"epochs=5"`` or ``"objective.quad=0.5"``; values are YAML.

    Returns:
        The checked recipe.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    values = read_mapping(path, what="recipe")
    for text in overrides:
        override(values, text)
    return typed(Recipe, values, what="recipe", source=str(path))


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Writes a recipe so that :func:`load_recipe` gives an equal one.

    Args:
        recipe: The recipe.
        path: The YAML file to write.
    """
    write_mapping(recipe.to_dict(), path)
