"""Base of the losses: reads the labels and runs one forward over both sentences of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns, merge_feature_batches
from torch import Tensor, nn

from condsim.config import Settings
from condsim.errors import InputError

_TOKENS = 768  # of a sub-batch on a CPU, its padding included

Ties = Literal["dropped", "kept"]
"""What becomes of two rows of one sentence pair whose labels are equal, in Quad and its kin."""


class LossOptions(Settings):
    """The numbers that the objectives take.

    Attributes:
        margin: λ of Quad, at least 0 (C-STS §4.1; 1 in READING.md).
        scale: Inverse temperature of the ranking objectives, above 0.
        tau: τ of BCL, above 0; divides the cosines (CCL Eq. 10).
        sigma: σ of BCL in [0, 1] (CCL Eq. 11).
        middle_tolerance: How far from the label 3, a gold of 0.5, MSE and the correlation let the
            prediction be, in [0, 0.5]; see :func:`tolerant_labels`.
        ranking_margin: How far apart ``ranking`` wants two cosines, in [0, 2].
        ties: Whether the objectives on the two rows of a sentence pair take those of equal labels,
            the first row as the positive. The text of C-STS wants a higher label; the released
            code and CCL (§3.1) take them.

    Raises:
        InputError: If a number is out of its range, or ``ties`` is unknown.
    """

    what: ClassVar[str] = "loss option"

    margin: float = Field(default=1.0, ge=0)
    scale: float = Field(default=20.0, gt=0)
    tau: float = Field(default=5.0, gt=0)
    sigma: float = Field(default=0.5, ge=0, le=1)
    middle_tolerance: float = Field(default=0.0, ge=0, le=0.5)
    ranking_margin: float = Field(default=0.1, ge=0, le=2)
    ties: Ties = "dropped"


@dataclass(frozen=True)
class Targets:
    """The labels of a batch.

    Attributes:
        gold: Gold similarity of each row in [0, 1], ``(rows,)`` float32.
        pair_ids: Id of each row's sentence pair, ``(rows,)`` int64, negative where the row has no
            partner; None when the labels carry no ids.
        list_ids: Id of the list each row is ranked in besides, such as the pairs of a group under
            one condition, ``(rows,)`` int64, negative where there is none; None without lists.
        weights: How much each row counts, ``(rows,)`` float32; None where all count alike.
    """

    gold: Tensor
    pair_ids: Tensor | None
    list_ids: Tensor | None = None
    weights: Tensor | None = None

    @classmethod
    def from_labels(cls, labels: Tensor, *, rows: int) -> Targets:
        """Reads the label column of a batch.

        Args:
            labels: ``(rows,)`` gold similarities, or ``(rows, 2)``: gold and pair id. Ids are
                whole numbers below 2^24 (exact in float32), -1 for a row without a partner.
            rows: Number of rows in the batch.

        Raises:
            InputError: If the shape is neither, or a gold similarity is not in [0, 1].
        """
        if labels.shape not in ((rows,), (rows, 2)):
            raise InputError(
                f"Labels must have shape ({rows},), the gold similarities, or ({rows}, 2), gold "
                f"similarity and pair id. Got {tuple(labels.shape)} instead."
            )
        gold = (labels if labels.ndim == 1 else labels[:, 0]).detach().float()  # (rows,)
        if not bool(((gold >= 0) & (gold <= 1)).all()):
            raise InputError(
                "Gold similarities must lie in [0, 1]; C-STS labels 1-5 become (label - 1) / 4 and "
                f"unlabelled rows are left out. Got values from {gold.min():g} to {gold.max():g}."
            )
        pair_ids = labels[:, 1].detach().round().long() if labels.ndim == 2 else None  # (rows,)
        return cls(gold=gold, pair_ids=pair_ids)


@dataclass(frozen=True)
class EncodedBatch:
    """A batch behind the encoder."""

    first: Tensor  # embeddings of the conditional sentences 1, ``(rows, dim)``
    second: Tensor  # embeddings of the conditional sentences 2, ``(rows, dim)``
    targets: Targets
    first_features: dict[str, Any]  # the preprocessed column 1, for a second view of it

    @property
    def similarities(self) -> Tensor:
        """Cosine of the two embeddings of each row, ``(rows,)`` float32."""
        return F.cosine_similarity(self.first.float(), self.second.float(), dim=-1)


def encode_batch(
    model: nn.Module, sentence_features: Iterable[dict[str, Any]], labels: Tensor
) -> EncodedBatch:
    """Runs both columns through the model."""
    columns = list(sentence_features)
    if len(columns) != 2:
        raise InputError(
            "A similarity loss takes two columns of conditional sentences. "
            f"Got {len(columns)} instead."
        )
    first_features = dict(columns[0])  # a forward adds its outputs to the mapping it is given
    first, second = _embedded(model, columns)  # (rows, dim)
    targets = Targets.from_labels(labels, rows=first.shape[0])
    return EncodedBatch(first, second, targets, first_features)


def _embedded(model: nn.Module, columns: Sequence[dict[str, Any]]) -> Sequence[Tensor]:
    """Embeds columns in one forward, or on a CPU in a few: texts of like length, little padding."""
    merged = merge_feature_batches(list(columns)) or {}
    parts = {key: value for key, value in merged.items() if isinstance(value, Tensor)}
    mask = parts.get("attention_mask")
    alike = mask is not None and all(part.shape == mask.shape for part in parts.values())
    if mask is None or not alike or mask.device.type != "cpu":  # such as a condition apart
        return embed_columns(model, columns, separate_first=False)
    order = left = mask.sum(dim=1).argsort(descending=True)
    found = []
    while len(left):
        size = max(1, _TOKENS // int(mask[left[0]].sum()))
        rows, left = left[:size], left[size:]
        width = int(mask[rows].any(dim=0).nonzero().max()) + 1  # padding on the left stays
        batch = {**merged, **{key: part[rows, :width] for key, part in parts.items()}}
        found.append(model(batch)["sentence_embedding"])
    return torch.cat(found)[order.argsort()].chunk(len(columns))


class ConditionalLoss(nn.Module, ABC):
    """Base of objectives over two columns of conditional sentences, with gold, or gold and id."""

    shown: ClassVar[tuple[str, ...]] = ()
    """The options of the objective, for the model card."""

    def __init__(self, model: SentenceTransformer, options: LossOptions | None = None) -> None:
        """Makes the loss."""
        super().__init__()
        self.model = model
        self.options = options or LossOptions()

    @abstractmethod
    def of_batch(self, batch: EncodedBatch) -> Tensor:
        """Computes the loss of an encoded batch, a float32 scalar."""

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor) -> Tensor:
        """Computes the loss of a batch; see :meth:`Targets.from_labels` for the labels."""
        return self.of_batch(encode_batch(self.model, sentence_features, labels))

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {name: getattr(self.options, name) for name in self.shown}


class SimilarityLoss(ConditionalLoss):
    """Base of the objectives over the cosine of two conditional sentences."""

    @staticmethod
    @abstractmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """Computes the objective itself.

        Args:
            similarities: Predicted similarity of each row, ``(rows,)``.

        Returns:
            A float32 scalar, lower is better.
        """

    def of_batch(self, batch: EncodedBatch) -> Tensor:
        """Computes the objective on the cosines."""
        return self.compute(batch.similarities, batch.targets, self.options)
