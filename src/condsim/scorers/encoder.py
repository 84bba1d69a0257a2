"""Bi- and tri-encoders as sentence-transformers loads them. Needs the ``train`` extra."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from condsim.cutting import count_cut
from condsim.encoders import Order, check_order, cross_encoder_pairs
from condsim.errors import unknown_name
from condsim.scorers.calibration import Calibration
from condsim.scorers.embedding import EmbeddingScorer
from condsim.scorers.inputs import PairScorer, Rows, Scale, rescaled, token_batches
from condsim.scorers.long_texts import Input, Splitter, Tokenised, read_all
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    import torch
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from condsim.encoders import Order, Pooling

Numbers = Literal["float32", "bfloat16"]
"""A number format. With ``bfloat16`` products are taken of numbers of 8 significant bits and added
up in float32; weights, normalization and embeddings are float32."""

Precision = Literal["auto", "float32", "bfloat16"]
"""What may be asked for. ``auto``: bfloat16 on a processor that has matrix units for it (AMX) and
is twice as fast by them, else float32."""


def check_precision(precision: str) -> None:
    """Refuses an unknown precision with an `InputError`."""
    if precision not in get_args(Precision):
        raise unknown_name("precision", precision, get_args(Precision))


def numbers_on(device: torch.device, precision: Precision) -> Numbers:
    """Gives the number format for a precision on a device.

    Raises:
        InputError: If the precision is unknown.
    """
    check_precision(precision)
    if precision != "auto":
        return precision
    import torch

    has_units = device.type == "cpu" and torch.cpu.get_capabilities().get("amx_bf16", False)
    return "bfloat16" if has_units else "float32"


def transformer_scorer(
    model: str, *, pooling: Pooling = "mean", name: str | None = None, device: str | None = None
) -> EncoderScorer:
    """Makes a scorer of an encoder that was never trained for similarity.

    Args:
        model: A local folder or a Hub name: a transformers checkpoint, or a sentence-transformers
            model, of which the transformer alone is taken.
        pooling: ``mean`` over the tokens of the last layer, the special ones too; ``cls``, the
            first token; or another of `condsim.encoders.Pooling`.
        name: Short name, shown in tables; made of the two by default.
        device: Where torch runs; it chooses if None.

    Returns:
        The scorer: cosines.

    Raises:
        InputError: If the pooling is unknown.
        ModelError: If the model cannot be loaded.
        MissingExtraError: If the ``train`` extra is not installed.
    """
    from condsim.encoders import build_bi_encoder  # torch; the precisions above need none

    encoder = build_bi_encoder(model, pooling=pooling)
    encoder.eval()
    if device is not None:
        encoder = encoder.to(device)
    return EncoderScorer(encoder, name=name or f"{pooling}:{Path(model).name}")


_TOKENS = 1024  # in one batch on a processor, padding included: enough for its matrix units
_TOKENS_GPU = 16_384  # on anything else, which many tokens keep busy


class EncoderScorer(EmbeddingScorer):
    """Scores with a bi- or tri-encoder of sentence-transformers.

    Attributes:
        model: The encoder, not a copy.
        numbers: The number format it computes in: float32, unless `with_precision` said otherwise.
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
        """Wraps a loaded model.

        Args:
            model: A bi- or tri-encoder that takes pairs of texts.
            name: Short name, shown in tables.
            order: Which of condition and sentence comes first.
            calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
            batch_size: Texts encoded at once by a model without a tokenizer of transformers, such
                as averaged word vectors; others take as many as make up a number of tokens.

        Raises:
            InputError: If the order is unknown.
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
        """Gives a scorer that shares the model and computes in another number format.

        Raises:
            InputError: If the precision is unknown.
        """
        scorer = copy.copy(self)
        scorer.numbers = numbers_on(self.model.device, precision)
        return scorer

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds texts or pairs, long ones in pieces; returns (m, dimension)."""
        with self._autocast():  # around all batches, so that weights are rounded once
            return read_all(
                texts,
                self._tokenised,
                self._vectors,
                splitter=lambda: self._splitter,
                name=self.name,
            )

    @cached_property
    def _splitter(self) -> Splitter | None:
        """None where the tokenizer does not say where in a text its tokens are."""
        backend = getattr(self.model.tokenizer, "backend_tokenizer", None)
        return None if backend is None else Splitter(backend, order=self.order, joint=self._joint)

    @property
    def _joint(self) -> bool:
        """Whether the model reads condition and text together, which share its limit."""
        from condsim.encoders import TriEncoder

        return not isinstance(self.model[0], TriEncoder)

    def _tokenised(self, inputs: Sequence[Input]) -> Tokenised[tuple[Input, int]]:
        """Gives each input its number of tokens, 0 where that cannot be told."""
        lengths = _token_lengths(self.model, inputs)
        if lengths is None:
            return Tokenised([(one, 0) for one in inputs])
        limit = getattr(self.model, "max_seq_length", None) or int(lengths.max(initial=0))
        longer = np.flatnonzero(lengths > limit).tolist()
        if longer and not self._joint:
            longer = [row for row in longer if self._longest(inputs[row]) > limit]
        sizes = np.minimum(lengths, limit).tolist()
        return Tokenised(list(zip(inputs, sizes, strict=True)), longer, limit)

    def _longest(self, one: Input) -> int:
        """Tokens of the longer one of a text and its condition."""
        lengths = _token_lengths(self.model, [one] if isinstance(one, str) else one)
        return 0 if lengths is None else int(lengths.max())

    def _vectors(self, sized: Sequence[tuple[Input, int]]) -> FloatArray:
        """Embeds in batches of similar length; returns (m, dimension)."""
        vectors = np.empty((len(sized), self.dimension), dtype=np.float32)
        inputs = [one for one, _ in sized]
        lengths = np.array([length for _, length in sized], dtype=np.int64)
        if not lengths.all():  # sentence-transformers sorts by the number of characters
            vectors[:] = self._encode(inputs, self._batch_size)
        else:
            tokens = _TOKENS if self.model.device.type == "cpu" else _TOKENS_GPU
            for batch in list(token_batches(lengths, tokens=tokens))[::-1]:
                vectors[batch] = self._encode([inputs[row] for row in batch], len(batch))
        if self.numbers != "float32":  # scaled in bfloat16, lengths are 1 to three digits only
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

        return torch.autocast(self.model.device.type, dtype=torch.bfloat16)


def _token_lengths(
    model: SentenceTransformer | CrossEncoder, inputs: Sequence[Input | tuple[str, str]]
) -> IntArray | None:
    """Tokens of each text or pair, however many, (m,); None if they cannot be told."""
    from transformers import PreTrainedTokenizerBase

    tokenizer = getattr(model, "tokenizer", None)
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return None
    if not inputs:
        return np.empty(0, np.int64)
    found = tokenizer(
        [one if isinstance(one, str) else tuple(one) for one in inputs],
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    return np.array([len(ids) for ids in found], dtype=np.int64)


class CrossEncoderScorer(PairScorer):
    """Scores by a cross-encoder's one output, the raw score.

    Without conditions the input is (sentence1, sentence2), whatever the order; that is for a model
    trained without them.

    Attributes:
        name: Short name, shown in tables.
        model: The cross-encoder, not a copy.
        order: Whether the sentences or the condition come first.
        calibration: From the output to a score in [0, 1]; if None, scores are the outputs.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        name: str,
        order: Order = "sentence-first",
        calibration: Calibration | None = None,
        batch_size: int = 32,
    ) -> None:
        """Wraps a loaded model with one output; scores ``batch_size`` rows at once.

        Raises:
            InputError: If the order is unknown.
            ModelError: If the model's tokenizer puts nothing between two texts.
        """
        from condsim.encoders import pair_separator

        check_order(order)
        self.model, self.name = model, name
        self.order: Order = order
        self.calibration = calibration
        self._batch_size = batch_size
        self._separator = pair_separator(model.tokenizer)

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        texts = self._texts(rows)
        self._count_cut(texts)
        outputs = (
            self.model.predict(texts, batch_size=self._batch_size, show_progress_bar=False)
            if texts
            else ()
        )
        raw = np.asarray(outputs, dtype=np.float32).reshape(len(texts))
        return rescaled(raw, self.calibration, scale)

    def _count_cut(self, texts: list[tuple[str, str]]) -> None:
        limit, lengths = self.model.max_seq_length, _token_lengths(self.model, texts)
        if limit and lengths is not None:
            count_cut(self.name, limit, int((lengths > limit).sum()))

    def _texts(self, rows: Rows) -> list[tuple[str, str]]:
        """The two texts of each input: the two sentences where there are no conditions."""
        sentences1, sentences2 = rows.sentences
        if rows.conditions is None:
            return list(zip(sentences1, sentences2, strict=True))
        pairs = cross_encoder_pairs(
            sentences1, sentences2, rows.conditions, separator=self._separator, order=self.order
        )
        return [(first, second) for first, second in pairs]
