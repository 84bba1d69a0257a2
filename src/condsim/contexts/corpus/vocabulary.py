"""The tokens of a whole corpus on disk, so that training reads no text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, ModelError, require
from condsim.files import replacing
from condsim.types import IntArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<mask>", "<sep>")
TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
RECORD = "vocabulary.json"

_BLOCK = 10_000  # sentences read from the corpus at a time
_LEAST_SIZE = len(SPECIAL_TOKENS) + 256  # the special tokens and one for each byte


class SentenceCorpus(Protocol):
    """What the models read of a `condsim.contexts.corpus.preparing.Corpus`."""

    @property
    def revision(self) -> str:
        """Hash of the inputs and settings that the corpus was made from."""

    @property
    def documents(self) -> NDArray[np.int32]:
        """Document of each sentence, ``(n,)``, never decreasing."""

    def __len__(self) -> int:
        """Number of sentences."""

    def sentences(self, ids: NDArray[np.int64]) -> list[str]:
        """The texts of some sentences."""

    def neighbours(
        self, centres: NDArray[np.int64], *, left: int = 2, right: int = 2
    ) -> NDArray[np.int64]:
        """The sentences around some, ``(k, left + right)``; -1 where the document ends."""


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and the ids of the tokens that the models place themselves.

    Attributes:
        tokenizer: The tokenizer; :meth:`encode` leaves its special tokens out.
        revision: First 12 hex digits of the SHA-256 of the tokenizer.
        corpus_revision: Revision of the corpus it was learned from; empty if it came with a
            pre-trained model.
        pad_id: Token that fills a batch up.
        start_id: First token that a decoder sees.
        end_id: Token that ends a sentence.
        separator_id: Token between two sentences of one text.
        folder: Where it was opened from; the tokens of the corpus are kept there too.
    """

    tokenizer: Tokenizer
    revision: str
    corpus_revision: str
    pad_id: int
    start_id: int
    end_id: int
    separator_id: int
    folder: Path

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @classmethod
    def open(cls, folder: Path) -> Vocabulary:
        """Opens a learned vocabulary."""
        tokenizers = require("tokenizers", extra="contexts")
        try:
            record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            text = (folder / TOKENIZER).read_text(encoding="utf-8")
            tokenizer = tokenizers.Tokenizer.from_str(text)
            tokenizer.encode_special_tokens = True  # "<sep>" in a text is plain text
        except Exception as error:  # `tokenizers` raises bare Exception
            why = f"{folder} holds no vocabulary: {error}. Learn it anew."
            raise ModelError(why) from error
        if _revision(text) != record["revision"]:
            raise ModelError(
                f"{folder / TOKENIZER} is not the tokenizer that {RECORD} was written for. Learn "
                "the vocabulary anew; models trained with the old one have a copy of it."
            )
        return cls(
            tokenizer=tokenizer,
            revision=record["revision"],
            corpus_revision=record["corpus"],
            pad_id=record["pad"],
            start_id=record["start"],
            end_id=record["end"],
            separator_id=record["separator"],
            folder=folder,
        )

    def encode(self, sentences: Sequence[str]) -> list[IntArray]:
        """Splits sentences into tokens, with no special tokens and none cut off."""
        encoded = self.tokenizer.encode_batch_fast(list(sentences), add_special_tokens=False)
        return [np.asarray(one.ids, dtype=np.int64) for one in encoded]

    def save(self, folder: Path) -> None:
        """Writes the vocabulary as a transformers fast tokenizer, its record last."""
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / TOKENIZER, self.tokenizer.to_str())
        pad, start, end, mask, separator = SPECIAL_TOKENS
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": pad,
            "bos_token": start,
            "eos_token": end,
            "cls_token": start,
            "sep_token": separator,
            "mask_token": mask,
            "model_input_names": ["input_ids", "attention_mask"],
        }
        if not self.corpus_revision:  # another model's tokens go by other names
            config = {"tokenizer_class": "PreTrainedTokenizerFast"}
        _write(folder / CONFIG, json.dumps(config, indent=2))
        record = {
            "revision": self.revision,
            "corpus": self.corpus_revision,
            "pad": self.pad_id,
            "start": self.start_id,
            "end": self.end_id,
            "separator": self.separator_id,
        }
        _write(folder / RECORD, json.dumps(record, indent=2))


def learn_vocabulary(
    corpus: SentenceCorpus, folder: Path, *, size: int = 8_000, lowercase: bool = True
) -> Vocabulary:
    """Learns the tokenizer of a corpus, or opens it if it was learned before.

    Args:
        corpus: The corpus; its sentences are read once, in order.
        folder: Where to write it. One learned from another corpus, or with another size, is
            written over.
        size: Number of entries, special tokens among them; fewer if the text has no more to merge.
        lowercase: Whether a word and the same word in capitals are one, which a small corpus
            learns more from.

    Returns:
        The vocabulary.

    Raises:
        InputError: If the corpus has no sentence or the size is too small for the bytes.
    """
    if size < _LEAST_SIZE:
        raise InputError(f"A vocabulary needs at least {_LEAST_SIZE} entries. Got {size}.")
    if not len(corpus):
        raise InputError("A vocabulary cannot be learned from a corpus with no sentence.")
    wanted = {"corpus": corpus.revision, "size": size, "lowercase": lowercase}
    settings = folder / "settings.json"
    if settings.is_file() and json.loads(settings.read_text(encoding="utf-8")) == wanted:
        return Vocabulary.open(folder)
    settings.unlink(missing_ok=True)
    text = _learn(corpus, size, lowercase=lowercase)
    tokenizers = require("tokenizers", extra="contexts")
    tokenizer = tokenizers.Tokenizer.from_str(text)
    tokenizer.encode_special_tokens = True
    pad, start, end, _, separator = (tokenizer.token_to_id(token) for token in SPECIAL_TOKENS)
    revision = _revision(text)
    vocabulary = Vocabulary(
        tokenizer, revision, corpus.revision, pad, start, end, separator, folder
    )
    vocabulary.save(folder)
    _write(settings, json.dumps(wanted))  # last: a folder without it is learned anew
    return vocabulary


def _learn(corpus: SentenceCorpus, size: int, *, lowercase: bool) -> str:
    tokenizers = require("tokenizers", extra="contexts")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    forms = [tokenizers.normalizers.NFC()]
    if lowercase:
        forms.append(tokenizers.normalizers.Lowercase())
    tokenizer.normalizer = tokenizers.normalizers.Sequence(forms)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_blocks(corpus), trainer)
    # For a surrogate: one sentence, or two, as its encoder reads them.
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A <sep> $B </s>",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in SPECIAL_TOKENS],
    )
    return str(tokenizer.to_str())


def _blocks(corpus: SentenceCorpus) -> Iterator[list[str]]:
    for first in range(0, len(corpus), _BLOCK):
        yield corpus.sentences(np.arange(first, min(first + _BLOCK, len(corpus)), dtype=np.int64))


def _revision(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _write(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


_VOCABULARY_TOKENS_BLOCK = 10_000  # sentences at a time


class CorpusTokens:
    """Token ids of each sentence, memory-mapped; no special tokens."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], starts: IntArray) -> None:
        """Takes the tokens of all sentences one after the other, and where each starts.

        Args:
            tokens: Token ids, ``(t,)``.
            starts: First token of each sentence, and t, ``(n + 1,)``.
        """
        self._tokens = tokens
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of tokens of each sentence, ``(n,)``."""
        return np.diff(self._starts)

    def take(self, ids: IntArray | Sequence[int], *, most: int) -> list[IntArray]:
        """Reads some sentences.

        Args:
            ids: Rows of the corpus, length k.
            most: Tokens kept of each; the rest of a longer sentence is cut off.

        Returns:
            Token ids of each, k arrays of at most ``most``.
        """
        starts, tokens = self._starts, self._tokens
        return [
            np.asarray(tokens[starts[i] : min(starts[i + 1], starts[i] + most)], dtype=np.int64)
            for i in ids
        ]

    def stretch(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Reads consecutive sentences as one run of tokens.

        Args:
            first: Row of the first sentence.
            last: Row after the last one.

        Returns:
            Token ids and the sentence that each belongs to, both ``(t,)``.
        """
        begin, end = self._starts[first], self._starts[last]
        sentences = np.repeat(np.arange(first, last), np.diff(self._starts[first : last + 1]))
        return np.asarray(self._tokens[begin:end], dtype=np.int64), sentences

    @classmethod
    def build(cls, corpus: SentenceCorpus, vocabulary: Vocabulary) -> CorpusTokens:
        """Splits the corpus into tokens, or opens what was split before.

        Args:
            corpus: The corpus; read in blocks.
            vocabulary: The tokenizer; the files are in its folder.

        Returns:
            The tokens.
        """
        folder = vocabulary.folder
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {"corpus": corpus.revision, "vocabulary": vocabulary.revision}
        record, data, offsets = (
            folder / name for name in ("tokens.json", "tokens.bin", "token_starts.npy")
        )
        kind = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        if not (record.is_file() and json.loads(record.read_text(encoding="utf-8")) == wanted):
            record.unlink(missing_ok=True)
            _split(corpus, vocabulary, data, offsets, kind)
            with replacing(record) as partial:  # last: without it the files are made anew
                partial.write_text(json.dumps(wanted), encoding="utf-8")
        starts = np.load(offsets, mmap_mode="r")
        if not starts[-1]:  # an empty file cannot be mapped
            return cls(np.empty(0, dtype=kind), starts)
        return cls(np.memmap(data, dtype=kind, mode="r"), starts)


def _split(
    corpus: SentenceCorpus,
    vocabulary: Vocabulary,
    data: Path,
    offsets: Path,
    kind: type[np.unsignedinteger],
) -> None:
    starts = np.zeros(len(corpus) + 1, dtype=np.int64)
    with replacing(data) as partial, partial.open("wb") as stream:
        for first in range(0, len(corpus), _VOCABULARY_TOKENS_BLOCK):
            last = min(first + _VOCABULARY_TOKENS_BLOCK, len(corpus))
            encoded = vocabulary.encode(corpus.sentences(np.arange(first, last, dtype=np.int64)))
            starts[first + 1 : last + 1] = [len(ids) for ids in encoded]
            stream.write(np.concatenate(encoded).astype(kind).tobytes())
    np.cumsum(starts, out=starts)
    with replacing(offsets) as partial, partial.open("wb") as stream:
        np.save(stream, starts)
