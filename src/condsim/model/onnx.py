"""The light scorer: an exported bi-encoder run by ONNX Runtime, no torch, no network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from condsim.errors import InputError, ModelError
from condsim.model.applicability import head_of
from condsim.model.base import token_batches
from condsim.model.calibration import UNCALIBRATED
from condsim.model.embedding import EmbeddingScorer, Input, Splitter, Tokenised
from condsim.model.settings import FILE_NAME, Settings
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from tokenizers import Encoding

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"

_TOKENS = 512  # of a batch, padding included: more is no faster
_SHARE, _FEWEST_TOKENS = 4, 128  # batches for each processor, where they are not smaller than that
_DEFAULT_LENGTH = 128  # tokens, where the model does not say


class OnnxScorer(EmbeddingScorer):
    """Scores and encodes with a folder of ``model.onnx``, ``tokenizer.json``, ``condsim.json``.

    Attributes:
        settings: What the folder says of the model.
    """

    def __init__(self, folder: Path | str, *, threads: int | None = None) -> None:
        """Loads the model.

        Args:
            threads: Batches run side by side, 1 or more; as many as there are processors if None.

        Raises:
            InputError: If the number of threads is below 1.
            ModelError: If a file is missing or damaged.
        """
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise InputError(f"The number of 'threads' must be 1 or more. Got {threads!r} instead.")
        folder = Path(folder)
        self.settings = Settings.load(folder)
        if self.settings.kind != "bi-encoder":
            raise ModelError(
                f"{folder} says it is a {self.settings.kind}; an ONNX model must be a bi-encoder."
            )
        self._limit = self.settings.max_seq_length or _DEFAULT_LENGTH
        self._tokenizer, self._padding = _load_tokenizer(folder / TOKENIZER_FILE, self._limit)
        self._threads = threads or _processors()
        self._session = _load_session(folder / MODEL_FILE)
        self._inputs = frozenset(item.name for item in self._session.get_inputs())
        # A name, such as "unk__1", where the exporter could not tell the number.
        size = self._session.get_outputs()[0].shape[-1]
        dimension = size if isinstance(size, int) else self.settings.dimension
        if dimension is None:
            raise ModelError(
                f"{folder}: neither {MODEL_FILE} nor {FILE_NAME} says the dimension of an "
                "embedding. Export the model anew."
            )
        if self.settings.dimension not in (None, dimension):
            raise ModelError(
                f"{folder} says its 'dimension' is {self.settings.dimension}; that of its "
                f"{MODEL_FILE} is {dimension}. Get the model anew."
            )
        super().__init__(
            name=self.settings.name,
            order=self.settings.order,
            dimension=dimension,
            calibration=self.settings.calibration or UNCALIBRATED,
        )
        self.head = head_of(folder)

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds texts or pairs, long ones in pieces; returns (m, dimension)."""
        return self._in_pieces(texts, self._vectors)

    @cached_property
    def _splitter(self) -> Splitter | None:
        return Splitter(self._tokenizer, order=self.order, joint=True)

    def _tokenised(self, inputs: Sequence[Input]) -> Tokenised:
        pairs = [one if isinstance(one, str) else tuple(one) for one in inputs]
        encodings = self._tokenizer.encode_batch_fast(pairs)
        longer = [row for row, encoding in enumerate(encodings) if encoding.overflowing]
        return Tokenised(encodings, longer, self._limit)

    def _vectors(self, encodings: Sequence[Encoding]) -> FloatArray:
        """Embeds in batches of similar length; returns (m, dimension)."""
        vectors = np.empty((len(encodings), self.dimension), dtype=np.float32)
        lengths = np.array([len(encoding) for encoding in encodings], dtype=np.int64)

        def fill(batch: IntArray) -> None:
            vectors[batch] = self._run([encodings[i] for i in batch])

        share = int(lengths.sum()) // (_SHARE * self._threads)  # so that none is idle for long
        tokens = min(_TOKENS, max(_FEWEST_TOKENS, share))
        batches = list(token_batches(lengths, tokens=tokens))[::-1]
        if len(batches) == 1 or self._threads == 1:
            for batch in batches:  # the longest first, so that none trails behind
                fill(batch)
        else:
            # Whole batches side by side; splitting each operator of one batch is slower.
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(fill, batches))
        return vectors

    def _run(self, encodings: list[Encoding]) -> FloatArray:
        """Runs the model on one batch; returns its embeddings, (batch, dimension)."""
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
        wanted = {name: value for name, value in features.items() if name in self._inputs}
        try:
            vectors: FloatArray = self._session.run(None, wanted)[0]
        except Exception as error:  # onnxruntime's classes have no common base but Exception
            reason = str(error).splitlines()[0]
            raise ModelError(
                f"The model {self.name!r} cannot run on {shape[1]} tokens ({reason}). Its "
                "tokenizer or 'max_seq_length' may be of another model; get the model anew."
            ) from None
        return vectors


def _processors() -> int:
    """Number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load_tokenizer(path: Path, max_length: int) -> tuple[Tokenizer, int]:
    """Reads a tokenizer that cuts at ``max_length`` tokens and pads nothing, and its padding id."""
    if not path.is_file():
        raise ModelError(f"{path} is missing; get the model anew.")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises no narrower class
        raise ModelError(f"{path} cannot be read ({error}); get the model anew.") from None
    padding = int((tokenizer.padding or {}).get("pad_id", 0))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return tokenizer, padding


def _load_session(path: Path) -> onnxruntime.InferenceSession:
    """Opens a model that runs in the thread that calls it."""
    if not path.is_file():
        raise ModelError(f"{path} is missing; get the model anew.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised as well
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's classes have no common base but Exception
        reason = str(error).splitlines()[0]
        raise ModelError(f"{path} cannot be loaded ({reason}); get the model anew.") from None
    outputs = [item.name for item in session.get_outputs()]
    if outputs != ["embedding"]:
        raise ModelError(f"{path} must have one output, 'embedding'. Got {outputs} instead.")
    return session
