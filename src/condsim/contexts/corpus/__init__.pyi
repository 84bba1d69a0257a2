from .arrays import ArrayWriter as ArrayWriter, open_array as open_array, spans as spans
from .preparing import prepare_corpus as prepare_corpus
from .reading import find_inputs as find_inputs, read_paragraphs as read_paragraphs
from .sentences import SeenKeys as SeenKeys, near_duplicate_key as near_duplicate_key
from .stored import (
    Corpus as Corpus,
    document_starts as document_starts,
    held_out_documents as held_out_documents,
)
from .vocabulary import (
    SPECIAL_TOKENS as SPECIAL_TOKENS,
    CorpusTokens as CorpusTokens,
    Vocabulary as Vocabulary,
    learn_vocabulary as learn_vocabulary,
)
