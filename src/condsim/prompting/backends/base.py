"""What a back end is: a language model that answers prompts."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

MAX_NEW_TOKENS = 20
"""Longest answer in tokens (Deshpande et al., 2023, A.3)."""


@dataclass(frozen=True)
class Answer:
    """What a model answered to one prompt.

    Attributes:
        text: The generated text, without the prompt.
        probabilities: Probability of each number, in (0, 1], at the first generated token that is
            one: of the tokens that read as a number, equal numbers added up. Empty if the back end
            gives none; None if they were not asked for.
        prompt_tokens: Tokens of the prompt; None if the back end does not tell.
        new_tokens: Tokens of the answer; None if the back end does not tell.
    """

    text: str
    probabilities: Mapping[float, float] | None = None
    prompt_tokens: int | None = None
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
