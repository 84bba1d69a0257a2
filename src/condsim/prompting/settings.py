"""The settings of a prompted model: all that decides its scores, typed, in one YAML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from condsim.errors import InputError
from condsim.prompting.backends import MAX_NEW_TOKENS
from condsim.prompting.prompt import Instruction, Parsing
from condsim.settings import read_mapping, typed, write_mapping

ANSWERS = "runs/answers.sqlite"
"""Where answers are stored by default, relative to the working directory."""


@dataclass(frozen=True)
class PromptSettings:
    """What is asked of which model, and how its answers are read.

    A key of an API is not among the settings: it comes from the environment only.

    Attributes:
        model: Hub name or folder of a generative model, or a server's name for its model.
        backend: ``local`` for a model on this machine, ``server`` for one behind an
            OpenAI-compatible server.
        base_url: Address of the server, such as ``http://localhost:8000/v1``; None for that of
            ``OPENAI_BASE_URL``, else OpenAI's own.
        instruction: Which instruction (`condsim.prompting.prompt`).
        shots: Number of examples in a prompt.
        train: File the examples are drawn from; needed if there are any.
        seed: Seed of the draw of examples and of the values of invalid answers.
        scoring: Whether the score is the number in the text or the expected value.
        parsing: How strictly a number is read out of the text (`condsim.prompting.prompt`).
        answers: SQLite file of stored answers.
        max_new_tokens: Longest answer in tokens (C-STS A.3: 20). A model that reasons before it
            answers needs more.
        concurrency: Requests to a server under way at a time.
        timeout: Seconds after which a request counts as lost.
        retries: How often a failed request is repeated.
        max_requests: Prompts to send at most in one run; None for no limit.
        max_tokens: Tokens of prompts and answers at most in one run; None for no limit.
        unlisted: Whether to use a model that the server does not list.
        device: Where a local model runs (``cpu``, ``cuda``); chosen if None.
    """

    model: str
    backend: Literal["local", "server"] = "local"
    base_url: str | None = None
    instruction: Instruction = "long"
    shots: int = 0
    train: str | None = None
    seed: int = 0
    scoring: Literal["text", "expected"] = "text"
    parsing: Parsing = "strict"
    answers: str = ANSWERS
    max_new_tokens: int = MAX_NEW_TOKENS
    concurrency: int = 32
    timeout: float = 60.0
    retries: int = 5
    max_requests: int | None = None
    max_tokens: int | None = None
    unlisted: bool = False
    device: str | None = None

    def __post_init__(self) -> None:
        """Checks the ranges and what goes together."""
        for key in ("max_new_tokens", "concurrency"):
            self._check(key, getattr(self, key) >= 1, "at least 1")
        for key in ("shots", "retries", "max_requests", "max_tokens"):
            self._check(key, (getattr(self, key) or 0) >= 0, "at least 0")
        self._check("seed", 0 <= self.seed < 2**32, "in [0, 2^32)")
        self._check("timeout", self.timeout > 0, "above 0")
        if self.shots and self.train is None:
            raise InputError(
                f"{self.shots} examples are asked for and there is no file to draw them from. "
                "Name a labelled training file (train)."
            )
        if self.base_url is not None and self.backend != "server":
            raise InputError("base_url is the address of a server; set backend to 'server'.")

    def _check(self, key: str, holds: bool, rule: str) -> None:
        if not holds:
            raise InputError(f"Prompt key '{key}' must be {rule}. Got {getattr(self, key)!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Gives the settings as plain values, in the order of the fields.

        Returns:
            A mapping that ``PromptSettings(**mapping)`` turns back into equal settings.
        """
        return dataclasses.asdict(self)


def load_settings(path: Path) -> PromptSettings:
    """Reads settings.

    Args:
        path: A YAML file, a mapping from the fields of :class:`PromptSettings` to values.

    Returns:
        The checked settings.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    values: Mapping[str, Any] = read_mapping(path, what="prompt")
    try:
        return typed(PromptSettings, values, what="prompt", source=str(path))
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error


def save_settings(settings: PromptSettings, path: Path) -> None:
    """Writes settings so that :func:`load_settings` gives equal ones.

    Args:
        settings: The settings.
        path: The YAML file to write; those that have their default are left out.
    """
    default = PromptSettings(model="").to_dict()
    chosen = {
        key: value
        for key, value in settings.to_dict().items()
        if key == "model" or value != default[key]
    }
    write_mapping(chosen, path)
