"""Settings of a prompted model: what is asked of which model, and how its answers are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, model_validator

from condsim.config import Settings, read_mapping, validated, write_mapping
from condsim.errors import InputError
from condsim.prompting.prompt import Instruction, Parsing

ANSWERS = "runs/answers.sqlite"
"""Where answers are stored by default, relative to the working directory."""

MAX_NEW_TOKENS = 20
"""Longest answer in tokens (Deshpande et al., 2023, A.3)."""

Scoring = Literal["text", "expected"]
"""``text``: the number in the answer; ``expected``: if that is on the scale, the mean of all
numbers on it, weighted with the probabilities the model gives them, if it gives any. It has far
fewer ties, and ties cost Spearman."""

_AtLeastOne = Annotated[int, Field(ge=1)]


class PromptSettings(Settings):
    """What is asked of which model, and how its answers are read.

    A key of an API is not among the settings: it comes from the environment only.
    """

    what = "prompt"

    model: str  # Hub name, folder or GGUF file of a model, or a server's name for its model
    backend: Literal["local", "server"] = "local"  # on this machine, or OpenAI-compatible
    # Address of the server, such as ``http://localhost:8000/v1``; None for that of
    # ``OPENAI_BASE_URL``, else OpenAI's own.
    base_url: str | None = None
    instruction: Instruction = "long"
    shots: NonNegativeInt = 0  # examples in a prompt
    train: str | None = None  # file the examples are drawn from; needed if there are any
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0  # of examples and values of invalid answers
    scoring: Scoring = "text"
    parsing: Parsing = "strict"
    answers: str = ANSWERS  # SQLite file of stored answers
    # Longest answer in tokens (C-STS A.3: 20). A model that reasons before it answers needs more.
    max_new_tokens: _AtLeastOne = MAX_NEW_TOKENS
    concurrency: _AtLeastOne = 32  # requests to a server under way at a time
    timeout: PositiveFloat = 60.0  # seconds after which a try without a whole answer is given up
    retries: NonNegativeInt = 5  # how often a failed request is repeated
    max_requests: NonNegativeInt | None = None  # most prompts in one run; None for no limit
    max_tokens: NonNegativeInt | None = None  # most of prompts and answers in one run; likewise
    unlisted: bool = False  # whether to use a model that the server does not list
    device: str | None = None  # where a local model runs (``cpu``, ``cuda``); chosen if None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.shots and self.train is None:
            raise InputError(
                f"{self.shots} examples are asked for and there is no file to draw them from. "
                "Name a labelled training file (train)."
            )
        if self.base_url is not None and self.backend != "server":
            raise InputError("base_url is the address of a server; set backend to 'server'.")
        return self


def prompt_settings(values: Mapping[str, Any], *, source: str = "the options") -> PromptSettings:
    """Makes settings of plain values.

    Args:
        values: Values by name of the field.
        source: Where they come from, for errors.

    Raises:
        InputError: If a key is unknown or missing, or a value is wrong.
    """
    return validated(PromptSettings, values, what=PromptSettings.what, source=source)


def load_settings(path: Path) -> PromptSettings:
    """Reads settings.

    Args:
        path: A YAML file, a mapping from the fields of `PromptSettings` to values.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    return prompt_settings(read_mapping(path, what=PromptSettings.what), source=str(path))


def save_settings(settings: PromptSettings, path: Path) -> None:
    """Writes settings so that `load_settings` gives equal ones.

    Args:
        path: The YAML file to write; those that have their default are left out.
    """
    write_mapping(settings.model_dump(exclude_defaults=True), path)
