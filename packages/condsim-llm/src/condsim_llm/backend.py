"""A language model to prompt: its settings, its interface, and the address and key of a server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self
from urllib.parse import quote, urlsplit

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
from condsim_llm.prompt import Instruction, Parsing

_OPENAI_URL = "https://api.openai.com/v1"
_MAX_MESSAGE_CHARACTERS = 300
SECRET_CHARACTERS = 8
"""Length from which a key cannot be an ordinary word."""

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


@dataclass(frozen=True)
class Answer:
    """The answer of a model to one prompt.

    Attributes:
        text: Generated text, without the prompt.
        probabilities: Probability of each number, in (0, 1], at the first generated token that is
            a number; tokens of equal numbers are added up. Empty if the model gives none, None if
            they were not requested.
        prompt_tokens: Tokens of the prompt; None if unknown.
        new_tokens: Tokens of the answer; None if unknown.
    """

    text: str
    probabilities: Mapping[float, float] | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None


class Backend(Protocol):
    """A language model that answers each prompt on its own, greedily.

    Attributes:
        max_new_tokens: Longest answer in tokens.
        longest_prompt: Maximum tokens of a prompt; None if unknown or unlimited.
        answer_gap: Text between ``Output:`` and the answer of an example: a space or nothing.
        notes: Deviations from the usual request, for reports; often empty.
    """

    name: str
    max_new_tokens: int
    longest_prompt: int | None
    answer_gap: str
    notes: tuple[str, ...]

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything except the prompt that decides an answer, without any secret."""

    def check(self) -> None:
        """Fail early if the model, the server or the key cannot be used."""

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Yield the index of a prompt and its answer as they arrive, in any order.

        Prompts are read lazily in the caller's thread, a bounded number ahead of the answers. If
        the model fails for good, the answers under way come first and then a BackendError. Close
        the generator to stop early.
        """

    def count_tokens(self, prompt: str) -> int:
        """Count the tokens of a prompt: exactly for a local model, roughly for a server."""


@dataclass(frozen=True)
class Address:
    """A server and its key; ``local`` if it runs on this machine."""

    url: str
    local: bool
    key: str = field(default="", repr=False)

    def clean(self, text: str) -> str:
        """Turn a server's text into one line of at most 300 characters, without the key."""
        line = " ".join(self.masked(text).split())
        if len(line) <= _MAX_MESSAGE_CHARACTERS:
            return line
        return f"{line[: _MAX_MESSAGE_CHARACTERS - 3]}..."

    def masked(self, text: str) -> str:
        """Replace the key in a text by asterisks."""
        if not self.key:
            return text
        forms = {self.key, json.dumps(self.key)[1:-1], quote(self.key, safe="")}
        pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
        # A short key, such as the "x" of a server that needs none, may be part of other words.
        if len(self.key) < SECRET_CHARACTERS:
            pattern = rf"(?<!\w)(?:{pattern})(?!\w)"
        return re.sub(pattern, "***", text)


def base_address(base_url: str | None) -> Address:
    """Validate a base URL; None stands for ``OPENAI_BASE_URL``, else OpenAI's own."""
    source = "base_url"
    if base_url is None:
        base_url, source = os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, "OPENAI_BASE_URL"
    url = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    # A URL with a user name or query may contain a password, so the message does not show it.
    if (
        not host
        or not url.isprintable()
        or parts.scheme not in ("http", "https")
        or parts.username is not None
        or parts.query
        or parts.fragment
    ):
        raise InputError(
            f"The {source} must be an http:// or https:// URL such as 'http://localhost:8000/v1', "
            "without a user name, password or query; a key is read from OPENAI_API_KEY."
        )
    local = host == "localhost" or host.endswith(".localhost")
    try:
        ip = ip_address(host)
        local = ip.is_loopback or ip.is_unspecified
    except ValueError:
        # A name, not a number.
        pass
    return Address(url=url, local=local)


def environment_key(address: Address) -> Address:
    """Add the key of the environment to an address."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and not address.local:
        raise InputError(
            f"No key for {address.url}: set OPENAI_API_KEY (any text if the server needs none)."
        )
    if not all("!" <= letter <= "~" for letter in key):
        raise InputError("OPENAI_API_KEY must be ASCII letters, digits and signs without spaces.")
    return replace(address, key=key or "none")
