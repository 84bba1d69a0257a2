"""A recipe: everything that decides a training run, validated, in one YAML file."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from condsim.config import Settings, override, read_mapping, validated, write_mapping
from condsim.errors import InputError
from condsim.model.inputs import Inputs, Layout, Order
from condsim.training.objectives import OBJECTIVES, LossOptions, check_weights

Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Weights = Annotated[dict[str, NotNegative], AfterValidator(check_weights)]

PLACE_KEYS = ("name", "license", "train", "dev")
"""Recipe keys that say how a run is called and where its data are, not what is trained."""


class Source(Settings):
    """Data that is mixed with the training file of a recipe.

    Attributes:
        file: File, or list of files, of similarities with or without conditions; with ``vectors``,
            of inputs: a column ``sentence`` and, if they have conditions, ``condition``. Rows with
            the same value in a column ``group`` share a batch and are ranked against each other.
        share: Share of this source in the distinct inputs of a batch, relative to ``train_share``
            and the other sources: next to a ``train_share`` of 1, a share of 3 is three quarters.
        weight: Weight of a row in ``mse``, ``correlation`` and ``ranking``; for a source with an
            ``objective``, a factor on that.
        rows: Maximum number of labeled rows to train on, in whole groups; None for all.
        balance: Balance of alike and different rows of a group under a condition, in [0, 1]. The n
            rows above the middle of the scale have the weight n^-balance each, and so have those
            below it: at 1 both sides have the same weight, at 0 all rows have.
        objective: Weight of each loss term over the rows of this source alone. None: the recipe's
            objective, over these rows together with ``train``; for a source without
            conditions, the recipe's ``mse`` and ``correlation`` (``mse`` if it has neither); for
            one with ``vectors``, ``vectors`` if the dimensions are equal, else ``relations``.
        vectors: File of a teacher's embeddings of the inputs, ``.npy``, in the order of the rows,
            as ``condsim encode`` writes it.
    """

    subject: ClassVar[str] = "source"

    file: str | list[str]
    share: Positive = 1.0
    weight: Positive = 1.0
    rows: Annotated[int, Field(ge=2)] | None = None
    balance: Share = 0.7
    objective: Weights | None = None
    vectors: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files, one or more."""
        return (self.file,) if isinstance(self.file, str) else tuple(self.file)

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_vectors = self.vectors is not None
        if not self.files or (has_vectors and len(self.files) > 1):
            number = "one file with 'vectors'" if has_vectors else "a file or more"
            raise InputError(f"Source key 'file' must name {number}; got {len(self.files)} files.")
        for name in self.objective or {}:
            objective = OBJECTIVES[name]
            if has_vectors != ("teacher" in objective.takes) or not (
                has_vectors or objective.uses_similarities
            ):
                raise InputError(
                    f"The objective {name!r} does not apply to a source "
                    f"{'with' if has_vectors else 'without'} 'vectors'."
                )
        return self


class Recipe(Settings):
    """One training run. The defaults are the settings of C-STS A.3, Table 7.

    Attributes:
        name: Name of the model, used on its card.
        train: Training file, relative to the working directory: similarities; NLI classes for
            ``softmax``; triplets for ``triplet``.
        dev: File on which the best epoch is chosen: similarities or triplets, never a test file.
        encoder: Architecture: how sentences and condition are encoded (C-STS §4.1).
        backbone: Hub name or local folder of a pretrained model; ``default`` or a folder that
            ``condsim export`` wrote is rebuilt in float32 first.
        license: License of the model, as the Hub names it (``apache-2.0``), for its card.
        order: Whether the condition or the sentence (for a cross-encoder, both sentences) comes
            first; ``bare-condition-first`` leaves out an instruction and the last mark.
        layout: Form of a cross-encoder's input: ``released``, one text as in the code of C-STS, or
            the ``pair`` that its tokenizer makes.
        pooling: Way to turn token states into one vector.
        transform: Whether a dense layer follows the pooling (C-STS A.3, "w/ MLP").
        fusion: Way in which a tri-encoder joins sentence and condition.
        rank: Dimension of its embeddings with the fusion ``low-rank``.
        dropout: Dropout of the backbone in [0, 1); None keeps the backbone's own.
        max_seq_length: Longest input in tokens. Training cuts off the rest, with a warning;
            afterwards a bi- or tri-encoder reads longer texts in chunks.
        objective: Weight of each loss term, such as ``{mse: 1, quad: 1}``.
        margin: Margin of Quad (CCL: 1), or of triplets (SBERT: 1).
        scale: Inverse temperature of the ranking objectives.
        ranking_margin: Distance to which ``ranking`` pushes two cosines, in [0, 2].
        ties: Whether ``quad``, ``pair-order`` and the pair losses of CCL use sentence pairs with
            two equal labels, with the first row as the high one, as the released code does.
        tau: τ of BCL, which divides the cosines (CCL Eq. 10).
        sigma: σ of BCL in [0, 1]: from this label on, a row's own sentence 2 is not a negative.
        middle_tolerance: Distance from a gold of 0.5, in [0, 0.5], up to which a prediction for
            the label 3 counts as correct in ``mse`` and ``correlation``.
        epochs: Passes over the training rows; the model is measured after each. With ``steps``,
            the number of equal parts of the run.
        patience: Number of epochs without improvement after which training stops; None: never.
        keep: Epoch that becomes the model: the ``best`` on the dev file, or the ``last``.
        chosen_by: Dev figure that selects the best epoch: ``spearman``, or ``both``, the mean of
            Spearman and pair accuracy. With a dev file of triplets it is always their accuracy.
        steps: Optimizer steps of a run with ``sources``; None: an epoch reads ``train`` once and
            of each source what its share requires, from where the previous epoch stopped.
        batch_size: Rows in a batch; the high and the low row of a pair are two rows. With
            ``sources``, distinct inputs: texts under a condition, each encoded once.
        gradient_accumulation: Batches per optimizer step.
        learning_rate: Highest learning rate of AdamW.
        schedule: Course of the learning rate after the warm-up.
        warmup: Share of the steps in [0, 1) over which the learning rate rises.
        weight_decay: Weight decay of AdamW, not on biases and layer norms.
        max_grad_norm: Norm to which gradients are clipped; None: no clipping.
        inputs: Texts that a cross-encoder reads, in training and afterwards (C-STS Table 10).
        train_rows: Maximum number of labeled rows to train on, in whole pairs; None for all.
        train_share: Share of the training file next to the ``sources``.
        sources: Data mixed with the training file in every batch, by name; see below.
        freeze: Parts that are not trained: ``embeddings`` of the tokens, or ``encoder``, the
            whole backbone, so that only the layers on top are trained.
        freeze_layers: Number of lower layers of the backbone that are not trained; above 0, its
            embeddings are not either.
        precision: Number format. ``auto``: on a CPU, the faster of float32 and bfloat16, each with
            the faster attention, measured when the run starts; on a GPU, bfloat16 if it has it.
        checkpoint_steps: Steps between checkpoints within an epoch; 0 saves after each epoch only.
        seed: Seed of initialization, dropout and the order of rows.

    Raises:
        InputError: If a value or a combination of values breaks a rule.
    """

    subject: ClassVar[str] = "recipe"

    name: str
    train: str
    dev: str
    encoder: Literal["bi-encoder", "tri-encoder", "cross-encoder"] = "bi-encoder"
    backbone: str = "sentence-transformers/all-MiniLM-L6-v2"
    license: str | None = None
    order: Order = "condition-first"
    layout: Layout = "released"
    pooling: Literal["cls", "mean", "mean_top2", "mean_first_last"] = "mean"
    transform: bool = False
    fusion: Literal["hadamard", "concat", "low-rank"] = "hadamard"
    rank: Count = 64
    dropout: Rate | None = None
    max_seq_length: Count = 128
    objective: Weights = Field(default_factory=lambda: {"mse": 1.0})
    margin: NotNegative = 1.0
    scale: Positive = 20.0
    ranking_margin: Annotated[float, Field(ge=0, le=2)] = 0.1
    ties: Literal["dropped", "kept"] = "dropped"
    tau: Positive = 5.0
    sigma: Share = 0.5
    middle_tolerance: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    epochs: Count = 3
    patience: Count | None = None
    keep: Literal["best", "last"] = "best"
    chosen_by: Literal["spearman", "both"] = "spearman"
    steps: Count | None = None
    batch_size: Count = 32
    gradient_accumulation: Count = 1
    learning_rate: Positive = 3e-5
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: Rate = 0.1
    weight_decay: NotNegative = 0.0
    max_grad_norm: Positive | None = 1.0
    inputs: Inputs = "both"
    train_rows: Annotated[int, Field(ge=2)] | None = None
    train_share: Positive = 1.0
    sources: dict[str, Source] = Field(default_factory=dict)
    freeze: list[Literal["embeddings", "encoder"]] = Field(default_factory=list)
    freeze_layers: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    checkpoint_steps: Annotated[int, Field(ge=0)] = 0
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42

    @property
    def terms(self) -> dict[str, float]:
        """Weights of the objectives that are above 0."""
        return {name: weight for name, weight in self.objective.items() if weight}

    @property
    def pair_terms(self) -> tuple[str, ...]:
        """The objectives that compare the rows of a sentence pair."""
        return tuple(name for name in self.terms if OBJECTIVES[name].needs_pairs)

    @property
    def loss_options(self) -> LossOptions:
        """Numbers that the objectives take."""
        return LossOptions(**{item.name: getattr(self, item.name) for item in fields(LossOptions)})

    @property
    def train_kind(self) -> Literal["similarities", "classes", "triplets"]:
        """Kind of data that the objective is trained on."""
        if "softmax" in self.terms:
            return "classes"
        return "triplets" if "triplet" in self.terms else "similarities"

    @property
    def mixed_sources(self) -> dict[str, Source]:
        """The training file as the first source, and the sources of the recipe."""
        train = Source(
            file=self.train, share=self.train_share, rows=self.train_rows, objective=self.terms
        )
        return {"train": train, **self.sources}

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        """Check the keys that depend on others: whether each holds, and the rule."""
        taken = {value for name in self.terms for value in OBJECTIVES[name].takes}
        is_cross_encoder = self.encoder == "cross-encoder"
        sources_fit = "train" not in self.sources and not is_cross_encoder
        steps_fit = self.steps is None or (bool(self.sources) and self.steps >= self.epochs)
        rules = {
            "name": ("/" not in self.name, "without '/'"),
            "middle_tolerance": (
                not self.middle_tolerance or "tolerant_labels" in taken,
                "0 without 'mse' or 'correlation'",
            ),
            "patience": (self.patience is None or self.keep == "best", "null with 'keep: last'"),
            "inputs": (self.inputs == "both" or is_cross_encoder, f"'both' for a {self.encoder}"),
            "freeze": (
                "encoder" not in self.freeze or self.encoder != "bi-encoder" or self.transform,
                "without 'encoder' for a bi-encoder without 'transform': no trainable parameters "
                "would remain",
            ),
            "batch_size": (
                self.batch_size >= 2 or not self.pair_terms,
                "at least 2 for an objective on pairs",
            ),
            "dropout": (self.dropout != 0 or "positives" not in taken, "above 0 for 'bcl'"),
            "steps": (
                steps_fit,
                f"at least 'epochs', {self.epochs}" if self.sources else "null without 'sources'",
            ),
            "sources": (
                not self.sources or sources_fit,
                "without the name 'train', and empty for a cross-encoder",
            ),
        }
        for key, (holds, rule) in rules.items():
            if not holds:
                value = reprlib.repr(getattr(self, key))
                raise InputError(f"Recipe key '{key}' must be {rule}; got {value}.")
        return self

    @model_validator(mode="after")
    def _check_objectives(self) -> Self:
        is_cross_encoder = self.encoder == "cross-encoder"
        for name, weight in self.terms.items():
            objective = OBJECTIVES[name]
            has_own_data = not objective.takes
            is_only_one = len(self.terms) == 1 and (weight == 1 or not has_own_data)
            faults = {
                "is for a source with a teacher's vectors; name it under 'sources'": (
                    "teacher" in objective.takes
                ),
                "does not apply to a cross-encoder, which encodes no sentence by itself "
                "(C-STS §4.1)": is_cross_encoder and not objective.cross_encoder,
                "is for a cross-encoder": "logits" in objective.takes and not is_cross_encoder,
                "is for a bi-encoder: its data have no conditions": (
                    has_own_data and self.encoder != "bi-encoder"
                ),
                "must be the only one, with the weight 1; train with one recipe after the other "
                "instead": (has_own_data or "logits" in objective.takes) and not is_only_one,
                "does not go with 'sources', whose rows are compared by their cosines": (
                    bool(self.sources) and not objective.uses_similarities
                ),
            }
            for fault, applies in faults.items():
                if applies:
                    raise InputError(f"The objective {name!r} {fault}.")
        return self


def load_recipe(path: Path, *, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and change single keys of it.

    Args:
        path: A YAML file, a mapping from the fields of :class:`Recipe` to values.
        overrides: Texts such as ``"epochs=5"`` or ``"objective.quad=0.5"``; values are YAML.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    values = read_mapping(path, subject="recipe")
    for text in overrides:
        override(values, text)
    return validated(Recipe, values, subject="recipe", source=str(path))


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe so that :func:`load_recipe` returns an equal one."""
    write_mapping(recipe.model_dump(), path)
