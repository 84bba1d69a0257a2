"""Sentences that a tri-encoder has read once, compared under any condition after that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor

from condsim.errors import InputError, ModelError
from condsim.model.tri_encoder import TriEncoder, tokenise
from condsim.model.truncation import count_cut, one_warning
from condsim.types import FloatArray


def load_tri_encoder(path: str) -> SentenceTransformer:
    """Loads a saved tri-encoder.

    ``SentenceTransformer(path)`` refuses any module that is not its own unless it may run remote
    code; this needs no such permission, for the class is here.

    Raises:
        ModelError: If the folder holds no tri-encoder.
    """
    listing = Path(path, "modules.json")
    types = (
        [entry["type"] for entry in json.loads(listing.read_text("utf-8"))]
        if listing.is_file()
        else None
    )
    expected = [f"{TriEncoder.__module__}.{TriEncoder.__name__}"]
    if types != expected:
        raise ModelError(
            f"{path} holds no tri-encoder: its modules.json must list {expected}. "
            f"Got {types or 'no such file'} instead."
        )
    return SentenceTransformer(modules=[TriEncoder.load(path)], similarity_fn_name="cosine")


class StoredSentences:
    """Vectors of sentences without a condition, from which those under a condition are made.

    A bi-encoder reads all sentences again for a new condition; this reads the condition alone.

    Attributes:
        vectors: One a sentence, (n, d) float32; ``numpy.save`` keeps them.

    Example:
        >>> stored = StoredSentences.encode(model, sentences)  # doctest: +SKIP
        >>> stored.similarities("A girl kicks a ball.", "the sport").argmax()  # doctest: +SKIP
    """

    def __init__(self, model: SentenceTransformer, vectors: FloatArray) -> None:
        """Takes vectors that were made before, and the tri-encoder that made them.

        Raises:
            InputError: If the model is no tri-encoder, or the vectors are not (n, d) of its d.
        """
        module = _tri_encoder(model)
        dimension = module.transformer.get_embedding_dimension()
        if vectors.ndim != 2 or vectors.shape[1] != dimension:
            raise InputError(
                f"Stored vectors of this model have the shape (n, {dimension}). Got "
                f"{vectors.shape} instead; encode the sentences with it again."
            )
        self.vectors = vectors
        self._model = model

    @classmethod
    def encode(
        cls, model: SentenceTransformer, sentences: Sequence[str], *, batch_size: int = 64
    ) -> StoredSentences:
        """Reads sentences, length n, with a tri-encoder.

        Raises:
            InputError: If the model is no tri-encoder.
        """
        module = _tri_encoder(model)
        vectors = np.empty(
            (len(sentences), int(module.transformer.get_embedding_dimension())), np.float32
        )
        order = np.argsort([len(text) for text in sentences], kind="stable")
        with one_warning():
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                vectors[rows] = _sentences(model, [sentences[row] for row in rows])
        return cls(model, vectors)

    def under(self, condition: str) -> FloatArray:
        """Gives the embeddings under a condition; only the condition is read.

        Returns:
            (n, dimension of the model) float32, each of length 1, as the model's own ``encode``
            gives them.
        """
        return _fused(self._model, self.vectors, _condition(self._model, condition))

    def similarities(self, sentence: str, condition: str) -> FloatArray:
        """Compares all sentences with another one under a condition: cosines, (n,) float32."""
        asked = _condition(self._model, condition)
        query = _fused(self._model, _sentences(self._model, [sentence]), asked)  # (1, dim)
        found: FloatArray = _fused(self._model, self.vectors, asked) @ query[0]
        return found


def _tri_encoder(model: SentenceTransformer) -> TriEncoder:
    module = model[0]
    if not isinstance(module, TriEncoder):
        raise InputError(
            "Only a tri-encoder keeps sentences apart from conditions. Train one with "
            "'encoder: tri-encoder', and load it with condsim.model.stored.load_tri_encoder."
        )
    return module


def _tokens(model: SentenceTransformer, texts: list[str]) -> tuple[Tensor, Tensor]:
    tokenizer = _tri_encoder(model).tokenizer
    tokens = tokenise(tokenizer, texts, max_length=None)
    limit = tokenizer.model_max_length
    if tokens["input_ids"].shape[1] >= limit:  # (n, length)
        lengths = [len(ids) for ids in tokenizer(texts, verbose=False)["input_ids"]]
        with one_warning():
            count_cut("The tri-encoder", limit, sum(length > limit for length in lengths))
    return tokens["input_ids"].to(model.device), tokens["attention_mask"].to(model.device)


@torch.inference_mode()
def _sentences(model: SentenceTransformer, texts: list[str]) -> FloatArray:
    """Vectors of sentences on their own, (n, d)."""
    vectors = _tri_encoder(model.eval()).sentence_vectors(*_tokens(model, texts))
    array: FloatArray = vectors.float().cpu().numpy()
    return array


@torch.inference_mode()
def _condition(model: SentenceTransformer, condition: str) -> Tensor:
    """Vector of a condition, (1, d)."""
    return _tri_encoder(model.eval()).condition_vectors(*_tokens(model, [condition]))


@torch.inference_mode()
def _fused(model: SentenceTransformer, vectors: FloatArray, asked: Tensor) -> FloatArray:
    """Vectors of sentences, (n, d), under one condition, (1, d): (n, dim), each of length 1."""
    joined = _tri_encoder(model).fuse(torch.from_numpy(vectors).to(asked), asked)
    fused: FloatArray = F.normalize(joined.float(), dim=-1).cpu().numpy()
    return fused
