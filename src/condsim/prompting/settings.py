"""Settings of a prompted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    model_validator,
)

from condsim.config import Settings, read_mapping, validated
from condsim.errors import InputError
from condsim.prompting.prompt import Instruction, Parsing

ANSWERS = "runs/answers.sqlite"
"""Default file of stored answers, relative to the working directory."""

MAX_NEW_TOKENS = 20
"""Longest answer in tokens (Deshpande et al., 2023, A.3)."""

Scoring = Literal["text", "expected"]
"""``text``: the number in the answer. ``expected``: the mean of all numbers on the scale, weighted
with the probabilities that the model gives them, if the text is on the scale and the model gives
any. Expected values have far fewer ties, and ties cost Spearman."""


class PromptSettings(Settings):
    """Everything that decides the prompts, the model and the reading of its answers.

    The key of an API is not a setting: it comes from the environment only.

    Attributes:
        model: Hub name, folder or GGUF file of a model, or a server's name for its model.
        base_url: Address of the server, such as ``http://localhost:8000/v1``; None for
            ``OPENAI_BASE_URL``, else OpenAI's own.
        shots: Number of examples in a prompt, drawn from the file ``train``.
        seed: Seed of examples and of the values of invalid answers.
        answers: SQLite file of stored answers.
        max_new_tokens: Longest answer in tokens. A model that reasons first needs more than 20.
        concurrency: Number of requests to a server at a time.
        timeout: Seconds after which a request without a whole answer is given up.
        retries: Number of repetitions of a failed request.
        max_requests: Maximum number of prompts in one run.
        max_tokens: Maximum tokens of prompts and answers in one run.
        device: Device of a local model (``cpu``, ``cuda``); None for a GPU if there is one.
    """

    subject = "prompt"

    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    backend: Literal["local", "server"] = "local"
    base_url: str | None = None
    instruction: Instruction = "long"
    shots: NonNegativeInt = 0
    train: str | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    scoring: Scoring = "text"
    parsing: Parsing = "strict"
    answers: str = ANSWERS
    max_new_tokens: PositiveInt = MAX_NEW_TOKENS
    concurrency: PositiveInt = 32
    timeout: PositiveFloat = 60.0
    retries: NonNegativeInt = 5
    max_requests: NonNegativeInt | None = None
    max_tokens: NonNegativeInt | None = None
    device: str | None = None

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.shots and self.train is None:
            raise InputError(f"{self.shots} examples need a labeled training file (train).")
        if self.base_url is not None and self.backend != "server":
            raise InputError("base_url is the address of a server; set backend to 'server'.")
        return self


def load_settings(path: Path) -> PromptSettings:
    """Read the YAML file that ``condsim prompt --save`` writes."""
    values = read_mapping(path, subject=PromptSettings.subject)
    return validated(PromptSettings, values, subject=PromptSettings.subject, source=str(path))
