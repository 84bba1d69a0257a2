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

    The head ``linear`` is Eq. 1 as printed, a sum in which the sentence and the context never meet:
    it ranks contexts the same for every sentence. ``mlp`` has one hidden layer.
    """

    what = "coherence"

    head: Head = "mlp"
    left: Annotated[int, Field(ge=0)] = 2  # sentences before the centre
    right: Annotated[int, Field(ge=0)] = 2  # sentences after it
    embedding: AtLeast1 = 300  # size of a token embedding
    hidden: AtLeast1 = 300  # LSTM units in each direction, as in the paper
    head_size: AtLeast1 = 300  # hidden units of the `mlp` head
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2  # of token embeddings and sentence vectors
    max_tokens: AtLeast1 = 64  # read of a sentence
    run_sentences: AtLeast2 = 128  # consecutive ones trained on, and replaced, together
    batch_sentences: AtLeast2 = 512  # about
    epochs: AtLeast1 = 4
    max_steps: AtLeast1 | None = None
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3  # its peak
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05  # share of the steps over which it rises
    weight_decay: Annotated[float, Field(ge=0)] = 0.01  # AdamW's, on matrices only
    evaluations: AtLeast1 = 8  # of held-out accuracy, in all
    patience: AtLeast1 = 3  # evaluations without a better one before training ends
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05  # share of documents not trained on
    held_out_sentences: AtLeast1 = 20_000  # of those, evaluated at most
    seed: Annotated[int, Field(ge=0)] = 0  # of everything drawn
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of the products

    @model_validator(mode="after")
    def _has_context(self) -> CoherenceSettings:
        if self.left + self.right < 1:
            raise InputError(
                "A context needs a sentence on one side at least: 'left' and 'right' must not be "
                f"both 0. Got {self.left} and {self.right}."
            )
        return self
