"""Generators that count: word counts, and counts smoothed with the embeddings of an encoder.

Counts are the floor that trained generators have to beat; SSBC has none. Their model is

    p(token | given) = (1 - share) p(token) + share n(token, given) / n(given)

with p(token) the share in the corpus. Over the vocabulary it sums to one, so it is a language model
that can stand in for a trained generator, with nothing trained and, as ``share`` is fixed, nothing
tuned.

Counts find a word of the context only where it comes again. A *translation* model (Berger and
Lafferty, 1999; by word vectors, Zuccon et al., 2015) spreads it over the vocabulary, and here each
given sentence as a whole as well:

    p(token | given) = o p(token) + c C(token) + w sum_g a(g) T(token | g) + s mean_r S(token | r)
    T(token | g) = p(token)^α exp(cos(token, g) / τ) / Z(g),   a(g) = (-log p(g))^β / sum

p is the share in the corpus, g each token of the given sentences, C the sum of a(g) over the g that
are the token, r each given sentence, S is T with its own numbers α' and τ'; o + c + w + s is 1,
so over the vocabulary it sums to one. The vectors come from a frozen encoder, of each entry of
the vocabulary by itself and of each sentence. The eight numbers maximize the likelihood of the
corpus, without labels. Not part of SSBC.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from condsim.cache import VectorCache, cached_rows
from condsim.types import BoolArray, FloatArray, IntArray
from condsim_contexts.corpus import Corpus
from condsim_contexts.recipe import SHAPES, GeneratorSettings
from condsim_contexts.tokens import PLACE_BITS, CorpusTokens, EncoderUnits, Items, Vocabulary
from condsim_contexts.trainer import StepProgress, best_device, no_progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_SENTENCES_PER_COUNT = 100_000
_SENTENCES_PER_READ = 1_024
_ROWS_PER_NORMALIZATION = 512
# Vectors of given sentences that are cached for the next slab of pairs.
_RECENT_VECTORS = 4_096

# Initial numbers: log 1/τ and α, each of tokens and of sentences, β, and the logits of o, c, w, s.
_INITIAL_NUMBERS = {
    "sharpness": [math.log(1 / 0.09)] * 2,
    "prior": [0.9, 0.9],
    "rarity": [1.0],
    "shares": [0.0, -2.0, 0.0, 0.0],
}
# Places of T and S among `sharpness` and `prior`.
_WORD, _SENTENCE = 0, 1


class CountsGenerator(nn.Module):
    """Counts of a corpus; the counterpart of `ContextGenerator`."""

    def __init__(self, settings: GeneratorSettings, vocabulary: Vocabulary) -> None:
        super().__init__()
        # (vocabulary,) float64, add-one smoothed
        self.counts: Tensor
        self.register_buffer("counts", torch.ones(len(vocabulary), dtype=torch.float64))
        # Only the width of this tensor is read.
        self.places = torch.zeros(settings.places, SHAPES["tiny"].width)
        self._share = settings.share
        self._ends = [vocabulary.end_id, vocabulary.separator_id]

    def prepare(self, tokens: CorpusTokens, counted: BoolArray) -> None:
        """Count the tokens of some sentences, ``(n,)``; each has an end and a separator."""
        counts = np.ones(len(self.counts))
        for first in range(0, len(tokens), _SENTENCES_PER_COUNT):
            ids, rows = tokens.stretch(first, min(first + _SENTENCES_PER_COUNT, len(tokens)))
            counts += np.bincount(ids[counted[rows]], minlength=len(counts))
        counts[self._ends] += counted.sum()
        self.counts.copy_(torch.from_numpy(counts))

    def encode(self, units: EncoderUnits, store: object = None) -> EncoderUnits:
        """Return the units unchanged: they need no encoding."""
        return units

    def log_probabilities(self, units: EncoderUnits, items: Items) -> Tensor:
        """Sum the log-probabilities of the tokens of each target, ``(n,)`` float64."""
        counts = self.counts.numpy()
        numbers: dict[tuple[int, ...], int] = {}
        inputs = np.array([numbers.setdefault(group, len(numbers)) for group in items.units])
        bags = [np.concatenate([units.tokens[unit] for unit in group]) for group in numbers]
        sizes = np.array([len(bag) for bag in bags])
        owners = np.repeat(np.arange(len(bags)), sizes)
        keys, times = np.unique(owners * len(counts) + np.concatenate(bags), return_counts=True)
        lengths = np.array([len(target) for target in items.targets])
        targets, owners = np.concatenate(items.targets), np.repeat(inputs, lengths)
        target_keys = owners * len(counts) + targets
        position = np.minimum(np.searchsorted(keys, target_keys), len(keys) - 1)
        inside = np.where(keys[position] == target_keys, times[position], 0) / sizes[owners]
        mixed = (1 - self._share) * counts[targets] / counts.sum() + self._share * inside
        starts = np.cumsum(lengths) - lengths
        return torch.from_numpy(np.add.reduceat(np.log(mixed), starts))


def corpus_vectors(
    backbone: str, corpus: Corpus, folder: Path, progress: StepProgress = no_progress
) -> NDArray[Any]:
    """Compute the vectors of all sentences of a corpus, ``(n, d)``, or open those in the folder."""

    def encode(first: int, last: int) -> NDArray[np.float16]:
        return _unit_vectors(backbone, corpus.sentences(range(first, last))).astype(np.float16)

    inputs = {"corpus": corpus.revision, "backbone": backbone}
    return cached_rows(
        folder / "sentences.npy",
        encode,
        rows=len(corpus),
        block=_SENTENCES_PER_READ,
        inputs=inputs,
        progress=progress,
    )


class _EncodedUnits(NamedTuple):
    """Tokens of units, log p, log Z of each token among them, vectors and log Z of units."""

    tokens: Sequence[IntArray]
    logs: Tensor  # (v,)
    norms: Tensor  # (v,)
    sentences: Tensor  # (u, d)
    sentence_norms: Tensor  # (u,)


class TranslationGenerator(CountsGenerator):
    """Counts, vectors of width d, and the numbers that are fitted."""

    def __init__(
        self, settings: GeneratorSettings, vocabulary: Vocabulary, sentences: NDArray[Any]
    ) -> None:
        """Take the vectors of the corpus, ``(n, d)``; see `corpus_vectors`."""
        super().__init__(settings, vocabulary)
        width = sentences.shape[1]
        # Unit vectors of the entries of the vocabulary, (v, d); 0 for special tokens.
        self.vectors: Tensor
        self.register_buffer("vectors", torch.zeros(len(vocabulary), width))
        self.numbers = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(values)) for name, values in _INITIAL_NUMBERS.items()}
        )
        self._tokenizer, self._backbone = vocabulary.tokenizer, str(settings.backbone)
        self._corpus = sentences
        self._recent = VectorCache(_RECENT_VECTORS, width)
        # Log Z of tokens, and of sentences; NaN where it was not needed yet.
        self._log_norms: dict[int, Tensor] = {}
        self.train()

    def prepare(self, tokens: CorpusTokens, counted: BoolArray) -> None:
        """Count tokens, and encode each entry of the vocabulary."""
        super().prepare(tokens, counted)
        texts = [self._tokenizer.decode([entry]).strip() for entry in range(len(self.vectors))]
        vectors = _unit_vectors(self._backbone, texts)
        vectors[[not text for text in texts]] = 0.0
        self.vectors.copy_(torch.from_numpy(vectors))

    def train(self, mode: bool = True) -> TranslationGenerator:
        """Forget log Z if the numbers may change now."""
        if mode:
            sizes = {_WORD: len(self.vectors), _SENTENCE: len(self._corpus)}
            self._log_norms = {kind: torch.full((size,), torch.nan) for kind, size in sizes.items()}
        super().train(mode)
        return self

    def log_probabilities(self, units: EncoderUnits, items: Items) -> Tensor:
        """Sum the log-probabilities of the tokens of each target, ``(n,)`` float64."""
        groups: dict[bytes, list[int]] = {}
        for row, target in enumerate(items.targets):
            groups.setdefault(target.tobytes(), []).append(row)
        encoded = self._encode_units(units)
        sums = [
            self._target_sums(encoded, [items.units[row] for row in rows], items.targets[rows[0]])
            for rows in groups.values()
        ]
        order = np.argsort(np.concatenate(list(groups.values())))
        return torch.cat(sums)[torch.from_numpy(order)]

    def _encode_units(self, units: EncoderUnits) -> _EncodedUnits:
        logs = (self.counts / self.counts.sum()).float().log()
        words = np.unique(np.concatenate(units.tokens))
        norms = self._cached_norms(self.vectors[words], words, logs, _WORD)
        rows = np.array(units.keys) >> PLACE_BITS
        sentences = self._unit_sentences(units, rows)
        return _EncodedUnits(
            tokens=units.tokens,
            logs=logs,
            norms=torch.zeros(len(logs)).index_put((torch.from_numpy(words),), norms),
            sentences=sentences,
            sentence_norms=self._cached_norms(sentences, rows, logs, _SENTENCE),
        )

    def _target_sums(
        self, encoded: _EncodedUnits, inputs: Sequence[tuple[int, ...]], target: IntArray
    ) -> Tensor:
        """Sum log-probabilities of one target given each of some tuples of units, ``(n,)``."""
        entries, flat_units = torch.from_numpy(target), np.concatenate(inputs)
        vectors, logs = self.vectors[entries], encoded.logs[entries]
        own, copied, by_word, by_sentence = self.numbers["shares"].softmax(0)
        # First unit of each tuple among all, and first token of each unit.
        sizes = np.array([len(units) for units in inputs])
        firsts = np.cumsum(sizes) - sizes
        bags = [encoded.tokens[unit] for unit in flat_units]
        lengths = np.array([len(bag) for bag in bags])
        starts = np.cumsum(lengths) - lengths
        # c C(token) + w sum_g a(g) T(token | g)
        words, rows = np.unique(np.concatenate(bags), return_inverse=True)
        logits = self._logits(self.vectors[words], vectors, logs, _WORD)
        spread = by_word * (logits - encoded.norms[words][:, None]).exp()
        spread = spread + copied * (torch.from_numpy(words)[:, None] == entries).float()
        weights = (-encoded.logs[words])[:, None] ** self.numbers["rarity"]
        summed = _bags(torch.cat([spread * weights, weights], 1), rows, starts[firsts], "sum")
        # s mean_r S(token | r)
        chosen, rows = np.unique(flat_units, return_inverse=True)
        logits = self._logits(encoded.sentences[chosen], vectors, logs, _SENTENCE)
        table = by_sentence * (logits - encoded.sentence_norms[chosen][:, None]).exp()
        probabilities: Tensor = own * logs.exp() + summed[:, :-1] / summed[:, -1:]
        probabilities = probabilities + _bags(table, rows, firsts, "mean")
        return probabilities.log().double().sum(1)

    def _unit_sentences(self, units: EncoderUnits, rows: IntArray) -> Tensor:
        """Collect vectors of units, ``(u, d)``; those with a row of the corpus are cached."""
        vectors = np.zeros((len(rows), self._corpus.shape[1]), np.float32)
        in_corpus = rows >= 0
        vectors[in_corpus] = self._corpus[rows[in_corpus]]
        if not in_corpus.all():
            tokens = [units.tokens[unit].tolist() for unit in np.flatnonzero(~in_corpus)]
            texts = self._tokenizer.decode_batch(tokens)
            vectors[~in_corpus] = self._recent.embed(texts, partial(_unit_vectors, self._backbone))
        return torch.from_numpy(vectors)

    def _logits(self, vectors: Tensor, entries: Tensor, logs: Tensor, kind: int) -> Tensor:
        """Compute log T or log S of entries, given their vectors, before it is normalized."""
        sharpness, prior = self.numbers["sharpness"][kind].exp(), self.numbers["prior"][kind]
        logits: Tensor = vectors @ entries.T * sharpness + prior * logs
        return logits

    def _cached_norms(self, vectors: Tensor, keys: IntArray, logs: Tensor, kind: int) -> Tensor:
        """Compute log Z of vectors, ``(g,)``; in scoring once for each key that is not -1."""
        if self.training:
            return self._norms(vectors, logs, kind)
        cache, rows = self._log_norms[kind], torch.from_numpy(keys)
        norms = torch.where(rows < 0, torch.nan, cache[rows.clamp(min=0)])
        new = norms.isnan()
        if new.any():
            norms[new] = self._norms(vectors[new], logs, kind)
            cache[rows[new & (rows >= 0)]] = norms[new & (rows >= 0)]
        return norms

    def _norms(self, vectors: Tensor, logs: Tensor, kind: int) -> Tensor:
        """Compute log Z of vectors, ``(g,)``, in parts, each computed again for a gradient."""

        def part_norms(part: Tensor) -> Tensor:
            return self._logits(part, self.vectors, logs, kind).logsumexp(1)

        parts = (
            vectors[first : first + _ROWS_PER_NORMALIZATION]
            for first in range(0, len(vectors), _ROWS_PER_NORMALIZATION)
        )
        return torch.cat([checkpoint(part_norms, part, use_reentrant=False) for part in parts])


def _bags(table: Tensor, rows: IntArray, firsts: IntArray, mode: str) -> Tensor:
    """Sum or average rows of a table, ``(bags, columns)``; a bag ends where the next begins."""
    flat, starts = torch.from_numpy(rows.reshape(-1)), torch.from_numpy(firsts)
    return nn.functional.embedding_bag(flat, table, starts, mode=mode)


@lru_cache(maxsize=1)
def _encoder(name: str) -> SentenceTransformer:
    """Load the frozen encoder, which is not part of the model's weights."""
    from condsim.model.builders import build_bi_encoder, without_progress_bars

    with without_progress_bars():
        return build_bi_encoder(name).to(best_device()).eval()


def _unit_vectors(backbone: str, texts: Sequence[str]) -> FloatArray:
    """Encode texts to unit vectors, ``(n, d)``."""
    vectors: FloatArray = _encoder(backbone).encode(
        list(texts), normalize_embeddings=True, show_progress_bar=False
    )
    return vectors
