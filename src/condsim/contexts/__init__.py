"""Similarity from contexts: from raw text to an encoder, with no labels.

Two sentences are alike when the same contexts generate both (Sun et al., 2022). The way from a pile
of documents to a similarity model, one module per step:

1. ``corpus``: documents to sentences in order, on disk.
2. ``vocabulary``, ``coherence``: which sentence fits between which neighbours (§3.2.1).
3. ``generator``: how probable a sentence is in a context, and the context given it (§3.2.2).
4. ``retrieval``: the text chunks that share words with a sentence (§3.3).
5. ``selection``, ``scoring``: contexts of a sentence, and the similarity of two (Eq. 3 and 4).
6. ``harvest``, ``surrogate``: scored pairs, and the encoder that learns from them (§3.4).

Everything here needs ``pip install 'condsim[contexts]'``.
"""

from __future__ import annotations

from condsim.contexts.corpus import Corpus, prepare_corpus
from condsim.contexts.retrieval import TfidfIndex

__all__ = ["Corpus", "TfidfIndex", "prepare_corpus"]
