"""Similarity learned from raw text, without labels (SSBC).

The names are imported when they are asked for: this package has commands, and ``condsim --help``
must not load pyarrow, scipy or torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.errors import lazy_names, requires_extra

if TYPE_CHECKING:
    from condsim.contexts.corpus import Corpus
    from condsim.contexts.index import TfidfIndex
    from condsim.contexts.origin import open_pipeline as open_pipeline

__all__ = ["Corpus", "TfidfIndex"]

_PLACES = {
    "Corpus": "condsim.contexts.corpus.Corpus",
    "TfidfIndex": "condsim.contexts.index.TfidfIndex",
    "open_pipeline": "condsim.contexts.origin.open_pipeline",
}

__getattr__ = requires_extra("contexts")(lazy_names(__name__, _PLACES))
