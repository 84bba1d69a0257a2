"""A condsim model in the form that mteb evaluates."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.similarity_functions import cos_sim, pairwise_cos_sim

from condsim.errors import InputError
from condsim.loading import load_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import revision_of
from condsim.types import FloatArray

if TYPE_CHECKING:
    from mteb import TaskMetadata
    from mteb.types import Array, BatchedInput, EncodeKwargs, PromptType
    from torch.utils.data import DataLoader
    from typing_extensions import Unpack

_NAMESPACE = "condsim"  # mteb wants an owner before the name


class MtebEncoder:
    """Any condsim model that compares embeddings, as ``mteb.EncoderProtocol`` has it.

    A row that has a condition of its own, as in C-STS, is encoded under it. Other texts are encoded
    under ``condition``, or by themselves if it is None.

    Example:
        >>> encoder = MtebEncoder(condition="the topic")
        >>> encoder.mteb_model_meta.experiment_kwargs
        {'condition': 'the topic'}

    Attributes:
        scorer: The model, not a copy.
        condition: What texts without a condition are encoded under, or None.
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
            model: A loaded scorer, or what `condsim.load` takes: None for the model that ships.
            revision: Version of the model in results; by default a hash of its files. A scorer
                without a version gets a random one, so that mteb never reuses results of another.
            device: Where torch runs; not for a scorer that is loaded already.
            condition: What texts without a condition are encoded under. A tri-encoder needs one on
                plain STS.

        Raises:
            InputError: If the condition is empty, or the model has no embeddings: a cross-encoder,
                a prompted or an origin model.
            ModelError: If there is no such model or it is damaged.
            MissingExtraError: If it needs a library that is not installed.
        """
        if condition is not None and not condition.strip():
            raise InputError("The 'condition' must have text; leave it out to encode texts alone.")
        if isinstance(model, EmbeddingScorer):
            scorer, found = model, getattr(model, "revision", None)
        else:
            loaded = load_scorer(model, device=device)
            if not isinstance(loaded, EmbeddingScorer):
                raise InputError(
                    f"mteb's STS tasks compare embeddings, and {loaded.name!r} scores a pair as a "
                    "whole. Give a bi- or tri-encoder, or measure it with 'condsim evaluate'."
                )
            scorer, found = loaded, revision_of("default" if model is None else model)
        self.scorer, self.condition = scorer, condition
        version = revision or (found if isinstance(found, str) else None)
        version = version or f"unversioned-{secrets.token_hex(8)}"
        self._meta = _model_meta(scorer, version, condition)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """What mteb writes beside results."""
        return self._meta

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
                f"condsim embeddings are float32. Got the precision {kwargs['precision']!r}; leave "
                "it out."
            )
        sentences: list[str] = []
        conditions: list[str] = []
        for batch in inputs:
            texts: dict[str, list[str]] = {**batch}
            sentences += texts["query" if "instruction" in texts else "text"]
            conditions += texts.get("instruction", [])
        if conditions and len(conditions) != len(sentences):
            raise InputError(
                f"Each text of a task must have a condition, or none. Got {len(sentences)} texts "
                f"and {len(conditions)} conditions."
            )
        given = conditions or self.condition
        try:
            return self.scorer.encode(sentences, given)
        except InputError as error:
            hint = "" if given else " A model that needs one is given it as 'condition'."
            raise InputError(f"{self.scorer.name}: {error}{hint}") from error

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Return the cosine of each with each, ``(n, m)``."""
        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Return the cosine of each pair, ``(n,)``: the raw score of condsim."""
        return pairwise_cos_sim(embeddings1, embeddings2)


def _model_meta(scorer: EmbeddingScorer, revision: str, condition: str | None) -> ModelMeta:
    torch = ["Sentence Transformers", "PyTorch"]
    settings = getattr(scorer, "settings", None)
    name = re.sub(r"[^\w.-]+", "-", scorer.name)
    return ModelMeta.create_empty(
        {
            "name": f"{_NAMESPACE}/{name}",
            "revision": revision,
            "languages": ["eng-Latn"],
            "max_tokens": getattr(settings, "max_seq_length", None),
            "embed_dim": scorer.dimension,
            "framework": ["ONNX"] if isinstance(scorer, OnnxScorer) else torch,
            "similarity_fn_name": ScoringFunction.COSINE,
            "use_instructions": True,
            "experiment_kwargs": None if condition is None else {"condition": condition},
        }
    )
