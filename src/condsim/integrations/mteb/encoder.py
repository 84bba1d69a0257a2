"""A condsim model in the form that mteb evaluates."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.similarity_functions import cos_sim, pairwise_cos_sim

from condsim.errors import InputError
from condsim.loading import load_encoder, load_scorer
from condsim.model.base import PairScorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import revision_of
from condsim.types import FloatArray

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.types import Array, BatchedInput, EncodeKwargs, PromptType
    from torch.utils.data import DataLoader
    from typing_extensions import Unpack


class MtebEncoder:
    """Any condsim model that compares embeddings, as ``mteb.EncoderProtocol`` has it.

    A row that has its own condition, as in C-STS, is encoded under it. Other texts are encoded
    under ``condition``, or by themselves if it is None.

    Attributes:
        scorer: The model, not a copy.
        condition: Condition of texts without their own, or None.
        mteb_model_meta: Metadata that mteb writes next to results.

    Example:
        >>> encoder = MtebEncoder(condition="the topic")
        >>> encoder.mteb_model_meta.experiment_kwargs
        {'condition': 'the topic'}
    """

    def __init__(
        self,
        model: str | Path | EmbeddingScorer | None = None,
        revision: str | None = None,
        *,
        device: str | None = None,
        condition: str | None = None,
    ) -> None:
        """Load the model.

        Args:
            model: A loaded scorer, or what `condsim.load` takes: None for the default model.
            revision: Version of the model in results; by default a hash of its files. A scorer
                without a version gets a random one, so that mteb never reuses results of another.
            device: Where torch runs; not for a scorer that is loaded already.
            condition: See the attribute. A tri-encoder needs one on plain STS.

        Raises:
            ModelError: If there is no such model, it is damaged, or it has no embeddings.
            MissingExtraError: If it needs a library that is not installed.
        """
        if isinstance(model, PairScorer):
            self.scorer, version = load_encoder(model), getattr(model, "revision", None)
        else:
            self.scorer = load_encoder(load_scorer(model, device=device))
            version = revision_of("default" if model is None else model)
        self.condition = condition
        name = re.sub(r"[^\w.-]+", "-", self.scorer.name)
        settings = getattr(self.scorer, "settings", None)
        is_onnx = isinstance(self.scorer, OnnxScorer)
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                # mteb requires an owner before the name.
                "name": f"condsim/{name}",
                "revision": revision or version or f"unversioned-{secrets.token_hex(8)}",
                "languages": ["eng-Latn"],
                "max_tokens": getattr(settings, "max_seq_length", None),
                "embed_dim": self.scorer.dimension,
                "framework": ["ONNX"] if is_onnx else ["Sentence Transformers", "PyTorch"],
                "similarity_fn_name": ScoringFunction.COSINE,
                "use_instructions": True,
                "experiment_kwargs": None if condition is None else {"condition": condition},
            }
        )

    def encode(
        self,
        inputs: DataLoader[BatchedInput],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        prompt_type: PromptType | None = None,
        **kwargs: Unpack[EncodeKwargs],
    ) -> FloatArray:
        """Encode texts; each distinct one once, in batches that the scorer chooses.

        ``inputs`` are batches with ``text``; where a row has a condition, with ``query`` (the
        sentence) and ``instruction`` (the condition). The other arguments are ignored, but for
        ``precision``: condsim models have no prompts.

        Returns:
            Embeddings of length 1, ``(n, dimension)`` float32.

        Raises:
            InputError: If a text is empty, only some batches have conditions, another precision is
                asked for, or the model needs a condition and there is none.
        """
        if kwargs.get("precision", "float32") != "float32":
            raise InputError(
                f"The precision of condsim embeddings must be float32, got {kwargs['precision']!r}."
            )
        sentences: list[str] = []
        conditions: list[str] = []
        for batch in inputs:
            texts: dict[str, list[str]] = {**batch}
            sentences += texts["query" if "instruction" in texts else "text"]
            conditions += texts.get("instruction", [])
        return self.scorer.encode(sentences, conditions or self.condition)

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Return the cosine of each with each, ``(n, m)``."""
        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Return the cosine of each pair, ``(n,)``: the raw score of condsim."""
        return pairwise_cos_sim(embeddings1, embeddings2)
