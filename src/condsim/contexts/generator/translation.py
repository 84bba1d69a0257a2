"""A generator for which what an encoder reads in a context stands for words like it."""

# Counts know a word of the context only where it comes again. A *translation* model (Berger and
# Lafferty, 1999; by word vectors, Zuccon et al., 2015) spreads it over the vocabulary, and here
# each given sentence as a whole as well:
#
#     p(token | given) = o p(token) + c C(token) + w sum_g a(g) T(token | g) + s mean_r S(token | r)
#     T(token | g) = p(token)^α exp(cos(token, g) / τ) / Z(g),   a(g) = (-log p(g))^β / sum
#
# p is the share in the corpus, g each token of the given sentences, C the sum of a(g) over the g
# that are the token, r each given sentence, S is T with numbers α' and τ' of its own; o + c + w + s
# is 1, so over the vocabulary it sums to one. The vectors are those of a frozen encoder, of each
# entry of the vocabulary by itself and of each sentence. The eight numbers maximise the likelihood
# of the corpus: no label is seen. Not part of SSBC.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from condsim.cache import RecentVectors, kept_rows
from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.corpus.vocabulary import Vocabulary
from condsim.contexts.generator.counts import CountsGenerator
from condsim.contexts.generator.items import PLACE_BITS, Items, Units
from condsim.contexts.models import MODEL, StepProgress, best_device, copy_weights, read_tensors
from condsim.contexts.settings import GeneratorSettings
from condsim.io import sha256_of
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_START = {
    "sharpness": [math.log(1 / 0.09)] * 2,  # log 1/τ of tokens and of sentences
    "prior": [0.9, 0.9],  # α
    "rarity": [1.0],  # β
    "shares": [0.0, -2.0, 0.0, 0.0],  # logits of o, c, w and s
}
_ROWS = 512  # normalised at a time
_RECENT = 4_096  # vectors of sentences that were given, kept for the next slab of pairs
_WORD, _SENTENCE = 0, 1


class TranslationGenerator(CountsGenerator):
    """Counts, vectors, and the numbers that are fitted."""

    def __init__(self, settings: GeneratorSettings, vocabulary: Vocabulary, *, width: int) -> None:
        """Makes a model of no counts and no vectors, d is ``width``; see `new` and `open`."""
        super().__init__(settings, vocabulary)
        # unit vectors of the entries of the vocabulary, (v, d); 0 for special tokens
        self.vectors: Tensor
        self.register_buffer("vectors", torch.zeros(len(vocabulary), width))
        self.numbers = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(values)) for name, values in _START.items()}
        )
        self._tokenizer, self._backbone = vocabulary.tokenizer, str(settings.backbone)
        self._corpus: NDArray[Any] = np.zeros((0, width), np.float16)
        self._recent = RecentVectors(_RECENT, width)
        self._kept: dict[int, Tensor] = {}  # log Z of all tokens, and of all sentences

    @classmethod
    def new(cls, settings: GeneratorSettings, vocabulary: Vocabulary) -> TranslationGenerator:
        """Reads each entry of the vocabulary by itself."""
        texts = [vocabulary.tokenizer.decode([entry]).strip() for entry in range(len(vocabulary))]
        special = [not text for text in texts]
        vectors = _vectors(str(settings.backbone), texts)
        vectors[special] = 0.0
        model = cls(settings, vocabulary, width=vectors.shape[1])
        model.vectors.copy_(torch.from_numpy(vectors))
        return model

    @classmethod
    def open(
        cls, settings: GeneratorSettings, vocabulary: Vocabulary, corpus: Corpus, folder: Path
    ) -> TranslationGenerator:
        """Opens a fitted model, with what it read of the corpus."""
        tensors, _ = read_tensors(folder / MODEL)
        model = cls(settings, vocabulary, width=tensors["vectors"].shape[1])
        copy_weights(model, tensors, source=folder / MODEL)
        model.read(corpus, folder)
        model.eval().keep_normalisers(folder)
        return model

    def read(self, corpus: Corpus, folder: Path, *, progress: StepProgress | None = None) -> None:
        """Reads all sentences of a corpus, or opens their vectors, which the folder keeps."""

        def read(first: int, last: int) -> NDArray[np.float16]:
            sentences = corpus.sentences(np.arange(first, last, dtype=np.int64))
            return _vectors(self._backbone, sentences).astype(np.float16)

        inputs = {"corpus": corpus.revision, "backbone": self._backbone}
        path = folder / "sentences.npy"
        self._corpus = kept_rows(
            path, read, rows=len(corpus), block=1_024, inputs=inputs, progress=progress
        )

    def keep_normalisers(self, folder: Path, *, progress: StepProgress | None = None) -> None:
        """Computes log Z of all tokens and sentences, or opens what the folder keeps."""
        # Scoring needs them all sooner or later, and each is a sum over the vocabulary.
        logs, inputs = self._logs(), {"model": sha256_of(folder / MODEL)[:12]}
        both = ((_WORD, "words", self.vectors.numpy()), (_SENTENCE, "sentences", self._corpus))
        for of, name, vectors in both:

            def norms(
                first: int, last: int, of: int = of, vectors: NDArray[Any] = vectors
            ) -> FloatArray:
                given = torch.from_numpy(vectors[first:last].astype(np.float32))
                return self._norms(given, logs, of).numpy()[:, None]

            path = folder / f"normalisers-{name}.npy"
            with torch.inference_mode():
                kept = kept_rows(path, norms, rows=len(vectors), inputs=inputs, progress=progress)
            self._kept[of] = torch.from_numpy(np.array(kept[:, 0]))

    def train(self, mode: bool = True) -> TranslationGenerator:
        """Forgets the normalisers that were kept if the numbers may change now."""
        if mode:
            self._kept.clear()
        super().train(mode)
        return self

    def loss(self, units: Units, items: Items) -> Tensor:
        """Mean negative log-probability of the target tokens, a scalar."""
        return -self.log_probabilities(units, items).sum() / sum(map(len, items.targets))

    def log_probabilities(self, units: Units, items: Items) -> Tensor:
        """Sums of log-probabilities over the tokens of each target, ``(n,)`` float64."""
        groups: dict[bytes, list[int]] = {}
        for row, target in enumerate(items.targets):
            groups.setdefault(target.tobytes(), []).append(row)
        read = self._read_units(units)
        found = [
            self._of_target(read, [items.units[row] for row in rows], items.targets[rows[0]])
            for rows in groups.values()
        ]
        order = np.argsort(np.concatenate(list(groups.values())))
        return torch.cat(found)[torch.from_numpy(order)]

    def _read_units(self, units: Units) -> _Read:
        logs = self._logs()
        words = np.unique(np.concatenate(units.tokens))
        norms = self._normalised(self.vectors[words], words, logs, _WORD)
        keys = np.array(units.keys) >> PLACE_BITS
        sentences = self._sentences(units, keys)
        return _Read(
            tokens=units.tokens,
            logs=logs,
            norms=torch.zeros(len(logs)).index_put((torch.from_numpy(words),), norms),
            sentences=sentences,
            sentence_norms=self._normalised(sentences, keys, logs, _SENTENCE),
        )

    def _of_target(self, read: _Read, given: Sequence[tuple[int, ...]], target: IntArray) -> Tensor:
        """Sums of log-probabilities of one target given each of some tuples of units, ``(n,)``."""
        wanted, used = torch.from_numpy(target), np.concatenate(given)
        sizes = np.array([len(one) for one in given])
        firsts = np.cumsum(sizes) - sizes  # of each tuple among the units
        bags = [read.tokens[unit] for unit in used]
        lengths = np.array([len(bag) for bag in bags])
        words, places = np.unique(np.concatenate(bags), return_inverse=True)
        own, copied, by_word, by_sentence = self.numbers["shares"].softmax(0)
        spread = by_word * self._chances(
            self.vectors[words], wanted, read.logs, read.norms[words], _WORD
        )
        spread = spread + copied * (torch.from_numpy(words)[:, None] == wanted).float()
        weights = (-read.logs[words])[:, None] ** self.numbers["rarity"]
        table = torch.cat([spread * weights, weights], 1)
        summed = _bags(table, places, (np.cumsum(lengths) - lengths)[firsts], "sum")
        chosen, places = np.unique(used, return_inverse=True)
        whole = by_sentence * self._chances(
            read.sentences[chosen], wanted, read.logs, read.sentence_norms[chosen], _SENTENCE
        )
        chances: Tensor = own * read.logs[wanted].exp() + summed[:, :-1] / summed[:, -1:]
        return (chances + _bags(whole, places, firsts, "mean")).log().double().sum(1)

    def _logs(self) -> Tensor:
        return (self.counts / self.counts.sum()).float().log()

    def _sentences(self, units: Units, rows: IntArray) -> Tensor:
        """Vectors of units, ``(u, d)``; those with a row of the corpus were read before."""
        found = np.zeros((len(rows), self._corpus.shape[1]), np.float32)
        known = rows >= 0
        found[known] = self._corpus[rows[known]]
        if not known.all():
            tokens = [units.tokens[unit].tolist() for unit in np.flatnonzero(~known)]
            texts = self._tokenizer.decode_batch(tokens)
            found[~known] = self._recent.embed(texts, partial(_vectors, self._backbone))
        return torch.from_numpy(found)

    def _chances(
        self, given: Tensor, wanted: Tensor, logs: Tensor, norms: Tensor, of: int
    ) -> Tensor:
        """T or S of entries by each vector, ``(g, w)``."""
        found = self._logits(given, self.vectors[wanted], logs[wanted], of) - norms[:, None]
        return found.exp()

    def _logits(self, given: Tensor, vectors: Tensor, logs: Tensor, of: int) -> Tensor:
        """Logarithm of T or S of entries before it is normalised, ``(g, w)``."""
        sharpness, prior = self.numbers["sharpness"][of].exp(), self.numbers["prior"][of]
        found: Tensor = given @ vectors.T * sharpness + prior * logs
        return found

    def _normalised(self, given: Tensor, keys: IntArray, logs: Tensor, of: int) -> Tensor:
        """Logarithms of Z of vectors, ``(g,)``; those with a key from 0 on may be kept."""
        kept = self._kept.get(of)
        if kept is None:
            return self._norms(given, logs, of)
        found = kept[torch.from_numpy(np.maximum(keys, 0))]
        new = torch.from_numpy(keys < 0)
        if new.any():
            found[new] = self._norms(given[new], logs, of)
        return found

    def _norms(self, given: Tensor, logs: Tensor, of: int) -> Tensor:
        """Log Z of vectors, ``(g,)``, in parts; a gradient has each part computed anew."""

        def of_part(part: Tensor) -> Tensor:
            return self._logits(part, self.vectors, logs, of).logsumexp(1)

        firsts = range(0, len(given), _ROWS)
        parts = (given[first : first + _ROWS] for first in firsts)
        return torch.cat([checkpoint(of_part, part, use_reentrant=False) for part in parts])


def _bags(table: Tensor, places: IntArray, firsts: IntArray, mode: str) -> Tensor:
    """Sums or means of rows of a table, ``(bags, columns)``; a bag ends where the next begins."""
    rows, starts = torch.from_numpy(places.reshape(-1)), torch.from_numpy(firsts)
    found: Tensor = nn.functional.embedding_bag(rows, table, starts, mode=mode)
    return found


@dataclass(frozen=True, eq=False)
class _Read:
    """What is known of some units."""

    tokens: Sequence[IntArray]
    logs: Tensor  # (v,), log p
    norms: Tensor  # (v,), log Z of each token among them
    sentences: Tensor  # (u, d)
    sentence_norms: Tensor  # (u,)


@lru_cache(maxsize=1)
def _encoder(name: str) -> SentenceTransformer:
    """The frozen encoder, which is no part of the model's weights."""
    from condsim.model.backbone import without_progress_bars
    from condsim.model.builders import build_bi_encoder

    with without_progress_bars():
        return build_bi_encoder(name).to(best_device()).eval()


def _vectors(backbone: str, texts: Sequence[str]) -> FloatArray:
    """Unit vectors of texts, ``(n, d)``."""
    found: FloatArray = _encoder(backbone).encode(
        list(texts), normalize_embeddings=True, show_progress_bar=False
    )
    return found
