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
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from condsim.cache import cached_rows
from condsim.model.precision import uses_bfloat16
from condsim.paths import sha256_of
from condsim.types import BoolArray, FloatArray, IntArray
from condsim_contexts.corpus import Corpus
from condsim_contexts.recipe import MODEL, REPORT, VOCABULARY, CoherenceSettings, Head
from condsim_contexts.tokens import CorpusTokens, Vocabulary
from condsim_contexts.trainer import (
    StepProgress,
    Training,
    TrainingSummary,
    best_device,
    finish_folder,
    no_progress,
    open_finished,
    prepare_folder,
    read_report,
    restore_weights,
)

# Sentences of similar length that pass through the LSTM together.
_SENTENCES_PER_PASS = 64
_SENTENCES_PER_BLOCK = 4_096
# So many contexts that their units stay in the processor's cache.
_CONTEXTS_PER_BLOCK = 2_048


class CoherenceModel(nn.Module):
    """Eq. 1: an LSTM over the tokens of each sentence, and a head over the vectors of a context."""

    def __init__(self, settings: CoherenceSettings, *, tokens: int, pad: int) -> None:
        super().__init__()
        self.settings = settings
        self.pad = pad
        # The center is place `left`.
        self.places = settings.left + 1 + settings.right
        size = 2 * settings.hidden
        self.embeddings = nn.Embedding(tokens, settings.embedding, padding_idx=pad)
        self.forwards = nn.LSTM(settings.embedding, settings.hidden, batch_first=True)
        self.backwards = nn.LSTM(settings.embedding, settings.hidden, batch_first=True)
        # The vector of a neighbor beyond a document's end.
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
        """Project vectors and, last, the vector of no neighbor: ``(places, m + 1, width)``."""
        rows = torch.cat([vectors, self.missing[None].to(vectors.dtype)])
        return torch.matmul(rows, self.project)

    def context(self, projections: Tensor, neighbors: Tensor) -> Tensor:
        """Sum bias and projections of neighbors, (k, left + right), -1 for none: (k, width)."""
        left = self.settings.left
        total = self.bias.expand(len(neighbors), -1)
        for column, rows in enumerate(neighbors.T):
            # The place of the center is left out, and -1 is the last row. Unlike indexing, the
            # gradient of F.embedding adds up in the same order every time.
            place = projections[column if column < left else column + 1]
            total = total + F.embedding(rows % len(place), place)
        return total

    def logits(self, contexts: Tensor, centers: Tensor) -> Tensor:
        """Eq. 1 without the sigmoid, (k,); centers are projections, (k, width) or (width,)."""
        total = contexts + centers
        return total[:, 0] if self.output is None else self.output(F.relu(total))[:, 0]


class CoherenceScorer:
    """Log p(y = 1 | s, context) of any sentence in any context of a corpus (Eq. 1).

    The part of each context in the units of the head, ``(n, width)``, is computed once and cached
    next to the model as float16.
    """

    def __init__(
        self, folder: Path, corpus: Corpus, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Open a trained model; the first time, the vectors of the corpus are computed."""
        settings, self._vocabulary = open_finished(
            folder, "coherence", CoherenceSettings, corpus=corpus.revision
        )
        model = CoherenceModel(settings, tokens=len(self._vocabulary), pad=self._vocabulary.pad_id)
        restore_weights(model, folder / MODEL)
        self._model = model.to(best_device()).eval()
        self._contexts: NDArray[np.float16] = cached_rows(
            folder / "contexts.npy",
            partial(self._context_units, corpus),
            rows=len(corpus),
            inputs={"corpus": corpus.revision, "model": sha256_of(folder / MODEL)[:12]},
            progress=progress,
        )

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Compute the vectors of any m sentences, ``(m, 2 * hidden)``."""
        model = self._model
        vectors = np.empty((len(sentences), 2 * model.settings.hidden), dtype=np.float32)
        half = uses_bfloat16(model.settings.precision)
        autocast = torch.autocast(model.missing.device.type, torch.bfloat16, enabled=half)
        with torch.inference_mode(), autocast:
            for first in range(0, len(sentences), _SENTENCES_PER_BLOCK):
                tokens = self._vocabulary.encode(sentences[first : first + _SENTENCES_PER_BLOCK])
                vectors[first : first + len(tokens)] = model.encode(tokens).cpu().numpy()
        return vectors

    def _context_units(self, corpus: Corpus, first: int, last: int) -> NDArray[np.float16]:
        """Compute the part of the contexts around some sentences in the units, (n, width)."""
        model = self._model
        left, right, device = model.settings.left, model.settings.right, model.missing.device
        neighbors = corpus.neighbors(np.arange(first, last), left=left, right=right)
        low, high = max(0, first - left), min(last + right, len(corpus))
        vectors = self.encode(corpus.sentences(range(low, high)))
        near = torch.from_numpy(vectors.astype(np.float16)).to(device).float()
        rows = torch.from_numpy(np.where(neighbors < 0, -1, neighbors - low)).to(device)
        with torch.inference_mode():
            return model.context(model.projections(near), rows).cpu().numpy().astype(np.float16)

    def log_probability(self, vectors: FloatArray, centers: IntArray) -> FloatArray:
        """Score m sentences, by their vectors, in k contexts, by their centers: ``(m, k)``."""
        model = self._model
        scores = np.empty((len(vectors), len(centers)), dtype=np.float32)
        with torch.inference_mode():
            inputs = torch.from_numpy(vectors).to(model.missing.device)
            projected = inputs @ model.project[model.settings.left]  # (m, width)
            for first in range(0, len(centers), _CONTEXTS_PER_BLOCK):
                rows = self._contexts[centers[first : first + _CONTEXTS_PER_BLOCK]]
                contexts = torch.from_numpy(rows).to(model.missing.device).float()  # (block, width)
                for row, sentence in enumerate(projected):
                    values = F.logsigmoid(model.logits(contexts, sentence))
                    scores[row, first : first + len(rows)] = values.cpu().numpy()
        return scores


class Passages(NamedTuple):
    """Runs of consecutive centers of one document and the sentences around them, each ``(r,)``.

    ``first`` and ``last`` are the first center and one past the last; ``low`` and ``high`` are the
    first sentence, up to `left` before the first center, and one past the last sentence.
    """

    first: IntArray
    last: IntArray
    low: IntArray
    high: IntArray

    @property
    def sizes(self) -> IntArray:
        """Number of sentences of each passage, ``(r,)``."""
        return self.high - self.low

    @classmethod
    def of_documents(
        cls, starts: IntArray, chosen: BoolArray, *, most: int, left: int, right: int
    ) -> Passages:
        """Cut documents of two sentences or more into passages of about equal length.

        ``starts`` are the first sentences of documents, then n, (d + 1,); ``chosen`` is (d,).
        """
        rows: list[tuple[int, int, int, int]] = []
        for document in np.flatnonzero(chosen & (np.diff(starts) >= 2)):
            begin, end = int(starts[document]), int(starts[document + 1])
            cuts = np.linspace(begin, end, -(-(end - begin) // most) + 1).round().astype(int)
            for first, last in pairwise(cuts.tolist()):
                rows.append((first, last, max(begin, first - left), min(end, last + right)))
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


class PassageBatch(NamedTuple):
    """Sentences of some passages, each once, and the rows of them that make up k examples.

    ``sentences``, (b,), are rows of the corpus; ``neighbors``, (k, left + right), are -1 where the
    document ends; ``replacements``, (k,), take the place of ``centers`` in counter-examples, and
    ``same_document`` says whether they are from the same document.
    """

    sentences: IntArray
    neighbors: IntArray
    centers: IntArray
    replacements: IntArray
    same_document: BoolArray


def make_batch(
    passages: Passages, chosen: IntArray, random: np.random.Generator, *, left: int, right: int
) -> PassageBatch:
    """Make one example and one counter-example of each center of some passages."""
    # Half of the replacements are of the center's passage, so of its document; half of the other
    # passages of the batch. As these are drawn from the whole corpus, they are random sentences of
    # it, and every sentence is still encoded once only. A batch of one passage takes all from it.
    offsets = np.concatenate([[0], np.cumsum(passages.sizes[chosen])])
    total = int(offsets[-1])
    around = np.array([*range(-left, 0), *range(1, right + 1)])
    parts: list[PassageBatch] = []
    for passage, offset, after in zip(chosen, offsets[:-1], offsets[1:], strict=True):
        size, low = int(after - offset), passages.low[passage]
        inside = np.arange(passages.first[passage], passages.last[passage]) - low
        near = inside[:, None] + around
        neighbors = np.where((near >= 0) & (near < size), near + offset, -1)
        from_document = (random.permutation(len(inside)) % 2 == 0) | (total == size)
        # Any sentence of the passage but the center.
        same = random.integers(0, size - 1, len(inside))
        same += (same >= inside) + offset
        # Any sentence of the batch outside the passage.
        elsewhere = random.integers(0, max(1, total - size), len(inside))
        elsewhere += np.where(elsewhere >= offset, size, 0)
        replacements = np.where(from_document, same, elsewhere)
        sentences = np.arange(low, passages.high[passage])
        parts.append(
            PassageBatch(sentences, neighbors, inside + offset, replacements, from_document)
        )
    return PassageBatch(*map(np.concatenate, zip(*parts, strict=True)))


class CoherenceReport(TrainingSummary, allow_inf_nan=True):
    """Accuracy at telling sentences from their replacements, on held-out documents.

    As many replacements as sentences are judged, so chance is 0.5. The evaluations are accuracies.
    ``document`` and ``corpus`` count the ``examples`` whose replacement is from the same
    document or from another one.
    """

    head: Head
    accuracy: float
    accuracy_document: float
    accuracy_corpus: float
    examples: int
    documents: int
    held_out_documents: int

    def summary(self) -> str:
        """Describe the accuracy in one line."""
        return (
            f"coherence ({self.head} head): accuracy {100 * self.accuracy:.1f} on "
            f"{self.held_out_documents} held-out documents (replacement from the same document "
            f"{100 * self.accuracy_document:.1f}, from another {100 * self.accuracy_corpus:.1f}; "
            "chance 50)"
        )


class CoherenceWork:
    """Passages to train a coherence model on, and held-out ones; see `TrainingWork`."""

    def __init__(self, model: CoherenceModel, corpus: Corpus, tokens: CorpusTokens) -> None:
        settings = model.settings
        self._model, self._tokens, self._settings = model, tokens, settings
        held_out = corpus.held_out_documents(share=settings.held_out, seed=settings.seed)
        self.documents, self.held_out_documents = int((~held_out).sum()), int(held_out.sum())
        cut = partial(
            Passages.of_documents,
            corpus.document_starts,
            most=settings.run_sentences,
            left=settings.left,
            right=settings.right,
        )
        self._passages, self._held_out = cut(~held_out), cut(held_out)
        self.tokens_seen = 0

    def batches(self, epoch: int) -> list[IntArray]:
        """Shuffle the training passages of an epoch into batches."""
        random = np.random.default_rng((self._settings.seed, 2, epoch))
        return self._shuffled(self._passages, random)

    def _shuffled(self, passages: Passages, random: np.random.Generator) -> list[IntArray]:
        order = random.permutation(len(passages.first))
        ends, size = [], 0
        for end, added in enumerate(passages.sizes[order].tolist(), start=1):
            size += added
            if size >= self._settings.batch_sentences:
                ends.append(end)
                size = 0
        return [batch for batch in np.split(order, ends) if len(batch)]

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Compute the cross-entropy of sentences against replacements."""
        logits, targets, _ = self._forward(self._passages, batch, random)
        return F.binary_cross_entropy_with_logits(logits, targets)

    def evaluate(self) -> float:
        """Measure the accuracy on held-out documents."""
        return float(self.held_out_hits()[0].mean())

    def held_out_hits(self) -> tuple[Tensor, Tensor]:
        """Judge held-out examples, with the same replacements at every call.

        Returns 1 for each that is judged rightly, and whether its replacement is from the same
        document, both ``(n,)``.
        """
        settings = self._settings
        random = np.random.default_rng((settings.seed, 3))
        batches = self._shuffled(self._held_out, random)
        hits: list[Tensor] = []
        same_document: list[Tensor] = []
        for batch in batches[: max(1, settings.held_out_sentences // settings.batch_sentences)]:
            logits, targets, same = self._forward(self._held_out, batch, random)
            hits.append(((logits > 0) == (targets > 0)).float())
            same_document.append(same)
        return torch.cat(hits), torch.cat(same_document)

    def _forward(
        self, passages: Passages, chosen: IntArray, random: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute logits, targets and whether the replacement is from the document, ``(2 k,)``."""
        model, settings = self._model, self._settings
        batch = make_batch(passages, chosen, random, left=settings.left, right=settings.right)
        tokens = self._tokens.take(batch.sentences, most=settings.max_tokens)
        if model.training:
            self.tokens_seen += sum(map(len, tokens))
        projections = model.projections(model.encode(tokens))
        device = model.missing.device
        contexts = model.context(projections, torch.from_numpy(batch.neighbors).to(device))
        center = projections[settings.left]
        rows = [torch.from_numpy(rows).to(device) for rows in (batch.centers, batch.replacements)]
        logits = torch.cat([model.logits(contexts, center[row]) for row in rows]).float()
        targets = torch.zeros_like(logits)
        targets[: len(batch.centers)] = 1
        return logits, targets, torch.from_numpy(np.tile(batch.same_document, 2)).to(device)


def train_coherence(
    corpus: Corpus,
    vocabulary: Vocabulary,
    folder: Path,
    settings: CoherenceSettings,
    *,
    progress: StepProgress = no_progress,
) -> CoherenceReport:
    """Train the coherence model, continue a killed training, or read a finished one."""
    prepare_folder(
        folder, "coherence", settings, corpus=corpus.revision, vocabulary=vocabulary.revision
    )
    if (folder / REPORT).is_file():
        return read_report(CoherenceReport, folder)
    vocabulary.save(folder / VOCABULARY)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        model = CoherenceModel(settings, tokens=len(vocabulary), pad=vocabulary.pad_id)
    work = CoherenceWork(model.to(best_device()), corpus, CorpusTokens.build(corpus, vocabulary))
    summary = Training(model, work, folder, settings, settings.learning_rate).run(progress)
    with torch.inference_mode():
        hits, same_document = work.held_out_hits()
    report = CoherenceReport(
        head=settings.head,
        accuracy=float(hits.mean()),
        accuracy_document=float(hits[same_document].mean()),
        accuracy_corpus=float(hits[~same_document].mean()),
        examples=len(hits),
        documents=work.documents,
        held_out_documents=work.held_out_documents,
        **dict(summary),
    )
    finish_folder(folder, model, report)
    return report
