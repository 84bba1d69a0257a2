"""The tokenizer of a corpus, and its tokens on disk, so that training reads no text."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from condsim.contexts.corpus import Corpus
from condsim.contexts.recipe import SPECIAL_TOKENS
from condsim.errors import ModelError
from condsim.io import replacing, write_text
from condsim.types import IntArray

_TOKENIZER = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_RECORD = "vocabulary.json"
_SENTENCES_PER_BLOCK = 10_000


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and the ids of the tokens that the models place themselves.

    ``revision`` is the first 12 hexadecimal digits of its SHA-256, ``corpus_revision`` the corpus
    it was learned from, "" for that of a pre-trained model. The tokens of the corpus are cached in
    ``folder`` too.
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
        """Open a saved vocabulary."""
        try:
            record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
            text = (folder / _TOKENIZER).read_text(encoding="utf-8")
            tokenizer = Tokenizer.from_str(text)
            # "<sep>" in a text is plain text.
            tokenizer.encode_special_tokens = True
        # `tokenizers` raises bare Exception.
        except Exception as error:
            raise ModelError(
                f"{folder} contains no vocabulary: {error}. Learn it again."
            ) from error
        if _text_hash(text) != record["revision"]:
            raise ModelError(
                f"{folder / _TOKENIZER} is not the tokenizer that {_RECORD} was written for. Learn "
                "the vocabulary again; models trained with the old one have a copy of it."
            )
        return cls(
            tokenizer,
            revision=record["revision"],
            corpus_revision=record["corpus"],
            pad_id=record["pad"],
            start_id=record["start"],
            end_id=record["end"],
            separator_id=record["separator"],
            folder=folder,
        )

    @classmethod
    def new(
        cls, tokenizer: Tokenizer, folder: Path, *, corpus: str, ids: tuple[int, int, int, int]
    ) -> Vocabulary:
        """Write a tokenizer to a folder; ``ids`` are those of padding, start, end, separator."""
        tokenizer.encode_special_tokens = True
        vocabulary = cls(tokenizer, _text_hash(tokenizer.to_str()), corpus, *ids, folder)
        vocabulary.save(folder)
        return vocabulary

    def encode(self, sentences: Sequence[str]) -> list[IntArray]:
        """Split sentences into tokens, with no special tokens and none cut off."""
        encodings = self.tokenizer.encode_batch_fast(list(sentences), add_special_tokens=False)
        return [np.asarray(encoding.ids, dtype=np.int64) for encoding in encodings]

    def save(self, folder: Path) -> None:
        """Write the vocabulary as a transformers fast tokenizer, its record last."""
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / _TOKENIZER, self.tokenizer.to_str())
        config: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast"}
        # The tokens of a pre-trained model have other names.
        if self.corpus_revision:
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
        write_text(folder / _CONFIG, json.dumps(config, indent=2))
        record = {
            "revision": self.revision,
            "corpus": self.corpus_revision,
            "pad": self.pad_id,
            "start": self.start_id,
            "end": self.end_id,
            "separator": self.separator_id,
        }
        write_text(folder / _RECORD, json.dumps(record, indent=2))


def learn_vocabulary(
    corpus: Corpus,
    folder: Path,
    *,
    size: int = 8_000,
    lowercase: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Vocabulary:
    """Learn the tokenizer of a corpus, or open it if it was learned before.

    A text that has no more to merge gives fewer than ``size`` entries. A vocabulary learned from
    another corpus, or with another size, is replaced.
    """
    values = {"corpus": corpus.revision, "size": size, "lowercase": lowercase}
    settings = folder / "settings.json"
    if settings.is_file() and json.loads(settings.read_text(encoding="utf-8")) == values:
        return Vocabulary.open(folder)
    settings.unlink(missing_ok=True)
    tokenizer = _byte_level_tokenizer(lowercase=lowercase)
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_reported_blocks(corpus, progress), trainer)
    # For a surrogate: one sentence, or two, as its encoder reads them.
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A <sep> $B </s>",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in SPECIAL_TOKENS],
    )
    pad, start, end, _, separator = range(len(SPECIAL_TOKENS))
    vocabulary = Vocabulary.new(
        tokenizer, folder, corpus=corpus.revision, ids=(pad, start, end, separator)
    )
    # Written last: a folder without it is learned again.
    write_text(settings, json.dumps(values))
    return vocabulary


def _byte_level_tokenizer(*, lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    forms = [normalizers.NFC(), *([normalizers.Lowercase()] if lowercase else [])]
    tokenizer.normalizer = normalizers.Sequence(forms)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _reported_blocks(
    corpus: Corpus, progress: Callable[[int, int], None] | None
) -> Iterator[list[str]]:
    done = 0
    for sentences in corpus.blocks(_SENTENCES_PER_BLOCK):
        yield sentences
        done += len(sentences)
        if progress is not None:
            progress(done, len(corpus))


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class CorpusTokens:
    """Token ids of each sentence, memory-mapped; no special tokens."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], starts: IntArray) -> None:
        """Take all tokens, ``(t,)``, and the start of each sentence, then t, ``(n + 1,)``."""
        self._tokens = tokens
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of tokens of each sentence, ``(n,)``."""
        return np.diff(self._starts)

    def take(self, ids: IntArray | Sequence[int], *, most: int) -> list[IntArray]:
        """Read the first ``most`` token ids of each of k sentences: k arrays."""
        starts, tokens = self._starts, self._tokens
        return [
            np.asarray(tokens[starts[i] : min(starts[i + 1], starts[i] + most)], dtype=np.int64)
            for i in ids
        ]

    def stretch(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Read consecutive sentences as token ids and the sentence of each, both ``(t,)``.

        ``last`` is the row after the last sentence.
        """
        begin, end = self._starts[first], self._starts[last]
        sentences = np.repeat(np.arange(first, last), np.diff(self._starts[first : last + 1]))
        return np.asarray(self._tokens[begin:end], dtype=np.int64), sentences

    @classmethod
    def build(cls, corpus: Corpus, vocabulary: Vocabulary) -> CorpusTokens:
        """Split the corpus into tokens, or open the ones in the folder of the vocabulary."""
        folder = vocabulary.folder
        folder.mkdir(parents=True, exist_ok=True)
        record = folder / "tokens.json"
        data, offsets = folder / "tokens.bin", folder / "token_starts.npy"
        values = {"corpus": corpus.revision, "vocabulary": vocabulary.revision}
        dtype = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        if not (record.is_file() and json.loads(record.read_text(encoding="utf-8")) == values):
            record.unlink(missing_ok=True)
            lengths = array("q", [0])
            with replacing(data) as partial, partial.open("wb") as stream:
                for sentences in corpus.blocks(_SENTENCES_PER_BLOCK):
                    encoded = vocabulary.encode(sentences)
                    lengths.extend(map(len, encoded))
                    stream.write(np.concatenate(encoded).astype(dtype).tobytes())
            with replacing(offsets) as partial, partial.open("wb") as stream:
                np.save(stream, np.cumsum(np.frombuffer(lengths, dtype=np.int64)))
            # Written last: without it the files are made again.
            write_text(record, json.dumps(values))
        starts = np.load(offsets, mmap_mode="r")
        # An empty file cannot be mapped.
        if not starts[-1]:
            return cls(np.empty(0, dtype=dtype), starts)
        return cls(np.memmap(data, dtype=dtype, mode="r"), starts)
