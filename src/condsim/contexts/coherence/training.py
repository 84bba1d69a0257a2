"""Training the coherence model, and its accuracy on held-out documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from condsim.contexts.coherence.model import CoherenceModel
from condsim.contexts.corpus.stored import Corpus, document_starts, held_out_documents
from condsim.contexts.corpus.vocabulary import CorpusTokens, Vocabulary
from condsim.contexts.models import (
    REPORT,
    VOCABULARY,
    StepProgress,
    TrainingSummary,
    best_device,
    finish_folder,
    prepare_folder,
    read_report,
    train_model,
)
from condsim.contexts.settings import CoherenceSettings, Head
from condsim.types import BoolArray, IntArray


@dataclass(frozen=True)
class Passages:
    """Runs of consecutive centres of one document and the sentences around them, each ``(r,)``."""

    first: IntArray  # first centre
    last: IntArray  # one past the last centre
    low: IntArray  # first sentence: up to `left` before the first centre
    high: IntArray  # one past the last sentence

    def __len__(self) -> int:
        return len(self.first)

    @property
    def sizes(self) -> IntArray:
        """Sentences of each passage, ``(r,)``."""
        return self.high - self.low

    @classmethod
    def of_documents(
        cls, starts: IntArray, chosen: BoolArray, *, most: int, left: int, right: int
    ) -> Passages:
        """Cuts documents of two sentences or more into passages of about equal length."""
        # ``starts``: first sentence of each document, and n, (d + 1,); ``chosen``: (d,).
        rows: list[tuple[int, int, int, int]] = []
        for document in np.flatnonzero(chosen & (np.diff(starts) >= 2)):
            begin, end = int(starts[document]), int(starts[document + 1])
            cuts = np.linspace(begin, end, -(-(end - begin) // most) + 1).round().astype(int)
            for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                rows.append((first, last, max(begin, first - left), min(end, last + right)))
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)

    def batches(self, order: IntArray, *, sentences: int) -> list[IntArray]:
        """Puts passages together until a batch has enough sentences."""
        batches: list[IntArray] = []
        begin = size = 0
        for end, added in enumerate(self.sizes[order].tolist(), start=1):
            size += added
            if size >= sentences or end == len(order):
                batches.append(order[begin:end])
                begin, size = end, 0
        return batches


@dataclass(frozen=True)
class Batch:
    """Sentences of some passages, each once, and the rows of them that make up k examples."""

    sentences: IntArray  # (b,), rows of the corpus
    neighbours: IntArray  # (k, left + right), -1 where the document ends
    centres: IntArray  # (k,)
    replacements: IntArray  # (k,), what is put in the centre's place
    same_document: BoolArray  # (k,), whether the replacement is from the same document


def batch_of(
    passages: Passages, chosen: IntArray, random: np.random.Generator, *, left: int, right: int
) -> Batch:
    """Makes one example and one counter-example of each centre of some passages."""
    # Half of the replacements are of the centre's passage, so of its document; half of the other
    # passages of the batch. As these are drawn from the whole corpus, they are random sentences of
    # it, and every sentence is still encoded once only. A batch of one passage takes all from it.
    offsets = np.concatenate([[0], np.cumsum(passages.sizes[chosen])])
    total = int(offsets[-1])
    around = np.array([*range(-left, 0), *range(1, right + 1)])
    parts: list[tuple[IntArray, IntArray, IntArray, IntArray, BoolArray]] = []
    for passage, offset, after in zip(chosen, offsets[:-1], offsets[1:], strict=True):
        size, low = int(after - offset), passages.low[passage]
        inside = np.arange(passages.first[passage], passages.last[passage]) - low
        near = inside[:, None] + around
        neighbours = np.where((near >= 0) & (near < size), near + offset, -1)
        from_document = (random.permutation(len(inside)) % 2 == 0) | (total == size)
        other = random.integers(0, size - 1, len(inside))
        other += (other >= inside) + offset  # any of the passage but the centre
        elsewhere = random.integers(0, max(1, total - size), len(inside))
        elsewhere += np.where(elsewhere >= offset, size, 0)  # any but those of the passage
        replacements = np.where(from_document, other, elsewhere)
        sentences = np.arange(low, passages.high[passage])
        parts.append((sentences, neighbours, inside + offset, replacements, from_document))
    return Batch(*map(np.concatenate, zip(*parts, strict=True)))


class CoherenceReport(TrainingSummary, allow_inf_nan=True):
    """How well the model tells sentences from their replacements, on held-out documents.

    As many replacements as sentences are judged, so chance is 0.5. The evaluations are accuracies.
    """

    head: Head  # the head trained
    accuracy: float  # share judged rightly, [0, 1]
    accuracy_document: float  # the same where the replacement is from the same document
    accuracy_corpus: float  # the same where it is from another one
    examples: int  # examples judged
    documents: int  # documents trained on
    held_out_documents: int

    @classmethod
    def read(cls, folder: Path) -> CoherenceReport:
        """Reads the report of a finished training.

        Raises:
            InputError: If there is none, or it is damaged.
        """
        return read_report(cls, folder)

    def summary(self) -> str:
        """Says in one line how well the model does."""
        return (
            f"coherence ({self.head} head): accuracy {100 * self.accuracy:.1f} on "
            f"{self.held_out_documents} held-out documents (replacement from the same document "
            f"{100 * self.accuracy_document:.1f}, from another {100 * self.accuracy_corpus:.1f}; "
            "chance 50)"
        )


class CoherenceWork:
    """What a coherence model is trained on; see `TrainingWork`."""

    def __init__(self, model: CoherenceModel, corpus: Corpus, tokens: CorpusTokens) -> None:
        settings = model.settings
        self._model, self._tokens = model, tokens
        starts = document_starts(corpus)
        held_out = held_out_documents(starts, share=settings.held_out, seed=settings.seed)
        self._passages, self._held_out = (
            Passages.of_documents(
                starts,
                chosen,
                most=settings.run_sentences,
                left=settings.left,
                right=settings.right,
            )
            for chosen in (~held_out, held_out)
        )
        self.documents, self.held_out_documents = int((~held_out).sum()), int(held_out.sum())
        self.tokens_seen = 0

    def batches(self, epoch: int) -> list[IntArray]:
        """Training passages in an order drawn anew each epoch."""
        settings = self._model.settings
        order = np.random.default_rng((settings.seed, 2, epoch)).permutation(len(self._passages))
        return self._passages.batches(order, sentences=settings.batch_sentences)

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Cross-entropy of sentences against replacements."""
        logits, targets, _ = self._forward(self._passages, batch, random)
        return F.binary_cross_entropy_with_logits(logits, targets)

    def evaluate(self) -> float:
        """Accuracy on held-out documents."""
        return self.accuracy()[0]

    def accuracy(self) -> tuple[float, float, float, int]:
        """Accuracy on held-out documents, with the same replacements at every call."""
        settings = self._model.settings
        random = np.random.default_rng((settings.seed, 3))
        order = random.permutation(len(self._held_out))
        batches = self._held_out.batches(order, sentences=settings.batch_sentences)
        right: list[Tensor] = []
        kinds: list[Tensor] = []
        for batch in batches[: max(1, settings.held_out_sentences // settings.batch_sentences)]:
            logits, targets, same = self._forward(self._held_out, batch, random)
            right.append(((logits > 0) == (targets > 0)).float())
            kinds.append(same)
        hits, document = torch.cat(right), torch.cat(kinds)
        parts = (hits, hits[document], hits[~document])
        overall, inside, outside = (float(part.mean()) for part in parts)
        return overall, inside, outside, len(hits)

    def _forward(
        self, passages: Passages, chosen: IntArray, random: np.random.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, targets and whether the replacement is from the same document, ``(2 k,)``."""
        model, settings = self._model, self._model.settings
        batch = batch_of(passages, chosen, random, left=settings.left, right=settings.right)
        tokens = self._tokens.take(batch.sentences, most=settings.max_tokens)
        if model.training:
            self.tokens_seen += sum(map(len, tokens))
        projections = model.projections(model.encode(tokens))
        device = model.device
        contexts = model.context(projections, torch.from_numpy(batch.neighbours).to(device))
        centre = projections[settings.left]
        rows = [torch.from_numpy(rows).to(device) for rows in (batch.centres, batch.replacements)]
        logits = torch.cat([model.logits(contexts, centre[row]) for row in rows]).float()
        targets = torch.zeros_like(logits)
        targets[: len(batch.centres)] = 1
        return logits, targets, torch.from_numpy(np.tile(batch.same_document, 2)).to(device)


def train_coherence(
    corpus: Corpus,
    vocabulary: Vocabulary,
    folder: Path,
    settings: CoherenceSettings,
    *,
    progress: StepProgress | None = None,
) -> CoherenceReport:
    """Trains the coherence model, goes on with a killed training, or reads a finished one."""
    prepare_folder(
        folder, "coherence", settings, corpus=corpus.revision, vocabulary=vocabulary.revision
    )
    if (folder / REPORT).is_file():
        return CoherenceReport.read(folder)
    vocabulary.save(folder / VOCABULARY)
    tokens = CorpusTokens.build(corpus, vocabulary)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        model = CoherenceModel(settings, tokens=len(vocabulary), pad=vocabulary.pad_id)
    work = CoherenceWork(model.to(best_device()), corpus, tokens)
    summary = train_model(
        model, work, folder, settings, learning_rate=settings.learning_rate, progress=progress
    )
    with torch.inference_mode():
        accuracy, inside, outside, examples = work.accuracy()
    report = CoherenceReport(
        head=settings.head,
        accuracy=accuracy,
        accuracy_document=inside,
        accuracy_corpus=outside,
        examples=examples,
        documents=work.documents,
        held_out_documents=work.held_out_documents,
        **dict(summary),
    )
    finish_folder(folder, model, report)
    return report
