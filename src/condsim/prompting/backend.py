"""What a back end is, and what servers speak: their address and key, requests and answers."""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from condsim.errors import InputError


@dataclass(frozen=True)
class Answer:
    """What a model answered to one prompt."""

    text: str  # generated, without the prompt
    # Probability of each number, in (0, 1], at the first generated token that is one: of the tokens
    # that read as a number, equal numbers added up. Empty if the back end gives none; None if they
    # were not asked for.
    probabilities: Mapping[float, float] | None = None
    prompt_tokens: int | None = None  # None if the back end does not tell, here and below
    new_tokens: int | None = None


class Backend(Protocol):
    """A language model that answers each prompt on its own, greedily."""

    @property
    def name(self) -> str:
        """Short name of the model, shown in tables."""

    @property
    def identity(self) -> Mapping[str, str]:
        """All that decides an answer beside the prompt, without any secret."""

    @property
    def max_new_tokens(self) -> int:
        """Longest answer in tokens."""

    @property
    def longest_prompt(self) -> int | None:
        """Most tokens of a prompt that the model takes; None if that is not known."""

    @property
    def answer_gap(self) -> str:
        """What stands between ``Output:`` and an answer in its examples: a space or nothing."""

    @property
    def notes(self) -> tuple[str, ...]:
        """How the model was asked otherwise than usual; often nothing."""

    def check(self) -> None:
        """Makes sure that prompts can be answered, before the first is sent.

        Raises:
            CondSimError: If the model, the server or the key will not do.
        """

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Answers prompts.

        Args:
            prompts: The prompts; read lazily, a bounded number ahead of the answers, and always in
                the thread of the caller.
            probabilities: Whether to ask for the probabilities of the numbers.

        Yields:
            The place of a prompt and its answer, as they arrive, in any order. A generator that is
            closed early sends nothing more.

        Raises:
            BackendError: If the model fails for good; answers that are under way come first.
        """

    def count_tokens(self, prompt: str) -> int:
        """Tokens of a prompt: exact for a model on this machine, about right for a server."""


_OPENAI = "https://api.openai.com/v1"
_LONGEST = 300
SECRET = 8
"""Characters of a key that is no word of an answer."""


@dataclass(frozen=True)
class Address:
    """A server and its key."""

    url: str  # the base URL, without a slash at its end
    local: bool  # whether it is on this machine
    key: str = field(default="", repr=False)  # or a placeholder if local; never shown

    def clean(self, text: str) -> str:
        """A text of the server as one line of at most 300 characters, without the key."""
        line = " ".join(self.masked(text).split())
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."

    def masked(self, text: str) -> str:
        """A text without the key."""
        if self.key:
            # A short key, such as the "x" of a server that wants none, may be part of other words.
            edges = ("", "") if len(self.key) >= SECRET else (r"(?<!\w)", r"(?!\w)")
            forms = {self.key, json.dumps(self.key)[1:-1], quote(self.key, safe="")}
            shown = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
            text = re.sub(f"{edges[0]}(?:{shown}){edges[1]}", "***", text)
        return text


def base_address(base_url: str | None) -> Address:
    """Checks a base URL; None stands for ``OPENAI_BASE_URL``, else OpenAI's own."""
    where = "base_url"
    if base_url is None:
        base_url, where = os.environ.get("OPENAI_BASE_URL") or _OPENAI, "OPENAI_BASE_URL"
    url = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isprintable() or parts.scheme not in ("http", "https"):
        shown = "" if "@" in url else f" Got {url!r}."
        raise InputError(
            f"The {where} must be an http:// or https:// URL such as 'http://localhost:8000/v1'."
            f"{shown}"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            f"The {where} must hold no user name, password or query: the key goes into "
            "OPENAI_API_KEY."
        )
    return Address(url=url, local=_is_local(host))


def environment_key(address: Address) -> Address:
    """Adds the key of the environment to an address."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and not address.local:
        raise InputError(
            f"No key for {address.url}: set OPENAI_API_KEY in the environment (any text if the "
            "server wants none)."
        )
    if not all("!" <= letter <= "~" for letter in key):
        raise InputError(
            "OPENAI_API_KEY must be ASCII letters, digits and signs without spaces: what is set "
            "holds something else; copy it again."
        )
    return replace(address, key=key or "none")


def _is_local(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ip_address(host)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified


_LOGGER = logging.getLogger("condsim")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_LEAST = -700.0  # below it, a probability is 0 as a float
_TOP = 20
_FEW = 5


@dataclass(frozen=True)
class Dialect:
    """The fields of a request that servers differ in."""

    length: str = "max_tokens"  # the field for the longest answer
    greedy: bool = True  # whether ``temperature`` may be sent
    top: int = _TOP  # alternatives to each token; 0 if the server gives none
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was changed

    def body(
        self, prompt: str, *, model: str, max_new_tokens: int, probabilities: bool
    ) -> dict[str, object]:
        """The body of a request."""
        body: dict[str, object] = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            self.length: max_new_tokens,
        }
        if self.greedy:
            body["temperature"] = 0
        if probabilities and self.top:
            body |= {"logprobs": True, "top_logprobs": self.top}
        return body


def without(dialect: Dialect, body: Mapping[str, object], refusal: str) -> Dialect | None:
    """Changes the dialect after a refusal, by what the server says is wrong."""
    if "max_tokens" in body and "max_completion_tokens" in refusal:
        changed = replace(dialect, length="max_completion_tokens")
        now = "max_completion_tokens for max_tokens"
    elif "temperature" in body and "temperature" in refusal:
        changed = replace(dialect, greedy=False)
        now = "its own temperature, so answers may differ between runs"
    elif "top_logprobs" in body and ("logprobs" in refusal or "log prob" in refusal):
        # Another refusal may have lowered it further while this request was under way.
        top = min(dialect.top, _FEW if body["top_logprobs"] == _TOP else 0)
        changed = replace(dialect, top=top)
        now = f"top_logprobs {top}" if top else "no log-probabilities"
    else:
        return None
    if changed == dialect:
        return dialect
    # Without temperature 0 answers are sampled, which a reader of the scores must know.
    level = logging.WARNING if changed.greedy != dialect.greedy else logging.INFO
    _LOGGER.log(level, "The server refuses a field of the request; it is asked with %s.", now)
    return replace(changed, notes=(*dialect.notes, f"asked with {now}"))


def refused_content(error: object) -> bool:
    """Whether a refusal is about what the prompt says, so that it counts as an answer."""
    if not isinstance(error, Mapping):
        return False
    inner = error.get("innererror")
    reasons = [error.get("code"), inner.get("code") if isinstance(inner, Mapping) else None]
    return "content_filter" in reasons or "ResponsibleAIPolicyViolation" in reasons


def is_completion(answer: object) -> bool:
    """Whether the JSON a server sent has a first choice with a message."""
    if not isinstance(answer, dict) or not isinstance(answer.get("choices"), list):
        return False
    first = answer["choices"][0] if answer["choices"] else None
    return isinstance(first, dict) and isinstance(first.get("message"), dict)


def read_answer(completion: Mapping[str, Any], *, probabilities: bool) -> Answer:
    """Reads an answer."""
    choice = completion["choices"][0]
    withheld = choice.get("finish_reason") == "content_filter"
    usage = completion.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        text="" if withheld else _text(choice["message"].get("content")),
        probabilities=_probabilities(choice.get("logprobs")) if probabilities else None,
        prompt_tokens=_count(counts.get("prompt_tokens")),
        new_tokens=_count(counts.get("completion_tokens")),
    )


def _text(content: object) -> str:
    """The text of a message: a string, or parts of which some are text."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        return ""
    return content.encode("utf-8", "replace").decode("utf-8")  # half of an emoji cannot be stored


_TOKENS = 10**12  # more are no count


def _count(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < _TOKENS else None  # type: ignore[operator,return-value]


def _probabilities(logprobs: object) -> dict[float, float]:
    """Probabilities of the numbers, at the first token of the answer that is one."""
    for token in _entries(logprobs.get("content") if isinstance(logprobs, dict) else None):
        if _number(token) is None:
            continue
        entries = _entries(token.get("top_logprobs"))
        if all(entry.get("token") != token["token"] for entry in entries):
            entries.append(token)
        found: dict[float, float] = {}
        for entry in entries:
            value, logprob = _number(entry), entry.get("logprob")
            if value is not None and isinstance(logprob, int | float) and logprob > _LEAST:
                found[value] = min(1.0, found.get(value, 0.0) + math.exp(min(logprob, 0)))
        return found
    return {}


def _entries(tokens: object) -> list[dict[str, Any]]:
    """The objects in a list of tokens; none if it is no list."""
    return (
        [token for token in tokens if isinstance(token, dict)] if isinstance(tokens, list) else []
    )


def _number(entry: Mapping[str, Any]) -> float | None:
    """The number a token reads as; None if it is none."""
    token = entry.get("token")
    match = _NUMBER.fullmatch(token.strip()) if isinstance(token, str) else None
    return float(match[0]) if match else None
