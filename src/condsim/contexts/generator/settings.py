"""What the generators are: their size, or the checkpoint they start from, and their training."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Literal

from condsim.contexts.generator.items import TASKS, Task3
from condsim.contexts.ranges import TRAINING, at_least, check_ranges

ALL = "all"
"""Name of the one model of all tasks."""

Size = Literal["tiny", "small", "base", "large"]


@dataclass(frozen=True)
class Shape:
    """Sizes of a Transformer.

    Attributes:
        width: Size of embeddings and states.
        layers: Layers of the encoder, and of the decoder.
        inner: Units of a feed-forward layer.
        heads: Attention heads, of 64 units each.
        learning_rate: Peak that suits it.
    """

    width: int
    layers: int
    inner: int
    heads: int
    learning_rate: float


SHAPES: dict[Size, Shape] = {
    "tiny": Shape(128, 2, 512, 2, 2e-3),
    "small": Shape(256, 4, 1024, 4, 1e-3),
    "base": Shape(512, 6, 2048, 8, 7e-4),
    "large": Shape(1024, 6, 4096, 16, 3e-4),  # Transformer-large of Vaswani et al. (2017), Table 3
}
_PRETRAINED_LEARNING_RATE = 1e-4


@dataclass(frozen=True)
class GeneratorSettings:
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

    size: Size = "tiny"
    backbone: str | None = None
    models: Literal["three", "one"] = "three"
    encoder: Literal["apart", "joint"] = "apart"
    copy: bool = True
    left: int = 2
    right: int = 2
    max_tokens: int = 64
    dropout: float = 0.1
    batch_tokens: int = 8_192
    epochs: int = 3
    max_steps: int | None = None
    learning_rate: float | None = None
    warmup: float = 0.05
    weight_decay: float = 0.01
    evaluations: int = 6
    patience: int = 3
    held_out: float = 0.05
    held_out_examples: int = 1_000
    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"

    def __post_init__(self) -> None:
        """Checks the ranges."""
        names = ("left", "right", "batch_tokens", "held_out_examples")
        least = {**dict.fromkeys(names, at_least(1)), "max_tokens": at_least(2)}
        check_ranges("generators", self, **TRAINING, **least)

    @property
    def peak(self) -> float:
        """Peak of the learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        return _PRETRAINED_LEARNING_RATE if self.backbone else SHAPES[self.size].learning_rate

    def models_for(self, tasks: Collection[str] = TASKS) -> dict[str, tuple[Task3, ...]]:
        """Names the models that do some tasks.

        Args:
            tasks: The tasks.

        Returns:
            What each model does, by the name of its folder. One model for all always does all.
        """
        if self.models == "one":
            return {ALL: TASKS}
        return {task: (task,) for task in TASKS if task in tasks}

    @property
    def places(self) -> int:
        """Sentences of a context and its centre."""
        return self.left + 1 + self.right

    @property
    def positions(self) -> int:
        """Longest input or target, in tokens."""
        sentences = self.places if self.encoder == "joint" else max(self.left, self.right)
        return sentences * self.max_tokens

    def to_dict(self) -> dict[str, object]:
        """The settings as plain values."""
        return asdict(self)
