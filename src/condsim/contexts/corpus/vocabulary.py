"""The tokenizer of a corpus, and its tokens on disk, so that training reads no text."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from condsim.contexts.corpus.stored import Corpus
from condsim.errors import InputError, ModelError
from condsim.io import replacing, write_text
from condsim.types import IntArray

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<mask>", "<sep>")
TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
RECORD = "vocabulary.json"

_BLOCK = 10_000  # sentences read from the corpus at a time
_LEAST_SIZE = len(SPECIAL_TOKENS) + 256  # the special tokens and one for each byte


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and the ids of the tokens that the models place themselves."""

    tokenizer: Tokenizer
    revision: str  # the first 12 hexadecimal digits of the SHA-256 of the tokenizer
    corpus_revision: str  # of the corpus it was learned from; "" if of a pre-trained model
    pad_id: int
    start_id: int  # the first token that a decoder sees
    end_id: int
    separator_id: int  # between two sentences of one text
    folder: Path  # where it was opened from; the tokens of the corpus are kept there too

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @classmethod
    def open(cls, folder: Path) -> Vocabulary:
        """Opens a learned vocabulary."""
        try:
            record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            text = (folder / TOKENIZER).read_text(encoding="utf-8")
            tokenizer = Tokenizer.from_str(text)
            tokenizer.encode_special_tokens = True  # "<sep>" in a text is plain text
        except Exception as error:  # `tokenizers` raises bare Exception
            why = f"{folder} holds no vocabulary: {error}. Learn it anew."
            raise ModelError(why) from error
        if _revision(text) != record["revision"]:
            raise ModelError(
                f"{folder / TOKENIZER} is not the tokenizer that {RECORD} was written for. Learn "
                "the vocabulary anew; models trained with the old one have a copy of it."
            )
        pad, start, end, sep = (record[name] for name in ("pad", "start", "end", "separator"))
        revision, corpus = record["revision"], record["corpus"]
        return cls(tokenizer, revision, corpus, pad, start, end, sep, folder)

    @classmethod
    def new(
        cls, tokenizer: Tokenizer, folder: Path, *, corpus: str, ids: tuple[int, int, int, int]
    ) -> Vocabulary:
        """Writes a tokenizer to a folder; ``ids`` are those of padding, start, end, separator."""
        tokenizer.encode_special_tokens = True
        vocabulary = cls(tokenizer, _revision(tokenizer.to_str()), corpus, *ids, folder)
        vocabulary.save(folder)
        return vocabulary

    def encode(self, sentences: Sequence[str]) -> list[IntArray]:
        """Splits sentences into tokens, with no special tokens and none cut off."""
        encoded = self.tokenizer.encode_batch_fast(list(sentences), add_special_tokens=False)
        return [np.asarray(one.ids, dtype=np.int64) for one in encoded]

    def save(self, folder: Path) -> None:
        """Writes the vocabulary as a transformers fast tokenizer, its record last."""
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / TOKENIZER, self.tokenizer.to_str())
        config: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast"}
        if self.corpus_revision:  # a pre-trained model's tokens have other names
            pad, start, end, mask, separator = SPECIAL_TOKENS
            config |= {
                "pad_token": pad,
                "bos_token": start,
                "eos_token": end,
                "cls_token": start,
                "sep_token": separator,
                "mask_token": mask,
                "model_input_names": ["input_ids", "attention_mask"],
            }
        write_text(folder / CONFIG, json.dumps(config, indent=2))
        record = {
            "revision": self.revision,
            "corpus": self.corpus_revision,
            "pad": self.pad_id,
            "start": self.start_id,
            "end": self.end_id,
            "separator": self.separator_id,
        }
        write_text(folder / RECORD, json.dumps(record, indent=2))


def learn_vocabulary(
    corpus: Corpus,
    folder: Path,
    *,
    size: int = 8_000,
    lowercase: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Vocabulary:
    """Learns the tokenizer of a corpus, or opens it if it was learned before.

    Args:
        corpus: The corpus; its sentences are read once, in order.
        folder: Where to write it. One learned from another corpus, or with another size, is
            replaced.
        size: Number of entries, special tokens included; fewer if the text has no more to merge.
        lowercase: Whether case is ignored, which suits a small corpus.
        progress: Called with the sentences read and their number.

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
    tokenizer = _learned(_blocks(corpus, progress), size, lowercase=lowercase)
    pad, start, end, _, separator = range(len(SPECIAL_TOKENS))  # they come first
    vocabulary = Vocabulary.new(
        tokenizer, folder, corpus=corpus.revision, ids=(pad, start, end, separator)
    )
    write_text(settings, json.dumps(wanted))  # last: a folder without it is learned anew
    return vocabulary


def _learned(texts: Iterable[list[str]], size: int, *, lowercase: bool) -> Tokenizer:
    """Trains byte-level BPE."""
    tokenizer = Tokenizer(BPE())
    forms = [normalizers.NFC(), *([normalizers.Lowercase()] if lowercase else [])]
    tokenizer.normalizer = normalizers.Sequence(forms)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # For a surrogate: one sentence, or two, as its encoder reads them.
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A <sep> $B </s>",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in SPECIAL_TOKENS],
    )
    return tokenizer


def _blocks(
    corpus: Corpus, progress: Callable[[int, int], None] | None = None
) -> Iterator[list[str]]:
    """Reads all sentences in order, a block at a time."""
    for first in range(0, len(corpus), _BLOCK):
        last = min(first + _BLOCK, len(corpus))
        yield corpus.sentences(np.arange(first, last, dtype=np.int64))
        if progress is not None:
            progress(last, len(corpus))


def _revision(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class CorpusTokens:
    """Token ids of each sentence, memory-mapped; no special tokens."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], starts: IntArray) -> None:
        """Takes all tokens, ``(t,)``, and where each sentence starts, then t, ``(n + 1,)``."""
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
            last: Row after the last one.

        Returns:
            Token ids and the sentence that each belongs to, both ``(t,)``.
        """
        begin, end = self._starts[first], self._starts[last]
        sentences = np.repeat(np.arange(first, last), np.diff(self._starts[first : last + 1]))
        return np.asarray(self._tokens[begin:end], dtype=np.int64), sentences

    @classmethod
    def build(cls, corpus: Corpus, vocabulary: Vocabulary) -> CorpusTokens:
        """Splits the corpus into tokens, or opens what was split before.

        Args:
            corpus: The corpus; read in blocks.
            vocabulary: The tokenizer; the files are in its folder.
        """
        folder = vocabulary.folder
        folder.mkdir(parents=True, exist_ok=True)
        record, data, offsets = (
            folder / name for name in ("tokens.json", "tokens.bin", "token_starts.npy")
        )
        wanted = {"corpus": corpus.revision, "vocabulary": vocabulary.revision}
        kind = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        if not (record.is_file() and json.loads(record.read_text(encoding="utf-8")) == wanted):
            record.unlink(missing_ok=True)
            lengths = array("q", [0])
            with replacing(data) as partial, partial.open("wb") as stream:
                for sentences in _blocks(corpus):
                    encoded = vocabulary.encode(sentences)
                    lengths.extend(map(len, encoded))
                    stream.write(np.concatenate(encoded).astype(kind).tobytes())
            with replacing(offsets) as partial, partial.open("wb") as stream:
                np.save(stream, np.cumsum(np.frombuffer(lengths, dtype=np.int64)))
            write_text(record, json.dumps(wanted))  # last: without it the files are made again
        starts = np.load(offsets, mmap_mode="r")
        if not starts[-1]:  # an empty file cannot be mapped
            return cls(np.empty(0, dtype=kind), starts)
        return cls(np.memmap(data, dtype=kind, mode="r"), starts)
