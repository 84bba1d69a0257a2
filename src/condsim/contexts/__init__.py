"""Similarity from contexts: from raw text to an encoder, with no labels.

Two sentences are alike when the same contexts generate both (Sun et al., 2022). From a pile of
documents to a similarity model:

1. ``corpus``: documents to sentences in order, on disk, and their tokenizer.
2. ``coherence``: which sentence fits between which neighbours (§3.2.1).
3. ``generator``: how probable a sentence is in a context, and the context given it (§3.2.2).
4. ``index``: the text chunks that share words with a sentence (§3.3).
5. ``scoring``: contexts of a sentence, and the similarity of two (Eq. 3 and 4).
6. ``harvest``, ``surrogate``: scored pairs, and the encoder that learns from them (§3.4).

``run`` makes these stages in the folders of a run, ``opened`` uses a finished run as a model.

Everything here needs ``pip install 'condsim[contexts]'``.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="contexts")
