"""A recipe: everything that decides a training run, validated, in one YAML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from condsim.config import Settings, override, read_mapping, validated, write_mapping
from condsim.errors import InputError, unknown_name
from condsim.model.conditions import Inputs, Layout, Order
from condsim.training.losses.registry import OBJECTIVES


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


_RETIRED = ("plain", "siblings", "sibling_rate")


class Source(Settings):
    """Data that is mixed with the training file of a recipe.

    Attributes:
        file: File, or list of files, of similarities with or without conditions; with ``vectors``,
            of inputs: columns ``sentence`` and, unless they have none, ``condition``. Rows of one
            value of a column ``group`` share a batch and are ranked against each other.
        share: How many of the distinct inputs of a batch come from here, in parts: beside a
            ``train_share`` of 1, a share of 3 is three quarters.
        weight: How much a row counts in ``mse``, ``correlation`` and ``ranking``; of a source with
            an objective of its own, a factor on that.
        rows: Train on this many labelled rows at most, whole groups; None for all.
        balance: In [0, 1]. Of the rows of a group under a condition, those above the middle of the
            scale and those below it count n^-balance each, n being how many they are: at 1 both
            sides weigh the same, at 0 every row does.
        objective: Weight of each loss term over the rows of this source alone. None: they are
            compared together with the rows of ``train``, under the recipe's objective; of a source
            without conditions, the recipe's ``mse`` and ``correlation`` (``mse`` if it has
            neither), and with ``vectors``, ``vectors`` where the dimensions agree, else
            ``relations``.
        vectors: File of a teacher's embeddings of the inputs, ``.npy``, in the order of the rows,
            as ``condsim encode`` writes it.
    """

    what: ClassVar[str] = "source"

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
    def _objective_fits(self) -> Self:
        if not self.files:
            raise InputError("Source key 'file' must name a file or more. Got an empty list.")
        if self.vectors is not None and len(self.files) > 1:
            raise InputError("Source key 'file' must name one file beside 'vectors'. Got several.")
        usable = ("vectors",) if self.vectors is not None else ("rows", "pairs")
        for name in self.objective or {}:
            if OBJECTIVES[name].compares not in usable:
                known = [one for one, kind in OBJECTIVES.items() if kind.compares in usable]
                kind = "with" if self.vectors is not None else "without"
                raise InputError(
                    f"Source key 'objective' of a source {kind} 'vectors' must have terms of "
                    f"{', '.join(known)}. Got {name!r}."
                )
        return self


class Recipe(Settings):
    """One training run. The defaults are the settings of C-STS A.3, Table 7.

    Attributes:
        name: Name of the model, used on its card.
        train: Training file, relative to the working directory: similarities, for ``softmax``
            classes of NLI, for ``triplet`` triplets.
        dev: File the best epoch is chosen on, of similarities or triplets; never a test file.
        encoder: How sentences and condition meet (C-STS §4.1).
        backbone: Hub name or local folder of a pre-trained model; ``default`` or a folder that
            ``condsim export`` wrote is rebuilt in float32 first.
        license: Licence of the model, as the Hub names it (``apache-2.0``), for its card.
        order: Whether the condition or the sentence (a cross-encoder: both sentences) comes first;
            ``bare-condition-first``: the condition without the marks at its end.
        layout: How a cross-encoder's texts are joined: ``released`` as in the code of C-STS, into
            one text, or as the ``pair`` that its tokenizer makes.
        pooling: How token states become one vector.
        transform: Whether a dense layer follows the pooling (C-STS A.3, "w/ MLP").
        fusion: How a tri-encoder joins sentence and condition.
        rank: Dimension of its embeddings where the fusion is ``low-rank``.
        dropout: Dropout of the backbone in [0, 1); None keeps the backbone's own.
        max_seq_length: Longest input in tokens. In training the rest is cut off, with a warning;
            afterwards a bi- or tri-encoder reads longer texts in pieces.
        objective: Weight of each loss term, such as ``{mse: 1, quad: 1}``.
        margin: Margin of Quad (READING.md: 1), or of triplets (SBERT: 1).
        scale: Inverse temperature of the ranking objectives.
        ranking_margin: How far apart ``ranking`` wants two cosines, in [0, 2].
        ties: Whether ``quad``, ``pair-order`` and the losses of CCL on pairs take sentence pairs
            with two equal labels, as the released code does, the first row as the higher one.
        tau: τ of BCL, which divides the cosines (CCL Eq. 10).
        sigma: σ of BCL in [0, 1]: from this label on, a row's own sentence 2 is no negative.
        middle_tolerance: How far ``mse`` and ``correlation`` let a row labelled 3 be from a gold of
            0.5, in [0, 0.5].
        epochs: Passes over the training rows; the model is measured after each. With ``steps``,
            the number of equal parts that these are cut into.
        patience: End the run after this many epochs in a row without a better one; None: never.
        keep: Which epoch is the model: the ``best`` on the dev file, or the ``last``.
        chosen_by: Dev figure that the best epoch is chosen by: ``spearman``, or ``both``, the mean
            of Spearman and pair accuracy. Of a dev file of triplets it is always their accuracy.
        steps: Optimizer steps of a run with ``sources``; None: an epoch draws ``train`` once, and
            of each source as much as its share asks for, going on where the epoch before stopped.
        batch_size: Rows in a batch; the high and the low row of a pair are two rows. With
            ``sources``, distinct inputs: texts under a condition, each encoded once.
        gradient_accumulation: Batches per optimizer step.
        learning_rate: Highest learning rate of AdamW.
        layer_decay: Factor in (0, 1] on the learning rate for each layer further from the output.
        schedule: Course of the learning rate after the warm-up.
        warmup: Share of the steps in [0, 1) over which the learning rate rises.
        weight_decay: Weight decay of AdamW, not on biases and layer norms.
        max_grad_norm: Gradients are clipped to this norm; None: not at all.
        inputs: What a cross-encoder is given, in training and afterwards (C-STS Table 10).
        train_rows: Train on this many labelled rows at most, whole pairs; None for all.
        train_share: Share of the training file beside those of the ``sources``.
        sources: Data mixed with the training file in every batch, by name; see below.
        length_grouped: Whether batches hold rows of similar length.
        freeze: What is not trained: ``embeddings``, those of the words, or ``encoder``, the whole
            backbone, so that only the layers on top are.
        precision: ``auto`` is on a CPU the faster of float32 and bfloat16, measured when the run
            starts, and on a GPU bfloat16 where it has it.
        attention: Implementation of the attention. ``auto``: with a ``precision`` of ``auto``, on a
            CPU, the faster one, measured; else the library's own choice.
        checkpoint_steps: Steps between checkpoints within an epoch; 0 saves after each epoch only.
        seed: Seed of initialisation, dropout and the order of rows.

    Raises:
        InputError: If a value or a combination of values breaks a rule.
    """

    what: ClassVar[str] = "recipe"

    name: Annotated[str, _rule("without '/'", lambda name: "/" not in name)]
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
    ranking_margin: Annotated[float, _rule("in [0, 2]", lambda value: 0 <= value <= 2)] = 0.1
    ties: Literal["dropped", "kept"] = "dropped"
    tau: Positive = 5.0
    sigma: Share = 0.5
    middle_tolerance: Annotated[float, _rule("in [0, 0.5]", lambda value: 0 <= value <= 0.5)] = 0.0
    epochs: Count = 3
    patience: Count | None = None
    keep: Literal["best", "last"] = "best"
    chosen_by: Literal["spearman", "both"] = "spearman"
    steps: Count | None = None
    batch_size: Count = 32
    gradient_accumulation: Count = 1
    learning_rate: Positive = 3e-5
    layer_decay: Annotated[float, _rule("in (0, 1]", lambda value: 0 < value <= 1)] = 1.0
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: Rate = 0.1
    weight_decay: NotNegative = 0.0
    max_grad_norm: Positive | None = 1.0
    inputs: Inputs = "both"
    train_rows: Annotated[int, Field(ge=2)] | None = None
    train_share: Positive = 1.0
    sources: dict[str, Source] = Field(default_factory=dict)
    length_grouped: bool = True
    freeze: list[Literal["embeddings", "encoder"]] = Field(default_factory=list)
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    attention: Literal["auto", "eager", "sdpa"] = "auto"
    checkpoint_steps: Annotated[int, Field(ge=0)] = 0
    seed: Annotated[int, _rule("in [0, 2^32)", lambda value: 0 <= value < 2**32)] = 42

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, values: object) -> object:
        """Drops keys that recipes had before version 0.1, where they said nothing."""
        if not isinstance(values, Mapping):
            return values
        for key in _RETIRED:
            if values.get(key):
                raise InputError(
                    f"The recipe key {key!r} is no more. Name the file under 'sources' instead."
                )
        return {key: value for key, value in values.items() if key not in _RETIRED}

    @property
    def terms(self) -> tuple[str, ...]:
        """The objectives with a weight above 0."""
        return tuple(name for name, weight in self.objective.items() if weight)

    @property
    def pair_terms(self) -> tuple[str, ...]:
        """The objectives that compare the two rows of a sentence pair."""
        return tuple(name for name in self.terms if OBJECTIVES[name].compares == "pairs")

    @property
    def data_objective(self) -> str | None:
        """The objective that takes data of its own kind, if the recipe has one."""
        return next((name for name in self.terms if OBJECTIVES[name].stands_alone), None)

    @model_validator(mode="after")
    def _objective_fits(self) -> Self:
        chosen = {name: OBJECTIVES[name] for name in self.terms}
        vectors = [name for name, one in chosen.items() if one.compares == "vectors"]
        if vectors:
            raise InputError(
                f"The objective {vectors[0]!r} is for a source with a teacher's vectors. Name it "
                "under 'sources', not in the recipe's own objective."
            )
        rules = {
            "middle_tolerance": (
                not self.middle_tolerance or any(one.tolerant for one in chosen.values()),
                "0 without 'mse' or 'correlation', which alone heed it",
            ),
            "objective": (
                "classification" not in chosen
                or (self.encoder == "cross-encoder" and len(chosen) == 1),
                "of a cross-encoder and without other terms for 'classification'",
            ),
            "patience": (self.patience is None or self.keep == "best", "null with 'keep: last'"),
            "inputs": (
                self.inputs == "both" or self.encoder == "cross-encoder",
                f"'both' for a {self.encoder}, which compares sentences under a condition",
            ),
            "freeze": (
                "encoder" not in self.freeze or self.encoder != "bi-encoder" or self.transform,
                "without 'encoder' for a bi-encoder without 'transform', of which nothing is left",
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
    def _sources_fit(self) -> Self:
        if not self.sources:
            if self.steps is not None:
                raise InputError(
                    "The recipe key 'steps' is for a recipe with 'sources', whose epochs have no "
                    "end of their own. Give 'epochs' instead."
                )
            return self
        if self.steps is not None and self.steps < self.epochs:
            raise InputError(
                f"Recipe key 'steps' must be at least 'epochs', {self.epochs}. Got {self.steps}."
            )
        if "train" in self.sources:
            raise InputError(
                "A source cannot be called 'train', which is the training file itself; its share "
                "is 'train_share'."
            )
        if self.encoder == "cross-encoder":
            raise InputError(
                "The recipe key 'sources' is for a bi- or tri-encoder. Got a cross-encoder."
            )
        alone = [name for name in self.terms if OBJECTIVES[name].compares not in ("rows", "pairs")]
        if alone:
            raise InputError(
                f"The objective {alone[0]!r} does not go with 'sources', whose rows are compared "
                "by their cosines. Leave it out, or train without sources."
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


def load_recipe(path: Path, *, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and changes single keys of it.

    Args:
        path: A YAML file, a mapping from the fields of :class:`Recipe` to values.
        overrides: Texts such as ``"epochs=5"`` or ``"objective.quad=0.5"``; values are YAML.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    values = read_mapping(path, what="recipe")
    for text in overrides:
        override(values, text)
    return validated(Recipe, values, what="recipe", source=str(path))


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Writes a recipe so that :func:`load_recipe` gives an equal one."""
    write_mapping(recipe.model_dump(), path)
