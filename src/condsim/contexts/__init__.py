"""Similarity learned from raw text, without labels (SSBC).

The names are imported when they are asked for: this package has commands, and ``condsim --help``
must not load pyarrow, scipy or torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from condsim.errors import requires_extra

if TYPE_CHECKING:
    from condsim.contexts.corpus import Corpus
    from condsim.contexts.index import TfidfIndex
    from condsim.contexts.run import open_pipeline as open_pipeline

_MODULES = {"Corpus": "corpus", "TfidfIndex": "index", "open_pipeline": "run"}

__all__ = ["Corpus", "TfidfIndex"]


def __getattr__(name: str) -> object:
    """Import a name of this package from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with requires_extra("contexts"):
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
