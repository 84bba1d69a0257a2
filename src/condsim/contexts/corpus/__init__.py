"""A corpus on disk: sentences in order, and their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.corpus.arrays import (
        ArrayWriter as ArrayWriter,
        open_array as open_array,
        spans as spans,
    )
    from condsim.contexts.corpus.preparing import prepare_corpus as prepare_corpus
    from condsim.contexts.corpus.reading import (
        find_inputs as find_inputs,
        read_paragraphs as read_paragraphs,
    )
    from condsim.contexts.corpus.sentences import (
        SeenKeys as SeenKeys,
        near_duplicate_key as near_duplicate_key,
    )
    from condsim.contexts.corpus.settings import (
        HOW_TO_SPLIT as HOW_TO_SPLIT,
        CorpusSettings as CorpusSettings,
    )
    from condsim.contexts.corpus.stored import (
        Corpus as Corpus,
        document_starts as document_starts,
        held_out_documents as held_out_documents,
    )
    from condsim.contexts.corpus.vocabulary import (
        SPECIAL_TOKENS as SPECIAL_TOKENS,
        CorpusTokens as CorpusTokens,
        Vocabulary as Vocabulary,
        learn_vocabulary as learn_vocabulary,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "arrays": "ArrayWriter open_array spans",
        "preparing": "prepare_corpus",
        "reading": "find_inputs read_paragraphs",
        "sentences": "SeenKeys near_duplicate_key",
        "settings": "CorpusSettings HOW_TO_SPLIT",
        "stored": "Corpus document_starts held_out_documents",
        "vocabulary": "CorpusTokens SPECIAL_TOKENS Vocabulary learn_vocabulary",
    },
    extra="contexts",
)
