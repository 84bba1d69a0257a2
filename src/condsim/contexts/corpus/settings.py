"""Settings of a corpus, and its counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, model_validator

from condsim.errors import InputError
from condsim.settings import Settings

REASONS = ("too_short", "too_long", "near_duplicate", "not_text")  # to drop a sentence
HOW_TO_SPLIT = (  # a text into documents, for errors
    "a blank line ends a document of a text file, a line '= Title =' begins one, and with "
    "'corpus.documents: file' each file is one"
)


class CorpusSettings(Settings):
    """What decides how a corpus comes out, beside its input files.

    Attributes:
        language: ISO 639 code of the language, for the sentence splitter.
        chunk_sentences: Sentences in a chunk; the last chunk of a document may be shorter.
        min_words: Fewest words of a sentence, words being what white space separates.
        max_words: Most words of a sentence.
        max_words_total: Take documents in an order shuffled by ``seed`` until they have this many
            words, as read; None for all. A smaller corpus holds a part of a larger one's documents.
        seed: Seed of that order.
        documents: What a document of a text file is: ``blank-line`` (documents are separated by
            blank lines, or begin at title lines ``= Title =`` alone where a file has some) or
            ``file``.
        text_field: Name of the text in JSONL and Parquet.
        caption_field: Name of the column of TSV that holds one sentence a row.
    """

    what = "corpus"

    language: str = "en"
    chunk_sentences: Annotated[int, Field(ge=1)] = 10
    min_words: Annotated[int, Field(ge=1)] = 3
    max_words: Annotated[int, Field(ge=1)] = 60
    max_words_total: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    documents: Literal["blank-line", "file"] = "blank-line"
    text_field: str = "text"
    caption_field: str = "caption"

    @model_validator(mode="after")
    def _fits_together(self) -> CorpusSettings:
        if not re.fullmatch(r"[a-z]{2,3}", self.language):
            raise InputError(
                "The 'language' of a corpus must be a code of two or three letters, such as 'en'. "
                f"Got {self.language!r}."
            )
        if self.min_words > self.max_words:
            raise InputError(
                "'min_words' must be no more than 'max_words'. "
                f"Got {self.min_words} and {self.max_words}."
            )
        return self


@dataclass
class CorpusCounts:
    """What a corpus holds and what was left out of it."""

    documents: int = 0  # with at least one sentence
    chunks: int = 0
    sentences: int = 0
    words: int = 0
    single_sentence_documents: int = 0
    documents_read: int = 0  # taken of the input files
    documents_left: int = 0  # not taken because of max_words_total
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    def summary(self) -> str:
        """Says in one line what there is and how much was left out."""
        dropped = ", ".join(
            f"{number:,} {reason.replace('_', ' ')}" for reason, number in self.dropped.items()
        )
        return (
            f"corpus: {self.documents:,} documents, {self.sentences:,} sentences, {self.words:,} "
            f"words; dropped: {dropped}; {self.single_sentence_documents:,} documents of one "
            "sentence, whose contexts are empty"
        )
