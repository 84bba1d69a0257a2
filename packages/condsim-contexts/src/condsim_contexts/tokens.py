"""The tokenizer of a corpus, the tokens of its sentences, and inputs and targets of the generators.

A unit passes through the encoder by itself. With ``encoder: apart`` it is one sentence at one place
of the context, so it serves every example in which the sentence stands at that place. With
``encoder: joint`` it is all given sentences of an example.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from condsim.errors import ModelError, one_line
from condsim.io import write_text
from condsim.types import BoolArray, IntArray
from condsim_contexts.recipe import (
    GENERATOR_TASKS,
    SPECIAL_TOKENS,
    GeneratorSettings,
    GeneratorTask,
)

if TYPE_CHECKING:
    from condsim_contexts.corpus import Corpus

_TOKENIZER = "tokenizer.json"
_RECORD = "vocabulary.json"
_SENTENCES_PER_BLOCK = 10_000

PLACE_BITS = 8
"""Bits of the place in the key of a unit, below the row of its sentence."""

_NO_SENTENCE = -1


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and the ids of the tokens that the models place themselves.

    ``corpus`` is the revision of the corpus it was learned from, "" for a pre-trained
    model's.
    """

    tokenizer: Tokenizer
    corpus: str
    pad_id: int
    start_id: int
    end_id: int
    separator_id: int

    def __post_init__(self) -> None:
        # "<sep>" in a text is plain text.
        self.tokenizer.encode_special_tokens = True

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @property
    def revision(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of the tokenizer."""
        return hashlib.sha256(self.tokenizer.to_str().encode()).hexdigest()[:12]

    @classmethod
    def open(cls, folder: Path) -> Vocabulary:
        """Open a saved vocabulary."""
        # `tokenizers` raises bare Exception.
        with one_line(f"{folder} contains no vocabulary", Exception, kind=ModelError):
            record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
            tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
            ids = [record[name] for name in ("pad", "start", "end", "separator")]
            return cls(tokenizer, record["corpus"], *ids)

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
        if self.corpus:
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
        write_text(folder / "tokenizer_config.json", json.dumps(config, indent=2))
        record = {
            "revision": self.revision,
            "corpus": self.corpus,
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
    tokenizer.train_from_iterator(_reported_blocks(corpus, progress), trainer)
    # For a surrogate: one sentence, or two, as its encoder reads them.
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A <sep> $B </s>",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in SPECIAL_TOKENS],
    )
    pad, start, end, _, separator = range(len(SPECIAL_TOKENS))
    vocabulary = Vocabulary(tokenizer, corpus.revision, pad, start, end, separator)
    vocabulary.save(folder)
    # Written last: a folder without it is learned again.
    write_text(settings, json.dumps(values))
    return vocabulary


def _reported_blocks(
    corpus: Corpus, progress: Callable[[int, int], None] | None
) -> Iterator[list[str]]:
    done = 0
    for sentences in corpus.blocks(_SENTENCES_PER_BLOCK):
        yield sentences
        done += len(sentences)
        if progress is not None:
            progress(done, len(corpus))


class CorpusTokens:
    """Token ids of each sentence, in memory; no special tokens."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], starts: IntArray) -> None:
        """Take all tokens, ``(t,)``, and the start of each sentence, then t, ``(n + 1,)``."""
        self._tokens = tokens
        self._starts = starts

    @classmethod
    def build(cls, corpus: Corpus, vocabulary: Vocabulary) -> CorpusTokens:
        """Split the sentences of a corpus into tokens."""
        dtype = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        blocks, lengths = [], [0]
        for sentences in corpus.blocks(_SENTENCES_PER_BLOCK):
            encoded = vocabulary.encode(sentences)
            lengths += map(len, encoded)
            blocks.append(np.concatenate(encoded).astype(dtype))
        return cls(np.concatenate(blocks), np.cumsum(lengths))

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


@dataclass
class EncoderUnits:
    """Units to encode, each once.

    ``tokens`` and the place of each token's sentence, from the left; a key stands for one sentence
    of the corpus at one place, and is -1 for any other unit.
    """

    tokens: list[IntArray] = field(default_factory=list)
    places: list[IntArray] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass
class Items:
    """Targets to generate: place of the task in `GENERATOR_TASKS`, units given, token ids."""

    tasks: list[int] = field(default_factory=list)
    units: list[tuple[int, ...]] = field(default_factory=list)
    targets: list[IntArray] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tasks)


class ItemBuilder:
    """Collection of items, and of the units they share, of sentences given as tokens by number."""

    def __init__(
        self, sentences: Mapping[int, IntArray], settings: GeneratorSettings, vocabulary: Vocabulary
    ) -> None:
        self._sentences = sentences
        self._left, self._joint = settings.left, settings.encoder == "joint"
        self._end, self._separator = vocabulary.end_id, vocabulary.separator_id
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._targets: dict[tuple[int, ...], IntArray] = {}
        self.units, self.items = EncoderUnits(), Items()

    def add(self, task: GeneratorTask, center: int, around: Sequence[int]) -> bool:
        """Add an item, if there is anything to generate; -1 in ``around`` means no sentence."""
        left = self._left
        places = [*range(left), *range(left + 1, len(around) + 1)]
        near = list(zip(around, places, strict=True))
        if task == "center":
            inputs, outputs = near, [(center, left)]
        elif task == "left":
            inputs, outputs = [(center, left), *near[left:]], near[:left]
        else:
            inputs, outputs = [*near[:left], (center, left)], near[left:]
        numbers = tuple(number for number, _ in outputs if number != _NO_SENTENCE)
        if not numbers:
            return False
        pairs = [pair for pair in inputs if pair[0] != _NO_SENTENCE]
        # Where no sentence is given, one unit of the end token alone.
        keys = [tuple(pairs)] if self._joint or not pairs else [(pair,) for pair in pairs]
        self.items.tasks.append(GENERATOR_TASKS.index(task))
        self.items.units.append(tuple([self._unit(key) for key in keys]))
        self.items.targets.append(self._target(numbers))
        return True

    def _unit(self, key: tuple[tuple[int, int], ...]) -> int:
        """Return the number of a unit of (sentence, place) pairs; add the unit if it is new."""
        if key not in self._numbers:
            self._numbers[key] = len(self.units)
            parts = [
                (np.append(self._sentences[number], self._end), place) for number, place in key
            ]
            parts = parts or [(np.array([self._end]), self._left)]
            number, place = key[0] if len(key) == 1 else (_NO_SENTENCE, 0)
            self.units.keys.append(number << PLACE_BITS | place if number >= 0 else _NO_SENTENCE)
            self.units.tokens.append(np.concatenate([tokens for tokens, _ in parts]))
            filled = [np.full(len(tokens), place) for tokens, place in parts]
            self.units.places.append(np.concatenate(filled))
        return self._numbers[key]

    def _target(self, numbers: tuple[int, ...]) -> IntArray:
        """Join the tokens of sentences to one text to generate."""
        if numbers not in self._targets:
            parts = [np.append(self._sentences[number], self._separator) for number in numbers]
            self._targets[numbers] = np.concatenate(parts)
            self._targets[numbers][-1] = self._end
        return self._targets[numbers]


def pad_rows(rows: Sequence[IntArray], *, fill: int) -> tuple[IntArray, BoolArray]:
    """Pad arrays to one length: the values, ``(n, longest)``, and which are not padding."""
    lengths = np.array([len(row) for row in rows])
    inside = np.arange(lengths.max()) < lengths[:, None]
    values = np.full(inside.shape, fill, dtype=np.int64)
    values[inside] = np.concatenate(rows)
    return values, inside


def length_groups(
    lengths: IntArray, *, call: int, most: int, attended: IntArray | None = None
) -> list[IntArray]:
    """Split rows, of lengths above 0, into groups padded to the longest row, at the least cost.

    A group costs ``call`` tokens and its padded tokens, and has ``most`` of them. ``attended`` are
    the tokens that each row attends to in addition to its own: rows of similar length are then
    grouped by these, and a quarter of them counts as tokens of the group.
    """
    if not len(lengths):
        return []
    order = np.argsort(lengths, kind="stable")
    sizes, counts = np.unique(lengths, return_counts=True)
    before = np.concatenate([[0], np.cumsum(counts)])
    # Dynamic programming over the distinct lengths: the cheapest first length of the group that
    # ends at each.
    cost = np.zeros(len(sizes) + 1)
    first = np.zeros(len(sizes), dtype=np.int64)
    for last, size in enumerate(sizes):
        options = cost[: last + 1] + call + (before[last + 1] - before[: last + 1]) * size
        first[last] = int(options.argmin())
        cost[last + 1] = options[first[last]]
    groups: list[IntArray] = []
    last = len(sizes) - 1
    while last >= 0:
        rows = order[before[first[last]] : before[last + 1]]
        size = int(sizes[last])
        if attended is not None:
            rows = rows[np.argsort(attended[rows], kind="stable")]
            size += int(attended[rows].mean()) // 4
        parts = -(-len(rows) * size // most)
        groups += np.array_split(rows, min(parts, len(rows)))
        last = int(first[last]) - 1
    return groups[::-1]
