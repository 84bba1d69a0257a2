"""What decides an adaptation."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from condsim.settings import Settings


class AdaptSettings(Settings):
    """How a model is adapted.

    Attributes:
        epochs: Most passes over the labelled rows; it ends earlier once the rows to measure on get
            no better.
        minutes: Plan as many training steps as fit into this time; None: what ``epochs`` asks for.
        rehearsal: Share of what is trained on that keeps the rest of the model as it was, in
            [0, 1).
        dev_share: Share of the rows to measure on, in (0, 1); not used with a file of them.
        learning_rate: Highest learning rate.
        batch_size: Texts under a condition in a batch.
        seed: Seed of the split, the order and the draws.
    """

    what: ClassVar[str] = "adapt setting"

    epochs: Annotated[int, Field(ge=1)] = 10
    minutes: Annotated[float, Field(gt=0)] | None = None
    rehearsal: Annotated[float, Field(ge=0, lt=1)] = 1 / 3
    dev_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    learning_rate: Annotated[float, Field(gt=0)] = 6e-5
    batch_size: Annotated[int, Field(ge=8)] = 48
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
