"""A recipe: everything that decides a training run, validated, in one YAML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from condsim.errors import InputError, unknown_name
from condsim.losses import OBJECTIVES
from condsim.settings import Settings, override, read_mapping, validated, write_mapping


def _rule(text: str, holds: Callable[[Any], bool]) -> AfterValidator:
    """A rule for a value; the error says that it must be ``text``."""

    def check(value: Any) -> Any:  # noqa: ANN401  (any value of a recipe)
        if not holds(value):
            raise PydanticCustomError("rule", "{rule}", {"rule": text})
        return value

    return AfterValidator(check)


def _known_objectives(weights: dict[str, float]) -> dict[str, float]:
    for name in weights:
        if name not in OBJECTIVES:
            raise unknown_name("objective", name, OBJECTIVES)
    return weights


Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, _rule("in [0, 1)", lambda value: 0 <= value < 1)]
Share = Annotated[float, _rule("in [0, 1]", lambda value: 0 <= value <= 1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Weights = Annotated[
    dict[str, float],
    AfterValidator(_known_objectives),
    _rule("of weights of at least 0", lambda weights: min(weights.values(), default=0) >= 0),
    _rule("of one weight above 0 or more", lambda weights: any(weights.values())),
]


class Recipe(Settings):
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
        siblings: File of rows ``group, text``; texts of one group describe the same thing.
        sibling_rate: Share in [0, 1] of the sentences with siblings that one of them replaces.
        length_grouped: Whether batches hold rows of similar length.
        precision: ``auto`` is bfloat16 where the processor has it, else float32.
        checkpoint_steps: Steps between checkpoints within an epoch; 0 saves after each epoch only.
        seed: Seed of initialisation, dropout and the order of rows.

    Raises:
        InputError: If a value or a combination of values breaks a rule.
    """

    what: ClassVar[str] = "recipe"

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
    rank: Count = 64
    dropout: Rate | None = None
    max_seq_length: Count = 128
    objective: Weights = Field(default_factory=lambda: {"mse": 1.0})
    margin: NotNegative = 1.0
    scale: Positive = 20.0
    tau: Positive = 5.0
    sigma: Share = 0.5
    middle_tolerance: Annotated[float, _rule("in [0, 0.5]", lambda value: 0 <= value <= 0.5)] = 0.0
    epochs: Count = 3
    batch_size: Count = 32
    gradient_accumulation: Count = 1
    learning_rate: Positive = 3e-5
    layer_decay: Annotated[float, _rule("in (0, 1]", lambda value: 0 < value <= 1)] = 1.0
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: Rate = 0.1
    weight_decay: NotNegative = 0.0
    max_grad_norm: Positive = 1.0
    inputs: Literal["both", "condition", "sentences"] = "both"
    train_rows: Annotated[int, Field(ge=2)] | None = None
    plain: str | None = None
    siblings: str | None = None
    sibling_rate: Share = 0.0
    length_grouped: bool = True
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    checkpoint_steps: Annotated[int, Field(ge=0)] = 0
    seed: Annotated[int, _rule("in [0, 2^32)", lambda value: 0 <= value < 2**32)] = 42

    @property
    def terms(self) -> tuple[str, ...]:
        """The objectives with a weight above 0."""
        return tuple(name for name, weight in self.objective.items() if weight)

    @property
    def pair_terms(self) -> tuple[str, ...]:
        """The objectives that compare the two rows of a sentence pair."""
        return tuple(
            name
            for name, objective in OBJECTIVES.items()
            if name in self.terms and objective.compares == "pairs"
        )

    @property
    def data_objective(self) -> str | None:
        """The objective that takes data of its own kind, if the recipe has one."""
        return next((name for name in self.terms if OBJECTIVES[name].stands_alone), None)

    @model_validator(mode="after")
    def _objective_fits(self) -> Self:
        chosen = {name: OBJECTIVES[name] for name in self.terms}
        rules = {
            "middle_tolerance": (
                not self.middle_tolerance or any(one.tolerant for one in chosen.values()),
                "0 without 'mse' or 'correlation', which alone heed it",
            ),
            "batch_size": (not self.pair_terms or self.batch_size >= 2, "at least 2"),
            "dropout": (
                self.dropout != 0 or not any(one.needs_dropout for one in chosen.values()),
                "above 0 for 'bcl'",
            ),
        }
        for key, (holds, rule) in rules.items():
            if not holds:
                raise InputError(f"Recipe key '{key}' must be {rule}. Got {getattr(self, key)!r}.")
        if self.data_objective is not None:
            self._check_alone(self.data_objective)
        for name, objective in chosen.items():
            if self.encoder == "cross-encoder" and not objective.cross_encoder:
                usable = [one for one, known in OBJECTIVES.items() if known.cross_encoder]
                raise InputError(
                    f"The objective {name!r} does not apply to a cross-encoder: it compares "
                    "encodings of each sentence under a condition, and a cross-encoder makes none "
                    f"(C-STS §4.1). Use one of {', '.join(usable)}, or a bi- or tri-encoder."
                )
        return self

    @model_validator(mode="after")
    def _inputs_fit(self) -> Self:
        if self.encoder != "cross-encoder" and self.inputs == "condition":
            raise InputError(
                "Recipe key 'inputs': a bi- or tri-encoder that sees only the condition encodes "
                "both sides alike, so every similarity is 1. Use a cross-encoder."
            )
        if self.plain is not None and self.encoder != "bi-encoder":
            raise InputError(
                f"The recipe key 'plain' is for a bi-encoder, which reads a sentence with or "
                f"without a condition. Got a {self.encoder}."
            )
        return self

    def _check_alone(self, name: str) -> None:
        """Checks an objective whose data have no conditions."""
        if self.terms != (name,) or self.objective[name] != 1:
            raise InputError(
                f"The objective {name!r} stands alone, with the weight 1: its data have no "
                f"similarities. Got {self.objective!r}. Train by one recipe after the other, each "
                "with the folder of the one before as its backbone."
            )
        if self.encoder != "bi-encoder":
            raise InputError(
                f"The objective {name!r} is for a bi-encoder: its data are sentences without "
                f"conditions, to be encoded one by one. Got a {self.encoder}."
            )
        if self.inputs != "both" or self.siblings is not None or self.plain is not None:
            raise InputError(
                f"The recipe keys 'inputs', 'siblings' and 'plain' do not apply to the objective "
                f"{name!r}: its data have no conditions. Leave them out."
            )


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
    return validated(Recipe, values, what="recipe", source=str(path))


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Writes a recipe so that :func:`load_recipe` gives an equal one.

    Args:
        recipe: The recipe.
        path: The YAML file to write.
    """
    write_mapping(recipe.model_dump(), path)
