"""What the coherence model is, and its training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from condsim.contexts.ranges import TRAINING, at_least, check_ranges
from condsim.errors import InputError

Head = Literal["linear", "mlp"]


@dataclass(frozen=True)
class CoherenceSettings:
    """What the coherence model is and how it is trained.

    Attributes:
        head: ``linear`` is Eq. 1 as printed, a sum in which the sentence and the context never
            meet: it ranks contexts the same for every sentence. ``mlp`` has one hidden layer.
        left: Sentences before the centre.
        right: Sentences after it.
        embedding: Size of a token embedding.
        hidden: LSTM units in each direction (the paper's 300).
        head_size: Hidden units of the ``mlp`` head.
        dropout: Of token embeddings and sentence vectors, [0, 1).
        max_tokens: Tokens read of a sentence.
        run_sentences: Consecutive sentences of a document that are trained on together; the
            replacements "from the same document" are drawn among them.
        batch_sentences: Sentences in a batch, about.
        epochs: Passes over the training documents.
        max_steps: Steps at most, or None.
        learning_rate: Peak of the learning rate.
        warmup: Share of the steps over which it rises.
        weight_decay: AdamW's.
        evaluations: How often held-out accuracy is measured in all.
        patience: Evaluations without a better one before training ends.
        held_out: Share of documents that are not trained on.
        held_out_sentences: Sentences of those that are evaluated at most.
        seed: Seed of everything drawn.
        precision: Number format of the products.
    """

    head: Head = "mlp"
    left: int = 2
    right: int = 2
    embedding: int = 300
    hidden: int = 300
    head_size: int = 300
    dropout: float = 0.2
    max_tokens: int = 64
    run_sentences: int = 128
    batch_sentences: int = 512
    epochs: int = 4
    max_steps: int | None = None
    learning_rate: float = 2e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    evaluations: int = 8
    patience: int = 3
    held_out: float = 0.05
    held_out_sentences: int = 20_000
    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"

    def __post_init__(self) -> None:
        """Checks the ranges."""
        if min(self.left, self.right) < 0 or self.left + self.right < 1:
            raise InputError(
                "A context needs a sentence on one side at least: 'left' and 'right' must not be "
                f"negative nor both 0. Got {self.left} and {self.right}."
            )
        sizes = ("embedding", "hidden", "head_size", "max_tokens", "held_out_sentences")
        batches = dict.fromkeys(("run_sentences", "batch_sentences"), at_least(2))
        check_ranges("coherence", self, **TRAINING, **dict.fromkeys(sizes, at_least(1)), **batches)

    def to_dict(self) -> dict[str, object]:
        """The settings as plain values."""
        return asdict(self)
