"""Errors of language models and servers."""

from __future__ import annotations

from condsim.errors import CondSimError


class BackendError(CondSimError, RuntimeError):
    """A language model or a server does not answer, or its answer cannot be read."""

    def __init__(self, message: str, *, index: int | None = None) -> None:
        """Store the message and the index of the prompt that failed, if one did."""
        super().__init__(message)
        self.index = index


class BudgetError(BackendError):
    """The requests or tokens that a run may use are exhausted; its answers are stored."""
