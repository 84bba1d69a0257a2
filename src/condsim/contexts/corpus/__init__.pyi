from .preparing import prepare_corpus as prepare_corpus
from .reading import (
    find_inputs as find_inputs,
    near_duplicate_key as near_duplicate_key,
    read_paragraphs as read_paragraphs,
)
from .stored import (
    ArrayWriter as ArrayWriter,
    Corpus as Corpus,
    document_starts as document_starts,
    held_out_documents as held_out_documents,
    open_array as open_array,
    spans as spans,
)
from .vocabulary import (
    SPECIAL_TOKENS as SPECIAL_TOKENS,
    CorpusTokens as CorpusTokens,
    Vocabulary as Vocabulary,
    learn_vocabulary as learn_vocabulary,
)
