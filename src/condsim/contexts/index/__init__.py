"""The TF-IDF index over text chunks (SSBC §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.index.retrieval import TfidfIndex as TfidfIndex, best as best

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "retrieval": "TfidfIndex best",
    },
    extra="contexts",
)
