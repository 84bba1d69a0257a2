"""Scorers on loaded models of sentence-transformers. Importing this module needs no torch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from condsim.errors import ModelError, unknown_name
from condsim.model.base import PairScorer, Rows, Scale, rescaled
from condsim.model.calibration import Calibration
from condsim.model.chunking import Chunker, Input, record_truncation
from condsim.model.embedding import EmbeddingScorer, Tokenised
from condsim.model.inputs import (
    Inputs,
    Layout,
    Order,
    check_order,
    cross_encoder_inputs,
    token_batches,
)
from condsim.model.legibility import Legibility
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

Numbers = Literal["float32", "bfloat16", "float16"]
"""A number format. With ``bfloat16`` products are taken of numbers of 8 significant bits, with
``float16`` of 11, and added up in float32; weights, normalization and embeddings are float32."""

Precision = Literal["auto", "float32", "bfloat16", "float16"]
"""A number format, or ``auto``: on a processor bfloat16 if it is clearly faster, else float32."""

# A batch of as many tokens, padding included, keeps the matrix units of a processor busy.
BATCH_TOKENS_CPU = 1024
BATCH_TOKENS_GPU = 16_384


def check_precision(precision: str) -> None:
    """Refuse an unknown precision."""
    if precision not in get_args(Precision):
        raise unknown_name("precision", precision, get_args(Precision))


class EncoderScorer(EmbeddingScorer):
    """Scores with a bi- or tri-encoder of sentence-transformers.

    Attributes:
        model: The encoder, not a copy.
        numbers: The number format it computes in: float32, unless `with_precision` changed it.
    """

    numbers: Numbers = "float32"

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        name: str,
        order: Order = "condition-first",
        calibration: Calibration | None = None,
        batch_size: int = 32,
    ) -> None:
        """Wrap a loaded model.

        Args:
            model: A bi- or tri-encoder that takes pairs of texts.
            name: Short name, shown in tables.
            order: Which of condition and sentence comes first, and whether conditions are bare.
            calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
            batch_size: Texts encoded at once by a model without a tokenizer of transformers, such
                as averaged word vectors; others take as many as make up a number of tokens.
        """
        super().__init__(
            name=name,
            order=order,
            dimension=model.get_embedding_dimension() or 0,
            calibration=calibration,
        )
        self.model = model
        self._batch_size = batch_size

    def with_precision(self, precision: Precision) -> Self:
        """Make a scorer that shares the model and computes in another number format."""
        check_precision(precision)
        if precision == "auto":
            from condsim.model.precision import uses_bfloat16

            is_faster = self.model.device.type == "cpu" and uses_bfloat16("auto")
            precision = "bfloat16" if is_faster else "float32"
        scorer = copy.copy(self)
        scorer.numbers = precision
        # Cached vectors are those of another number format.
        scorer.set_cache_size(self._cache.size if self._cache else 0)
        return scorer

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        # Around all batches, so that weights are rounded once.
        with self._autocast():
            return self._embed_long(texts, self._vectors)

    @cached_property
    def _chunker(self) -> Chunker | None:
        backend = getattr(self.model.tokenizer, "backend_tokenizer", None)
        return None if backend is None else Chunker(backend, order=self.order, joint=self._joint)

    @cached_property
    def _legibility(self) -> Legibility | None:
        backend = getattr(self.model.tokenizer, "backend_tokenizer", None)
        return None if backend is None else Legibility(backend)

    @property
    def _joint(self) -> bool:
        """True if the model reads condition and text together, which share its limit."""
        from condsim.model.tri_encoder import TriEncoder

        return not isinstance(self.model[0], TriEncoder)

    def _tokenised(self, inputs: Sequence[Input]) -> Tokenised:
        """Pair each input with its number of tokens, 0 if that is unknown."""
        lengths = _token_lengths(self.model, inputs)
        if lengths is None:
            return Tokenised([(item, 0) for item in inputs])
        limit = getattr(self.model, "max_seq_length", None) or int(lengths.max(initial=0))
        longer = np.flatnonzero(lengths > limit).tolist()
        if longer and not self._joint:
            # Text and condition have the limit each.
            longer = [row for row in longer if self._longest(inputs[row]) > limit]
        sizes = np.minimum(lengths, limit).tolist()
        return Tokenised(list(zip(inputs, sizes, strict=True)), longer, limit)

    def _longest(self, item: Input) -> int:
        """Tokens of the longer one of a text and its condition."""
        lengths = _token_lengths(self.model, [item] if isinstance(item, str) else item)
        return 0 if lengths is None else int(lengths.max())

    def _vectors(self, sized: Sequence[tuple[Input, int]]) -> FloatArray:
        """Embed in batches of similar length; returns (m, dimension)."""
        vectors = np.empty((len(sized), self.dimension), dtype=np.float32)
        inputs = [item for item, _ in sized]
        lengths = np.array([length for _, length in sized], dtype=np.int64)
        if not lengths.all():
            # sentence-transformers sorts by the number of characters.
            vectors[:] = self._encode(inputs, self._batch_size)
        else:
            on_cpu = self.model.device.type == "cpu"
            tokens = BATCH_TOKENS_CPU if on_cpu else BATCH_TOKENS_GPU
            for batch in list(token_batches(lengths, tokens=tokens))[::-1]:
                vectors[batch] = self._encode([inputs[row] for row in batch], len(batch))
        if self.numbers != "float32":
            # Lengths that were scaled in half the bits are 1 only to a few digits.
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(norms > 0, norms, 1)
        return vectors

    def _encode(self, texts: list[Any], batch_size: int) -> FloatArray:
        vectors = self.model.encode(
            texts, batch_size=batch_size, show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(vectors, dtype=np.float32)

    def _autocast(self) -> AbstractContextManager[object]:
        if self.numbers == "float32":
            return nullcontext()
        import torch

        return torch.autocast(self.model.device.type, dtype=getattr(torch, self.numbers))


def _token_lengths(
    model: SentenceTransformer | CrossEncoder, inputs: Sequence[Input]
) -> IntArray | None:
    """Count the tokens of each text or pair, without a limit, (m,); None if that is unknown."""
    from transformers import PreTrainedTokenizerBase

    tokenizer = getattr(model, "tokenizer", None)
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return None
    if not inputs:
        return np.empty(0, np.int64)
    encoding = tokenizer(
        [item if isinstance(item, str) else tuple(item) for item in inputs],
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return np.array([len(ids) for ids in encoding["input_ids"]], dtype=np.int64)


class CrossEncoderScorer(PairScorer):
    """Scores by a cross-encoder's one output, the raw score.

    Without conditions the input is the two sentences, whatever the order; that is for a model
    trained without them. Of a model with a logit for each label (the objective ``classification``)
    the raw score is the expected label, from 0 to 1.

    Attributes:
        name: Short name, shown in tables.
        model: The cross-encoder, not a copy.
        order: Whether the sentences or the condition come first.
        calibration: From the output to a score in [0, 1]; if None, scores are the outputs.
        layout: Layout of its texts; ``pair`` is that of a model which condsim did not make.
        inputs: The part of a row that it reads.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        name: str,
        order: Order = "sentence-first",
        calibration: Calibration | None = None,
        layout: Layout = "pair",
        inputs: Inputs = "both",
        batch_size: int = 32,
    ) -> None:
        """Wrap a loaded model, which scores ``batch_size`` rows at once.

        Its tokenizer must have a separator, and the model 1 output or 5, one for each label.
        """
        from condsim.model.builders import separator_of

        check_order(order)
        self.model, self.name = model, name
        self.order: Order = order
        self.calibration = calibration
        self.layout: Layout = layout
        self.inputs: Inputs = inputs
        self._batch_size = batch_size
        self._separator = separator_of(model.tokenizer, layout)
        if model.num_labels not in (1, 5):
            raise ModelError(
                f"{name}: a cross-encoder must have 1 output, the similarity, or 5, one for each "
                f"label; got {model.num_labels}."
            )

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        texts = cross_encoder_inputs(
            rows.sentences[0],
            rows.sentences[1],
            rows.conditions,
            separator=self._separator,
            order=self.order,
            layout=self.layout,
            inputs=self.inputs,
        )
        limit, lengths = self.model.max_seq_length, _token_lengths(self.model, texts)
        if limit and lengths is not None:
            record_truncation(self.name, limit, int((lengths > limit).sum()))
        return rescaled(self._outputs(texts), self.calibration, scale)

    def _outputs(self, texts: list[Input]) -> FloatArray:
        """Compute the raw scores, (n,); the library's own ``predict`` takes only pairs."""
        import torch
        from sentence_transformers.util import batch_to_device

        model, raw = self.model.eval(), np.empty(len(texts), np.float32)
        activation = model.activation_fn or torch.nn.Identity()
        order = np.argsort([-sum(map(len, text)) for text in texts], kind="stable")
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            with torch.inference_mode():
                features = model.preprocess([texts[row] for row in rows])
                outputs = model(batch_to_device(features, model.device))["scores"].float()
                scores = activation(outputs).reshape(len(rows), -1)  # (rows, outputs)
                if scores.shape[1] > 1:
                    levels = torch.linspace(0, 1, scores.shape[1], device=scores.device)
                    scores = scores.softmax(dim=1) @ levels
            raw[rows] = scores.reshape(-1).cpu().numpy()
        return raw
