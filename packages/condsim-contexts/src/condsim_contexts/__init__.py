"""Similarity learned from raw text, without labels (SSBC).

The names are imported when they are asked for: this package has commands, and ``condsim --help``
must not load pyarrow, scipy or torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.errors import lazy_names, requires_extra

if TYPE_CHECKING:
    from condsim_contexts.corpus import Corpus
    from condsim_contexts.index import TfidfIndex
    from condsim_contexts.origin import open_scorer as open_scorer

__all__ = ["Corpus", "TfidfIndex"]

_PLACES = {
    "Corpus": "condsim_contexts.corpus.Corpus",
    "TfidfIndex": "condsim_contexts.index.TfidfIndex",
    "open_scorer": "condsim_contexts.origin.open_scorer",
}

__getattr__ = requires_extra("contexts")(lazy_names(__name__, _PLACES))
