"""condsim models, and tasks with your own data, in the form that mteb evaluates."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, cast

from condsim.errors import InputError, requires_extra, unknown_name
from condsim.loading import load_encoder, load_scorer
from condsim.model.base import PairScorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import revision_of
from condsim.types import FloatArray, Task

with requires_extra("mteb"):
    import mteb
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskSTS
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.similarity_functions import cos_sim, pairwise_cos_sim

    from condsim_mteb.csts import CSTS, AbsTaskConditionalSTS

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


def local_task(task: str | AbsTaskSTS, rows: Task, *, split: str | None = None) -> AbsTaskSTS:
    """Return an STS task of mteb with your own rows in place of the Hub's.

    The revision in results becomes ``local-`` and the revision of the rows. mteb's cache
    ignores it: evaluate with ``cache=None``, or with a folder for such results alone.

    Args:
        task: Name of a task of mteb, such as ``STS12``, or ``CSTS``; or a task, which is changed.
        rows: The rows; those without a label are left out. Only C-STS takes rows with conditions.
        split: The one split that the task evaluates from then on; its first by default.

    Raises:
        InputError: If there is no such task, it is none of STS or has several subsets, there is no
            labeled row, a label is out of its range, or only one of task and rows has conditions.
    """
    loaded = _task(task) if isinstance(task, str) else task
    name = loaded.metadata.name
    if not isinstance(loaded, AbsTaskSTS) or loaded.metadata.is_multilingual:
        raise InputError(
            f"{name} must be an STS task of one subset, such as STS12, STSBenchmark or CSTS."
        )
    labeled = rows.labeled()
    if not len(labeled):
        raise InputError(f"{name}: none of the {len(rows)} rows of {rows.name} has a label.")
    low, high = float(labeled.labels.min()), float(labeled.labels.max())
    if low < loaded.min_score or high > loaded.max_score:
        raise InputError(
            f"{name}: labels must be from {loaded.min_score} to {loaded.max_score}; the "
            f"labels of {rows.name} are from {low:g} to {high:g}."
        )
    first, second = (str(column) for column in loaded.column_names)
    columns: dict[str, object] = {
        first: list(labeled.sentences1),
        second: list(labeled.sentences2),
        "score": labeled.labels.astype(float).tolist(),
    }
    conditional = isinstance(loaded, AbsTaskConditionalSTS)
    if conditional != (labeled.conditions is not None):
        raise InputError(
            f"{name} needs rows {'with' if conditional else 'without'} conditions; the "
            f"rows of {rows.name} have {'none' if conditional else 'some'}."
        )
    if isinstance(loaded, AbsTaskConditionalSTS):
        columns[loaded.condition_column] = list(labeled.conditions or ())
    split = split or loaded.eval_splits[0]
    # As mteb does for cleaned data: an attribute of the object hides the class's.
    loaded.metadata = loaded.metadata.model_copy(
        update={"dataset": {**loaded.metadata.dataset, "revision": f"local-{rows.revision}"}}
    )
    loaded.dataset = cast(
        "dict[str, DatasetDict]", DatasetDict({split: Dataset.from_dict(columns)})
    )
    loaded.data_loaded = True
    return loaded.filter_eval_splits([split])


def _task(name: str) -> AbsTaskSTS:
    if name == CSTS.metadata.name:
        return CSTS()
    try:
        return cast("AbsTaskSTS", mteb.get_task(name))
    except KeyError:
        names = [task.metadata.name for task in mteb.get_tasks(task_types=["STS"])]
        raise unknown_name("task of mteb", name, [*names, CSTS.metadata.name]) from None
