"""Settings of the coherence model and its training."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from condsim.errors import InputError
from condsim.settings import Settings

Head = Literal["linear", "mlp"]
AtLeast1 = Annotated[int, Field(ge=1)]
AtLeast2 = Annotated[int, Field(ge=2)]


class CoherenceSettings(Settings):
    """What the coherence model is and how it is trained.

    Attributes:
        head: ``linear`` is Eq. 1 as printed, a sum in which the sentence and the context never
            meet: it ranks contexts the same for every sentence. ``mlp`` has one hidden layer.
        left: Sentences before the centre.
        right: Sentences after it.
        embedding: Size of a token embedding.
        hidden: LSTM units in each direction (the paper's 300).
        head_size: Hidden units of the ``mlp`` head.
        dropout: Of token embeddings and sentence vectors.
        max_tokens: Tokens read of a sentence.
        run_sentences: Consecutive sentences of a document that are trained on together; the
            replacements "from the same document" are drawn among them.
        batch_sentences: Sentences in a batch, about.
        epochs: Passes over the training documents.
        max_steps: Steps at most.
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
    left: Annotated[int, Field(ge=0)] = 2
    right: Annotated[int, Field(ge=0)] = 2
    embedding: AtLeast1 = 300
    hidden: AtLeast1 = 300
    head_size: AtLeast1 = 300
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    max_tokens: AtLeast1 = 64
    run_sentences: AtLeast2 = 128
    batch_sentences: AtLeast2 = 512
    epochs: AtLeast1 = 4
    max_steps: AtLeast1 | None = None
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    evaluations: AtLeast1 = 8
    patience: AtLeast1 = 3
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05
    held_out_sentences: AtLeast1 = 20_000
    seed: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"

    @model_validator(mode="after")
    def _has_context(self) -> CoherenceSettings:
        if self.left + self.right < 1:
            raise InputError(
                "A context needs a sentence on one side at least: 'left' and 'right' must not be "
                f"both 0. Got {self.left} and {self.right}."
            )
        return self
