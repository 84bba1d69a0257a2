"""Similarity learned from raw text, without labels (SSBC)."""

from condsim.errors import requires_extra

with requires_extra("contexts"):
    from condsim.contexts.corpus.stored import Corpus
    from condsim.contexts.index.retrieval import TfidfIndex

__all__ = ["Corpus", "TfidfIndex"]
