"""What the losses share: reading the labels, and one forward over both sentences of a batch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns
from torch import Tensor, nn

from condsim.errors import InputError


@dataclass(frozen=True)
class LossOptions:
    """The numbers that the objectives take.

    Attributes:
        margin: λ of Quad, at least 0 (C-STS §4.1; 1 in READING.md).
        scale: Inverse temperature of the ranking objectives, above 0.
        tau: τ of BCL, above 0; divides the cosines (CCL Eq. 10).
        sigma: σ of BCL in [0, 1] (CCL Eq. 11).
        middle_tolerance: How far from the label 3, a gold of 0.5, MSE and the correlation let the
            prediction be, in [0, 0.5]; see ``functional.tolerant_labels``.
    """

    margin: float = 1.0
    scale: float = 20.0
    tau: float = 5.0
    sigma: float = 0.5
    middle_tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        if not (math.isfinite(self.margin) and self.margin >= 0):
            raise InputError(f"The margin of Quad must be at least 0. Got {self.margin} instead.")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError(
                f"The scale of a ranking objective must be above 0. Got {self.scale} instead."
            )
        if not (math.isfinite(self.tau) and self.tau > 0):
            raise InputError(f"τ of BCL must be above 0. Got {self.tau} instead.")
        if not 0 <= self.sigma <= 1:
            raise InputError(f"σ of BCL must be in [0, 1]. Got {self.sigma} instead.")
        if not 0 <= self.middle_tolerance <= 0.5:
            raise InputError(
                f"middle_tolerance must be in [0, 0.5]. Got {self.middle_tolerance} instead."
            )


@dataclass(frozen=True)
class Targets:
    """The labels of a batch.

    Attributes:
        gold: Gold similarity of each row in [0, 1], ``(rows,)`` float32.
        pair_ids: Id of each row's sentence pair, ``(rows,)`` int64, negative where the row has no
            partner; None when the labels carry no ids.
    """

    gold: Tensor
    pair_ids: Tensor | None

    @classmethod
    def from_labels(cls, labels: Tensor, *, rows: int) -> Targets:
        """Reads the label column of a batch.

        Args:
            labels: ``(rows,)`` gold similarities, or ``(rows, 2)``: gold and pair id. Ids are
                whole numbers below 2^24 (exact in float32), -1 for a row without a partner.
            rows: Number of rows in the batch.

        Returns:
            The labels, taken apart.

        Raises:
            InputError: If the shape is neither, or a gold similarity is not in [0, 1].
        """
        if (
            labels.ndim not in (1, 2)
            or labels.shape[0] != rows
            or labels.shape[1:] not in ((), (2,))
        ):
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
    """A batch behind the encoder.

    Attributes:
        first: Embeddings of the conditional sentences 1, ``(rows, dim)``.
        second: Embeddings of the conditional sentences 2, ``(rows, dim)``.
        targets: The labels.
        first_features: The preprocessed column 1, for a second view of it.
    """

    first: Tensor
    second: Tensor
    targets: Targets
    first_features: dict[str, Any]

    @property
    def similarities(self) -> Tensor:
        """Cosine of the two embeddings of each row, ``(rows,)`` float32."""
        return F.cosine_similarity(self.first.float(), self.second.float(), dim=-1)


class SimilarityLoss(nn.Module, ABC):
    """Base of the objectives over the cosine of two conditional sentences.

    A subclass says in ``compute`` what it makes of similarities and labels. The two columns of
    conditional sentences run through the model as one merged forward.

    Inputs:
        | columns                                                     | labels            |
        |-------------------------------------------------------------|-------------------|
        | conditional sentence 1, conditional sentence 2 (text pairs) | gold, or gold, id |
    """

    def __init__(self, model: SentenceTransformer, options: LossOptions | None = None) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train.
            options: Numbers of the objective; the defaults if None.
        """
        super().__init__()
        self.model = model
        self.options = options or LossOptions()

    @staticmethod
    @abstractmethod
    def compute(similarities: Tensor, targets: Targets, options: LossOptions) -> Tensor:
        """The objective itself.

        Args:
            similarities: Predicted similarity of each row, ``(rows,)``.
            targets: The labels of the batch.
            options: Numbers of the objective.

        Returns:
            A float32 scalar, lower is better.
        """

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor) -> Tensor:
        """Computes the loss of a batch.

        Args:
            sentence_features: The two preprocessed columns, ``rows`` rows each.
            labels: ``(rows,)`` or ``(rows, 2)``, see ``Targets.from_labels``.

        Returns:
            A float32 scalar.

        Raises:
            InputError: If there are not two columns, or the labels break their rules.
        """
        batch = encode_batch(self.model, sentence_features, labels)
        return self.compute(batch.similarities, batch.targets, self.options)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {}


def encode_batch(
    model: nn.Module, sentence_features: Iterable[dict[str, Any]], labels: Tensor
) -> EncodedBatch:
    """Runs both columns through the model in one forward.

    Args:
        labels: ``(rows,)`` or ``(rows, 2)``, see ``Targets.from_labels``.
    """
    columns = list(sentence_features)
    if len(columns) != 2:
        raise InputError(
            "A similarity loss takes two columns of conditional sentences. "
            f"Got {len(columns)} instead."
        )
    first_features = dict(columns[0])  # a forward adds its outputs to the mapping it is given
    first, second = embed_columns(model, columns, separate_first=False)  # (rows, dim)
    targets = Targets.from_labels(labels, rows=first.shape[0])
    return EncodedBatch(first, second, targets, first_features)


def second_view(model: nn.Module, batch: EncodedBatch) -> Tensor:
    """Encodes the conditional sentences 1 of a batch once more, under fresh dropout (CCL §3.4).

    A forward of its own: in a merged one the tri-encoder would take the two views for repeated
    texts and encode them once.

    Returns:
        f'(sentence 1, condition), ``(rows, dim)``.
    """
    view: Tensor = model(dict(batch.first_features))["sentence_embedding"]
    return view
