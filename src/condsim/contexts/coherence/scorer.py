"""Scoring with a trained coherence model: one product for a sentence and all its contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from condsim.contexts.coherence.model import CoherenceModel
from condsim.contexts.corpus import Corpus, Vocabulary
from condsim.contexts.settings import CoherenceSettings
from condsim.contexts.weights import MODEL, best_device, load_weights, open_finished
from condsim.files import sha256_of
from condsim.kept import kept_rows
from condsim.precision import uses_bfloat16
from condsim.types import FloatArray, IntArray

_BLOCK = 2_048  # contexts at a time: their units stay in the processor's cache
_ENCODED = 4_096  # sentences at a time


class CoherenceScorer:
    """Log p(y = 1 | s, context) of any sentence in any context of a corpus (Eq. 1).

    The vectors of all sentences of the corpus, and what each context adds to the units of the
    head, are computed once and kept beside the model as float16.
    """

    def __init__(
        self, model: CoherenceModel, vocabulary: Vocabulary, contexts: NDArray[np.float16]
    ) -> None:
        """Makes a scorer of loaded parts; see :meth:`open`.

        Args:
            contexts: What the context around each sentence of the corpus adds, ``(n, width)``.
        """
        self._model, self._vocabulary, self._contexts = model.eval(), vocabulary, contexts

    @classmethod
    def open(
        cls, folder: Path, corpus: Corpus, *, progress: Callable[[int, int], None] | None = None
    ) -> CoherenceScorer:
        """Opens a trained model; the first time, the vectors of the corpus are computed.

        Args:
            corpus: The corpus it was trained on.
            progress: Called with the sentences done and their number, first for the vectors and
                then for the contexts.

        Raises:
            ModelError: If the folder holds no finished coherence model.
            InputError: If the corpus is another one.
        """
        settings, vocabulary = open_finished(
            folder, "coherence", CoherenceSettings, corpus=corpus.revision
        )
        model = CoherenceModel(settings, tokens=len(vocabulary), pad=vocabulary.pad_id)
        load_weights(model, folder / MODEL)
        model.to(best_device()).eval()
        inputs = {"corpus": corpus.revision, "model": sha256_of(folder / MODEL)[:12]}
        rows = partial(kept_rows, rows=len(corpus), inputs=inputs, progress=progress)

        def encode(first: int, last: int) -> NDArray[np.float16]:
            sentences = corpus.sentences(np.arange(first, last, dtype=np.int64))
            return _encode(model, vocabulary, sentences).astype(np.float16)

        vectors = rows(folder / "vectors.npy", encode)
        contexts = rows(folder / "contexts.npy", partial(_contexts, model, vectors, corpus))
        return cls(model, vocabulary, contexts)

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Computes sentence vectors.

        Args:
            sentences: Any sentences, length m.

        Returns:
            Their vectors, ``(m, 2 * hidden)``.
        """
        return _encode(self._model, self._vocabulary, sentences)

    def log_probability(self, vectors: FloatArray, centres: IntArray) -> FloatArray:
        """Scores sentences in contexts.

        What the contexts add to the units was computed before, so what is left is one projection
        of each sentence, and for each context one sum, ReLU and product with the last weights.

        Args:
            vectors: Sentence vectors, ``(m, 2 * hidden)``.
            centres: The contexts, named by the sentence they surround, ``(k,)``.

        Returns:
            Log p(y = 1) of each sentence in each context, ``(m, k)``; at most 0.
        """
        model = self._model
        scores = np.empty((len(vectors), len(centres)), dtype=np.float32)
        with torch.inference_mode():
            given = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
            projected = given.to(model.device) @ model.project[model.settings.left]  # (m, width)
            for first in range(0, len(centres), _BLOCK):
                rows = self._contexts[centres[first : first + _BLOCK]]
                contexts = torch.from_numpy(rows).to(model.device).float()  # (block, width)
                for row, sentence in enumerate(projected):
                    found = F.logsigmoid(model.logits(contexts, sentence))
                    scores[row, first : first + len(rows)] = found.cpu().numpy()
        return scores


def _encode(model: CoherenceModel, vocabulary: Vocabulary, sentences: Sequence[str]) -> FloatArray:
    found = np.empty((len(sentences), 2 * model.settings.hidden), dtype=np.float32)
    autocast = uses_bfloat16(model.settings.precision)
    with (
        torch.inference_mode(),
        torch.autocast(model.device.type, torch.bfloat16, enabled=autocast),
    ):
        for first in range(0, len(sentences), _ENCODED):
            tokens = vocabulary.encode(sentences[first : first + _ENCODED])
            found[first : first + len(tokens)] = model.encode(tokens).cpu().numpy()
    return found


def _contexts(
    model: CoherenceModel, vectors: NDArray[np.float16], corpus: Corpus, first: int, last: int
) -> NDArray[np.float16]:
    """What the contexts around some sentences add to each unit, ``(last - first, width)``."""
    left, right = model.settings.left, model.settings.right
    neighbours = corpus.neighbours(np.arange(first, last, dtype=np.int64), left=left, right=right)
    low = max(0, first - left)
    near = np.array(vectors[low : last + right])
    with torch.inference_mode():
        projections = model.projections(torch.from_numpy(near).to(model.device).float())
        rows = torch.from_numpy(np.where(neighbours < 0, -1, neighbours - low)).to(model.device)
        return model.context(projections, rows).cpu().numpy().astype(np.float16)
