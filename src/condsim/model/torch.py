"""Scorers on models that sentence-transformers wrote, in a folder or on the Hub."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args
from weakref import WeakKeyDictionary

import numpy as np

from condsim.errors import ModelError, unknown_name
from condsim.model.base import PairScorer, Rows, Scale, rescaled, token_batches
from condsim.model.calibration import Calibration
from condsim.model.conditions import Inputs, Layout, Order, check_order, cross_encoder_inputs
from condsim.model.embedding import EmbeddingScorer, Input, Splitter, Tokenised
from condsim.model.truncation import count_cut
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from condsim.model.backbone import Pooling
    from condsim.model.conditions import Order

Numbers = Literal["float32", "bfloat16", "float16"]
"""A number format. With ``bfloat16`` products are taken of numbers of 8 significant bits, with
``float16`` of 11, and added up in float32; weights, normalization and embeddings are float32."""

Precision = Literal["auto", "float32", "bfloat16", "float16"]
"""What may be asked for. ``auto``: on a processor the faster of float32 and bfloat16, by two small
batches of each, else float32."""

_LOGGER = logging.getLogger("condsim")
_CLEARLY = 1.1  # times as fast as float32, for bfloat16 to be used
_MEASURED: WeakKeyDictionary[SentenceTransformer, Numbers] = WeakKeyDictionary()


def check_precision(precision: str) -> None:
    """Refuses an unknown precision with an `InputError`."""
    if precision not in get_args(Precision):
        raise unknown_name("precision", precision, get_args(Precision))


def transformer_scorer(
    model: str, *, pooling: Pooling = "mean", device: str | None = None
) -> EncoderScorer:
    """Makes a scorer of an encoder that was never trained for similarity.

    Args:
        model: A local folder or a Hub name: a transformers checkpoint, or a sentence-transformers
            model, of which the transformer alone is taken.
        pooling: ``mean`` over the tokens of the last layer, the special ones too; ``cls``, the
            first token; or another of `condsim.model.backbone.Pooling`.
        device: Where torch runs; it chooses if None.

    Returns:
        The scorer: cosines.

    Raises:
        InputError: If the pooling is unknown.
        ModelError: If the model cannot be loaded.
        MissingExtraError: If the ``train`` extra is not installed.
    """
    from condsim.model.builders import build_bi_encoder  # torch; the precisions above need none

    encoder = build_bi_encoder(model, pooling=pooling)
    encoder.eval()
    if device is not None:
        encoder = encoder.to(device)
    return EncoderScorer(encoder, name=f"{pooling}:{Path(model).name}")


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
            order: Which of condition and sentence comes first, and whether conditions are bare.
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

        ``auto`` measures a model once, and says in the log what it found.

        Raises:
            InputError: If the precision is unknown.
        """
        check_precision(precision)
        scorer = copy.copy(self)
        scorer.numbers = self._fastest() if precision == "auto" else precision
        if self._recent is not None:  # what it holds are vectors of another number format
            scorer.keep_vectors(self._recent.number)
        return scorer

    def _fastest(self) -> Numbers:
        if self.model.device.type != "cpu":
            return "float32"
        if self.model not in _MEASURED:
            kinds: tuple[Numbers, ...] = ("float32", "bfloat16")
            texts = [f"{number} {'a few words of text ' * 4}" for number in range(32)]
            seconds = dict.fromkeys(kinds, float("inf"))
            for turn in range(3):  # the first one warms up
                for kind in kinds:
                    scorer, started = self.with_precision(kind), time.perf_counter()
                    scorer.encode(texts, "the topic")
                    if turn:
                        seconds[kind] = min(seconds[kind], time.perf_counter() - started)
            quicker = seconds["float32"] > _CLEARLY * seconds["bfloat16"]
            _MEASURED[self.model] = found = "bfloat16" if quicker else "float32"
            shown = ", ".join(f"{kind} {1000 * taken:.0f}" for kind, taken in seconds.items())
            _LOGGER.info("%s: ms for %d texts: %s; using %s", self.name, len(texts), shown, found)
        return _MEASURED[self.model]

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds texts or pairs, long ones in pieces; returns (m, dimension)."""
        with self._autocast():  # around all batches, so that weights are rounded once
            return self._in_pieces(texts, self._vectors)

    @cached_property
    def _splitter(self) -> Splitter | None:
        """None where the tokenizer does not say where in a text its tokens are."""
        backend = getattr(self.model.tokenizer, "backend_tokenizer", None)
        return None if backend is None else Splitter(backend, order=self.order, joint=self._joint)

    @property
    def _joint(self) -> bool:
        """Whether the model reads condition and text together, which share its limit."""
        from condsim.model.tri_encoder import TriEncoder

        return not isinstance(self.model[0], TriEncoder)

    def _tokenised(self, inputs: Sequence[Input]) -> Tokenised:
        """Gives each input its number of tokens, 0 where that cannot be told."""
        lengths = _token_lengths(self.model, inputs)
        if lengths is None:
            return Tokenised([(one, 0) for one in inputs])
        limit = getattr(self.model, "max_seq_length", None) or int(lengths.max(initial=0))
        longer = np.flatnonzero(lengths > limit).tolist()
        if longer and not self._joint:  # text and condition have the limit each
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
        if self.numbers != "float32":  # scaled in half the bits, lengths are 1 to few digits only
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

    Without conditions the input is the two sentences, whatever the order; that is for a model
    trained without them. Of a model with a logit for each label (the objective ``classification``)
    the raw score is the expected label, from 0 to 1.

    Attributes:
        name: Short name, shown in tables.
        model: The cross-encoder, not a copy.
        order: Whether the sentences or the condition come first.
        calibration: From the output to a score in [0, 1]; if None, scores are the outputs.
        layout: How its texts are joined; ``pair`` is that of a model which condsim did not make.
        inputs: What it is given of a row.
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
        """Wraps a loaded model; scores ``batch_size`` rows at once.

        Raises:
            InputError: If the order is unknown.
            ModelError: If the model's tokenizer has no separator, or it has another number of
                outputs than 1 or one for each of the labels 1 to 5.
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
                f"label. Got {model.num_labels}."
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
            count_cut(self.name, limit, int((lengths > limit).sum()))
        return rescaled(self._outputs(texts), self.calibration, scale)

    def _outputs(self, texts: list[Input]) -> FloatArray:
        """The raw scores; the library's own ``predict`` takes pairs only."""
        import torch
        from sentence_transformers.util import batch_to_device

        model, raw = self.model.eval(), np.empty(len(texts), np.float32)
        activation = model.activation_fn or torch.nn.Identity()
        order = np.argsort([-sum(map(len, text)) for text in texts], kind="stable")
        for rows in np.split(order, range(self._batch_size, len(order), self._batch_size)):
            if not len(rows):
                continue
            with torch.inference_mode():
                features = model.preprocess([texts[row] for row in rows])
                found = model(batch_to_device(features, model.device))["scores"].float()
                scores = activation(found).reshape(len(rows), -1)  # (rows, outputs)
                if scores.shape[1] > 1:
                    levels = torch.linspace(0, 1, scores.shape[1], device=scores.device)
                    scores = scores.softmax(dim=1) @ levels
            raw[rows] = scores.reshape(-1).cpu().numpy()
        return raw
