"""What is to be closed after use, as a context manager."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Closes itself at the end of a ``with`` block, whatever happened in it."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what is held; a second call does nothing."""

    def __enter__(self) -> Self:
        """Gives the object."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()
