"""The light scorer: an exported bi-encoder run by ONNX Runtime, without torch or a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from condsim.errors import ModelError, check_at_least, one_line
from condsim.model.applicability import head_of
from condsim.model.calibration import UNCALIBRATED
from condsim.model.embedding import EmbeddingScorer
from condsim.model.inputs import Input, token_batches
from condsim.model.reading import Tokenized
from condsim.model.session import (
    DOWNLOAD_AGAIN,
    MAX_BATCH_TOKENS,
    TOKENIZER_FILE,
    available_processors,
    open_session,
    open_tokenizer,
    run_batches,
)
from condsim.model.settings import (
    FILE_NAME,
    MODEL_FILE,
    ModelSettings,
    model_folder,
    name_of_folder,
)
from condsim.types import FloatArray, IntArray

# A larger batch is no faster. With several processors batches may be smaller, for an equal load.
MIN_BATCH_TOKENS = 128
BATCHES_PER_THREAD = 4
DEFAULT_MAX_LENGTH = 128


class OnnxScorer(EmbeddingScorer):
    """Scores and encodes with a folder of ``model.onnx``, ``tokenizer.json``, ``condsim.json``.

    It can be pickled and copied: the copy opens the folder again.

    Attributes:
        settings: Settings of the folder.
    """

    folder: Path

    def __init__(self, folder: Path | str, *, threads: int | None = None) -> None:
        """Load the model.

        Args:
            threads: Batches run in parallel, 1 or more; the number of processors if None.

        Raises:
            InputError: If the number of threads is below 1.
            ModelError: If a file is missing or damaged.
        """
        if threads is not None:
            check_at_least(1, threads=threads)
        self.folder = Path(folder).resolve()
        self._requested_threads = threads
        self._threads = threads or available_processors()
        self.settings = settings = ModelSettings.load(folder)
        if settings.kind != "bi-encoder":
            raise ModelError(f"{folder}: an ONNX model must be a bi-encoder; got {settings.kind}.")
        self._limit = settings.max_seq_length or DEFAULT_MAX_LENGTH
        self._tokenizer, self._padding = open_tokenizer(Path(folder, TOKENIZER_FILE), self._limit)
        self._session = open_session(Path(folder, MODEL_FILE), "embedding")
        self._inputs = frozenset(item.name for item in self._session.get_inputs())
        super().__init__(
            name=settings.name,
            order=settings.order,
            dimension=self._find_dimension(folder),
            calibration=settings.calibration or UNCALIBRATED,
        )
        self.head = head_of(Path(folder))

    def _find_dimension(self, folder: Path | str) -> int:
        # The size is a name, such as "unk__1", if the exporter could not tell the number.
        size = self._session.get_outputs()[0].shape[-1]
        stated = self.settings.dimension
        dimension = size if isinstance(size, int) else stated
        if dimension is None or stated not in (None, dimension):
            raise ModelError(
                f"{folder}: the 'dimension' of an embedding must be the same in {FILE_NAME} and "
                f"{MODEL_FILE}; got {stated} and {size}. Download the model again."
            )
        return dimension

    def __reduce__(self) -> tuple[Any, ...]:
        # The default model may be installed elsewhere when it is opened again.
        model = name_of_folder(self.folder)
        changeable = {"name": self.name, "calibration": self.calibration, "head": self.head}
        cache_size = self._cache.size if self._cache else 0
        return _reopen, (model, self._requested_threads, cache_size), changeable

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        return self._embed_long(texts, self._vectors)

    @property
    def _backend_tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def _tokenized(self, inputs: Sequence[Input]) -> Tokenized:
        pairs = [item if isinstance(item, str) else tuple(item) for item in inputs]
        encodings = self._tokenizer.encode_batch_fast(pairs)
        longer = [row for row, encoding in enumerate(encodings) if encoding.overflowing]
        return Tokenized(encodings, longer, self._limit)

    def _vectors(self, encodings: Sequence[Encoding]) -> FloatArray:
        """Embed in batches of similar length; returns (m, dimension)."""
        vectors = np.empty((len(encodings), self.dimension), dtype=np.float32)
        lengths = np.array([len(encoding) for encoding in encodings], dtype=np.int64)

        def fill(batch: IntArray) -> None:
            vectors[batch] = self._run([encodings[row] for row in batch])

        share = int(lengths.sum()) // (BATCHES_PER_THREAD * self._threads)
        tokens = min(MAX_BATCH_TOKENS, max(MIN_BATCH_TOKENS, share))
        # The longest come first, so that no thread ends long after the others.
        batches = list(token_batches(lengths, tokens=tokens))
        run_batches(fill, batches, threads=self._threads)
        return vectors

    def _run(self, encodings: list[Encoding]) -> FloatArray:
        """Run the model on one batch; returns its embeddings, (batch, dimension)."""
        shape = (len(encodings), max(len(encoding) for encoding in encodings))
        features = {
            "input_ids": np.full(shape, self._padding, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
            "token_type_ids": np.zeros(shape, dtype=np.int64),
        }
        for row, encoding in enumerate(encodings):
            length = len(encoding)
            features["input_ids"][row, :length] = encoding.ids
            features["attention_mask"][row, :length] = 1
            features["token_type_ids"][row, :length] = encoding.type_ids
        feed = {name: value for name, value in features.items() if name in self._inputs}
        message = f"The model {self.name!r} cannot run on {shape[1]} tokens"
        advice = f"Its tokenizer or 'max_seq_length' may belong to another model. {DOWNLOAD_AGAIN}"
        with one_line(message, Exception, advice=advice, kind=ModelError):
            vectors: FloatArray = self._session.run(None, feed)[0]
        if vectors.shape != (len(encodings), self.dimension):
            raise ModelError(
                f"The model {self.name!r} must give {len(encodings)} texts embeddings of the shape "
                f"{(len(encodings), self.dimension)}; got {vectors.shape}. {DOWNLOAD_AGAIN}"
            )
        return vectors


def _reopen(model: str, threads: int | None, cache_size: int) -> OnnxScorer:
    """Open the folder of a pickled model."""
    scorer = OnnxScorer(model_folder(model), threads=threads)
    scorer.set_cache_size(cache_size)
    return scorer
