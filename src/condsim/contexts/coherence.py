"""The coherence model: does a sentence fit its context? (Sun et al., 2022, §3.2.1, Eq. 1).

A sentence vector joins the last states of two single-layer LSTMs, one read forwards and one
backwards. The vectors of the sentence and of those around it are concatenated and mapped to one
number, whose sigmoid is p(y = 1 | s_i, s_<i, s_>i). A linear map of a concatenation is a sum of one
map for each place, so each vector is projected once for each place and a context is a sum of four
projections. That is exact, and why a sentence can be scored in 20,000 contexts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from condsim.cache import cached_rows
from condsim.contexts.corpus import Corpus
from condsim.contexts.recipe import MODEL, CoherenceSettings
from condsim.contexts.trainer import best_device, open_finished, restore_weights
from condsim.contexts.vocabulary import Vocabulary
from condsim.io import sha256_of
from condsim.model.precision import uses_bfloat16
from condsim.types import FloatArray, IntArray

# Sentences of similar length that pass through the LSTM together.
_SENTENCES_PER_PASS = 64
_SENTENCES_PER_BLOCK = 4_096
# So many contexts that their units stay in the processor's cache.
_CONTEXTS_PER_BLOCK = 2_048


class CoherenceModel(nn.Module):
    """Eq. 1: an LSTM over the tokens of each sentence, and a head over those of a context."""

    def __init__(self, settings: CoherenceSettings, *, tokens: int, pad: int) -> None:
        super().__init__()
        self.settings = settings
        self.pad = pad
        # The centre is place `left`.
        self.places = settings.left + 1 + settings.right
        size = 2 * settings.hidden
        self.embeddings = nn.Embedding(tokens, settings.embedding, padding_idx=pad)
        self.forwards = nn.LSTM(settings.embedding, settings.hidden, batch_first=True)
        self.backwards = nn.LSTM(settings.embedding, settings.hidden, batch_first=True)
        # The vector of a neighbour beyond a document's end.
        self.missing = nn.Parameter(torch.zeros(size))
        self.width = settings.head_size if settings.head == "mlp" else 1
        bound = (size * self.places) ** -0.5
        self.project = nn.Parameter(torch.empty(self.places, size, self.width))
        nn.init.uniform_(self.project, -bound, bound)
        self.bias = nn.Parameter(torch.zeros(self.width))
        self.output = nn.Linear(self.width, 1) if settings.head == "mlp" else None
        nn.init.normal_(self.embeddings.weight, std=0.1)

    def encode(self, tokens: Sequence[IntArray]) -> Tensor:
        """Compute sentence vectors, ``(m, 2 * hidden)``, of groups of similar length."""
        most = self.settings.max_tokens
        cut = [ids[:most] if len(ids) else np.array([self.pad]) for ids in tokens]
        order = np.argsort([len(ids) for ids in cut], kind="stable")
        starts = range(0, len(order), _SENTENCES_PER_PASS)
        groups = [order[first : first + _SENTENCES_PER_PASS] for first in starts]
        states = [self._encode_group([cut[row] for row in group]) for group in groups]
        if not states:
            return self.missing.new_zeros(0, len(self.missing))
        back = torch.from_numpy(np.argsort(order)).to(self.missing.device)
        return F.dropout(torch.cat(states)[back], self.settings.dropout, self.training)

    def _encode_group(self, tokens: list[IntArray]) -> Tensor:
        # Both LSTMs read from the left, the second one reversed sentences. The state after the last
        # token of each is taken, so that padding behind it has no effect.
        lengths = np.array([len(ids) for ids in tokens])
        padded = np.full((2, len(tokens), lengths.max()), self.pad, dtype=np.int64)
        for row, ids in enumerate(tokens):
            padded[0, row, : len(ids)] = ids
            padded[1, row, : len(ids)] = ids[::-1]
        directions = torch.from_numpy(padded).to(self.missing.device)
        last = torch.from_numpy(lengths - 1).to(self.missing.device)
        rows = torch.arange(len(tokens), device=self.missing.device)
        ends = []
        for lstm, inputs in zip((self.forwards, self.backwards), directions, strict=True):
            embedded = F.dropout(self.embeddings(inputs), self.settings.dropout, self.training)
            states, _ = lstm(embedded)  # (group, length, hidden)
            ends.append(states[rows, last])
        return torch.cat(ends, dim=-1).float()

    def projections(self, vectors: Tensor) -> Tensor:
        """Project vectors and, last, that of no neighbour: ``(places, m + 1, width)``."""
        rows = torch.cat([vectors, self.missing[None].to(vectors.dtype)])
        return torch.matmul(rows, self.project)

    def context(self, projections: Tensor, neighbours: Tensor) -> Tensor:
        """Sum bias and projections of neighbours, (k, left + right), -1 for none: (k, width)."""
        left = self.settings.left
        total = self.bias.expand(len(neighbours), -1)
        for column, rows in enumerate(neighbours.T):
            # The place of the centre is left out, and -1 is the last row.
            total = total + projections[column if column < left else column + 1][rows]
        return total

    def logits(self, contexts: Tensor, centres: Tensor) -> Tensor:
        """Eq. 1 without the sigmoid, (k,); centres are projections, (k, width) or (width,)."""
        total = contexts + centres
        return total[:, 0] if self.output is None else self.output(F.relu(total))[:, 0]


class CoherenceScorer:
    """Log p(y = 1 | s, context) of any sentence in any context of a corpus (Eq. 1).

    The part of each context in the units of the head, ``(n, width)``, is computed once and cached
    next to the model as float16.
    """

    def __init__(
        self, model: CoherenceModel, vocabulary: Vocabulary, contexts: NDArray[np.float16]
    ) -> None:
        self._model, self._vocabulary, self._contexts = model.eval(), vocabulary, contexts

    @classmethod
    def open(
        cls, folder: Path, corpus: Corpus, *, progress: Callable[[int, int], None] | None = None
    ) -> CoherenceScorer:
        """Open a trained model; the first time, the vectors of the corpus are computed."""
        settings, vocabulary = open_finished(
            folder, "coherence", CoherenceSettings, corpus=corpus.revision
        )
        model = CoherenceModel(settings, tokens=len(vocabulary), pad=vocabulary.pad_id)
        restore_weights(model, folder / MODEL)
        model.to(best_device()).eval()
        contexts = cached_rows(
            folder / "contexts.npy",
            partial(_context_units, model, vocabulary, corpus),
            rows=len(corpus),
            inputs={"corpus": corpus.revision, "model": sha256_of(folder / MODEL)[:12]},
            progress=progress,
        )
        return cls(model, vocabulary, contexts)

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Compute the vectors of any m sentences, ``(m, 2 * hidden)``."""
        return _sentence_vectors(self._model, self._vocabulary, sentences)

    def log_probability(self, vectors: FloatArray, centres: IntArray) -> FloatArray:
        """Score m sentences, by their vectors, in k contexts, by their centres: ``(m, k)``."""
        model = self._model
        scores = np.empty((len(vectors), len(centres)), dtype=np.float32)
        with torch.inference_mode():
            inputs = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
            projected = (
                inputs.to(model.missing.device) @ model.project[model.settings.left]
            )  # (m, width)
            for first in range(0, len(centres), _CONTEXTS_PER_BLOCK):
                rows = self._contexts[centres[first : first + _CONTEXTS_PER_BLOCK]]
                contexts = torch.from_numpy(rows).to(model.missing.device).float()  # (block, width)
                for row, sentence in enumerate(projected):
                    values = F.logsigmoid(model.logits(contexts, sentence))
                    scores[row, first : first + len(rows)] = values.cpu().numpy()
        return scores


def _sentence_vectors(
    model: CoherenceModel, vocabulary: Vocabulary, sentences: Sequence[str]
) -> FloatArray:
    vectors = np.empty((len(sentences), 2 * model.settings.hidden), dtype=np.float32)
    autocast = uses_bfloat16(model.settings.precision)
    with (
        torch.inference_mode(),
        torch.autocast(model.missing.device.type, torch.bfloat16, enabled=autocast),
    ):
        for first in range(0, len(sentences), _SENTENCES_PER_BLOCK):
            tokens = vocabulary.encode(sentences[first : first + _SENTENCES_PER_BLOCK])
            vectors[first : first + len(tokens)] = model.encode(tokens).cpu().numpy()
    return vectors


def _context_units(
    model: CoherenceModel, vocabulary: Vocabulary, corpus: Corpus, first: int, last: int
) -> NDArray[np.float16]:
    """Compute the part of the contexts around some sentences in the units, (n, width)."""
    left, right = model.settings.left, model.settings.right
    neighbours = corpus.neighbours(np.arange(first, last, dtype=np.int64), left=left, right=right)
    low, high = max(0, first - left), min(last + right, len(corpus))
    vectors = _sentence_vectors(model, vocabulary, corpus.sentences(range(low, high)))
    near = torch.from_numpy(vectors.astype(np.float16)).to(model.missing.device).float()
    rows = torch.from_numpy(np.where(neighbours < 0, -1, neighbours - low)).to(model.missing.device)
    with torch.inference_mode():
        return model.context(model.projections(near), rows).cpu().numpy().astype(np.float16)
