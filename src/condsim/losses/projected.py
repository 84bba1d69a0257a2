"""Base of the objectives in the projected space of CCL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from condsim.errors import InputError
from condsim.losses.base import EncodedBatch, LossOptions, Targets, encode_batch, second_view
from condsim.losses.projection import ProjectionHead

__all__ = ["ProjectedBatch", "ProjectedLoss", "new_head", "project_batch"]


@dataclass(frozen=True)
class ProjectedBatch:
    """A batch in the projected space.

    Attributes:
        first: g(f(sentence 1, condition)), ``(rows, dim)``.
        second: g(f(sentence 2, condition)), ``(rows, dim)``.
        view: g(f'(sentence 1, condition)), sentence 1 under a second dropout, ``(rows, dim)``; None
            where no objective asks for it.
        targets: The labels of the batch.
    """

    first: Tensor
    second: Tensor
    view: Tensor | None
    targets: Targets


class ProjectedLoss(nn.Module, ABC):
    """Base of the objectives over g(f(sentence, condition)).

    A subclass says in ``compute`` what it makes of a projected batch and in ``needs_view`` whether
    it needs sentence 1 under a second dropout, which costs one more forward over that column.

    Inputs:
        | columns                                                     | labels            |
        |-------------------------------------------------------------|-------------------|
        | conditional sentence 1, conditional sentence 2 (text pairs) | gold, or gold, id |
    """

    needs_view: ClassVar[bool] = False

    def __init__(self, model: SentenceTransformer, options: LossOptions | None = None) -> None:
        """Makes the loss with a fresh projection head.

        Args:
            model: The encoder to train.
            options: Numbers of the objective; the defaults if None.

        Raises:
            InputError: If the model does not know its dimension.
        """
        super().__init__()
        self.model = model
        self.options = options or LossOptions()
        self.head = new_head(model)

    @staticmethod
    @abstractmethod
    def compute(batch: ProjectedBatch, options: LossOptions) -> Tensor:
        """The objective itself.

        Args:
            batch: The batch in the projected space.
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
        projected = project_batch(self.model, self.head, batch, with_view=self.needs_view)
        return self.compute(projected, self.options)


def new_head(model: SentenceTransformer) -> ProjectionHead:
    """Makes a projection head that fits an encoder.

    Args:
        model: The encoder.

    Returns:
        A head of the encoder's dimension, freshly initialised.

    Raises:
        InputError: If the model does not know its dimension.
    """
    dimension = model.get_embedding_dimension()
    if dimension is None:
        raise InputError("BCL and C-MSE need an encoder that knows its embedding dimension.")
    return ProjectionHead(dimension)


def project_batch(
    model: nn.Module, head: ProjectionHead, batch: EncodedBatch, *, with_view: bool
) -> ProjectedBatch:
    """Projects a batch, all of it in one pass through the head.

    Args:
        model: The encoder, for the second view.
        head: The projection head.
        batch: The encoded batch.
        with_view: Whether sentence 1 is encoded once more, under a second dropout.

    Returns:
        The batch in the projected space.
    """
    embeddings = [batch.first, batch.second]
    if with_view:
        embeddings.append(second_view(model, batch))
    first, second, *view = head(embeddings)
    return ProjectedBatch(first, second, view[0] if view else None, batch.targets)
