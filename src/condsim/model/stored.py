"""Sentences that a tri-encoder has encoded once, to be compared under any condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.errors import InputError
from condsim.model.chunking import collect_truncations, record_truncation
from condsim.model.tri_encoder import TriEncoder, tokenise
from condsim.types import FloatArray


class StoredSentences:
    """Vectors of sentences without a condition, from which those under a condition are made.

    A bi-encoder reads all sentences again for a new condition; this reads only the condition.

    Attributes:
        vectors: One for each sentence, (n, d) float32; ``numpy.save`` stores them.

    Example:
        >>> stored = StoredSentences.encode(model, sentences)  # doctest: +SKIP
        >>> stored.similarities("A girl kicks a ball.", "the sport").argmax()  # doctest: +SKIP
    """

    def __init__(self, model: SentenceTransformer, vectors: FloatArray) -> None:
        """Wrap vectors that were computed before, and the tri-encoder that computed them."""
        self._model = model
        self._encoder = _tri_encoder(model)
        dimension = self._encoder.transformer.get_embedding_dimension()
        if vectors.ndim != 2 or vectors.shape[1] != dimension:
            raise InputError(
                f"Stored vectors of this model must have the shape (n, {dimension}); got "
                f"{vectors.shape}."
            )
        self.vectors = vectors

    @classmethod
    def encode(
        cls, model: SentenceTransformer, sentences: Sequence[str], *, batch_size: int = 64
    ) -> StoredSentences:
        """Encode sentences, length n, with a tri-encoder."""
        dimension = int(_tri_encoder(model).transformer.get_embedding_dimension())
        stored = cls(model, np.empty((len(sentences), dimension), np.float32))
        order = np.argsort([len(text) for text in sentences], kind="stable")
        with collect_truncations():
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                stored.vectors[rows] = stored._encode([sentences[row] for row in rows])
        return stored

    def under(self, condition: str) -> FloatArray:
        """Compute the embeddings under a condition, of which only the condition is encoded.

        Returns:
            (n, dimension of the model) float32, each of length 1, equal to the model's ``encode``.
        """
        return self._fuse(self.vectors, self._encode_condition(condition))

    def similarities(self, sentence: str, condition: str) -> FloatArray:
        """Compare all sentences with another one under a condition: cosines, (n,) float32."""
        vector = self._encode_condition(condition)
        query = self._fuse(self._encode([sentence]), vector)  # (1, dimension)
        similarities: FloatArray = self._fuse(self.vectors, vector) @ query[0]
        return similarities

    @torch.inference_mode()
    def _encode(self, texts: list[str]) -> FloatArray:
        """Encode sentences without a condition, (n, d)."""
        vectors = self._encoder.eval().sentence_vectors(*self._tokens(texts))
        array: FloatArray = vectors.float().cpu().numpy()
        return array

    @torch.inference_mode()
    def _encode_condition(self, condition: str) -> Tensor:
        """Encode a condition, (1, d)."""
        return self._encoder.eval().condition_vectors(*self._tokens([condition]))

    @torch.inference_mode()
    def _fuse(self, vectors: FloatArray, condition: Tensor) -> FloatArray:
        """Fuse sentences, (n, d), with one condition, (1, d); each result has length 1."""
        fused = self._encoder.fuse(torch.from_numpy(vectors).to(condition), condition)
        array: FloatArray = F.normalize(fused.float(), dim=-1).cpu().numpy()
        return array

    def _tokens(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Tokenize texts: token ids and their mask, (n, length)."""
        tokenizer = self._encoder.tokenizer
        tokens = tokenise(tokenizer, texts, max_length=None)
        limit = tokenizer.model_max_length
        if tokens["input_ids"].shape[1] >= limit:
            lengths = [len(ids) for ids in tokenizer(texts, verbose=False)["input_ids"]]
            with collect_truncations():
                number = sum(length > limit for length in lengths)
                record_truncation("The tri-encoder", limit, number)
        device = self._model.device
        return tokens["input_ids"].to(device), tokens["attention_mask"].to(device)


def _tri_encoder(model: SentenceTransformer) -> TriEncoder:
    module = model[0]
    if not isinstance(module, TriEncoder):
        raise InputError(
            "Stored sentences need a tri-encoder. Train one with 'encoder: tri-encoder', and load "
            "it with condsim.model.tri_encoder.load_tri_encoder."
        )
    return module
