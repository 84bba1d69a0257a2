"""Settings of the generators: their size or pre-trained backbone, and their training."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from condsim.settings import Settings

GeneratorTask = Literal["centre", "left", "right"]
"""What is generated: the sentence at the centre, or one side of its context."""
GENERATOR_TASKS: tuple[GeneratorTask, ...] = ("centre", "left", "right")

ALL = "all"
"""Name of the one model of all tasks."""

Size = Literal["tiny", "small", "base", "large"]
AtLeast1 = Annotated[int, Field(ge=1)]


class Shape(NamedTuple):
    """Sizes of a Transformer, and the peak learning rate that suits it."""

    width: int  # of embeddings and states
    layers: int  # of the encoder, and of the decoder
    inner: int  # units of a feed-forward layer
    heads: int  # of 64 units each
    learning_rate: float


SHAPES: dict[Size, Shape] = {
    "tiny": Shape(128, 2, 512, 2, 2e-3),
    "small": Shape(256, 4, 1024, 4, 1e-3),
    "base": Shape(512, 6, 2048, 8, 7e-4),
    "large": Shape(1024, 6, 4096, 16, 3e-4),  # Transformer-large of Vaswani et al. (2017), Table 3
}
_PRETRAINED_LEARNING_RATE = 1e-4

# The key 'copy' of recipes hides a deprecated method of pydantic, which warns of that.
warnings.filterwarnings("ignore", 'Field name "copy" in "GeneratorSettings"', UserWarning)


class GeneratorSettings(Settings):
    """What the generators are and how they are trained.

    Attributes:
        size: Size when trained from scratch.
        backbone: Name or folder of a pre-trained encoder-decoder to start from instead; it brings
            its own tokenizer.
        models: ``three`` models, one a task, or ``one`` for all with a task marker.
        encoder: Whether given sentences are encoded ``apart`` or ``joint``; see
            `condsim.contexts.generator.model`.
        copy: Whether a target may copy tokens of the given sentences; see
            `condsim.contexts.generator.model`.
        left: Sentences before the centre.
        right: Sentences after it.
        max_tokens: Tokens of a sentence, its end token included; the rest is cut off.
        dropout: Of the Transformer trained from scratch, [0, 1).
        batch_tokens: Tokens of a batch, given and generated, about.
        epochs: Passes over the training sentences.
        max_steps: Steps of each model at most, or None.
        learning_rate: Peak of the learning rate; None for what suits the size.
        warmup: Share of the steps over which it rises.
        weight_decay: AdamW's.
        evaluations: How often the held-out part is evaluated in all.
        patience: Evaluations without a better one before training ends.
        held_out: Share of documents that are not trained on.
        held_out_examples: Centres of those that are evaluated.
        seed: Seed of everything drawn.
        precision: Number format of the products in training.
    """

    what = "generators"

    size: Size = "tiny"
    backbone: str | None = None
    models: Literal["three", "one"] = "three"
    encoder: Literal["apart", "joint"] = "apart"
    copy: bool = True  # type: ignore[assignment]
    left: AtLeast1 = 2
    right: AtLeast1 = 2
    max_tokens: Annotated[int, Field(ge=2)] = 64
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    batch_tokens: AtLeast1 = 8_192
    epochs: AtLeast1 = 3
    max_steps: AtLeast1 | None = None
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    evaluations: AtLeast1 = 6
    patience: AtLeast1 = 3
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05
    held_out_examples: AtLeast1 = 1_000
    seed: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"

    @property
    def peak(self) -> float:
        """Peak of the learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        return _PRETRAINED_LEARNING_RATE if self.backbone else SHAPES[self.size].learning_rate

    def models_for(
        self, tasks: Collection[str] = GENERATOR_TASKS
    ) -> dict[str, tuple[GeneratorTask, ...]]:
        """The tasks of each model that is needed for some, by the name of the model's folder."""
        if self.models == "one":
            return {ALL: GENERATOR_TASKS}
        return {task: (task,) for task in GENERATOR_TASKS if task in tasks}

    @property
    def places(self) -> int:
        """Sentences of a context and its centre."""
        return self.left + 1 + self.right

    @property
    def positions(self) -> int:
        """Longest input or target, in tokens."""
        sentences = self.places if self.encoder == "joint" else max(self.left, self.right)
        return sentences * self.max_tokens
