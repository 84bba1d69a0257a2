"""Learning the embeddings of a teacher: its vectors, or how its vectors relate to each other."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from condsim.errors import InputError


def vector_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """``mean(1 - cos(student, teacher))`` over the inputs of a batch.

    Args:
        student: Embeddings of the model in training, ``(inputs, dim)``.
        teacher: The teacher's embeddings of the same inputs, ``(inputs, dim)``.

    Returns:
        A float32 scalar in [0, 2].

    Raises:
        InputError: If the shapes are not equal, or there is no input.
    """
    if student.ndim != 2 or student.shape != teacher.shape or not len(student):
        raise InputError(
            "vector_loss takes embeddings of student and teacher of one shape, (inputs, dim). Got "
            f"{tuple(student.shape)} and {tuple(teacher.shape)} instead."
        )
    return 1.0 - F.cosine_similarity(student.float(), teacher.float(), dim=-1).mean()


def relation_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared difference between the two's cosines of every two inputs of a batch.

    Relational knowledge distillation (Park et al., 2019) with cosines: the two may have different
    dimensions, and no projection is needed.

    Args:
        student: Embeddings of the model in training, ``(inputs, dim)``.
        teacher: The teacher's embeddings of the same inputs, ``(inputs, its dim)``.

    Returns:
        A float32 scalar in [0, 4]; 0 for one input.

    Raises:
        InputError: If there are not as many embeddings of the one as of the other, or none.
    """
    if student.ndim != 2 or teacher.ndim != 2 or not len(student) == len(teacher) > 0:
        raise InputError(
            "relation_loss takes as many embeddings of the student, (inputs, dim), as of the "
            f"teacher. Got shapes {tuple(student.shape)} and {tuple(teacher.shape)} instead."
        )
    gaps = _cosines(student) - _cosines(teacher)  # (inputs, inputs), 0 on the diagonal
    pairs = len(student) * (len(student) - 1)
    return gaps.square().sum() / max(pairs, 1)


def _cosines(vectors: Tensor) -> Tensor:
    """Cosine of every two rows, the diagonal exactly 1, ``(inputs, inputs)`` float32."""
    unit = F.normalize(vectors.float(), dim=-1)
    return (unit @ unit.T).diagonal_scatter(torch.ones(len(unit), device=unit.device))


class VectorLoss:
    """The objective ``vectors`` of a source with a teacher's embeddings: see :func:`vector_loss`.

    References:
        - Reimers and Gurevych, 2020, "Making Monolingual Sentence Embeddings Multilingual", where
          it is the squared distance.
    """

    @staticmethod
    def compute(student: Tensor, teacher: Tensor) -> Tensor:
        """Computes the loss of embeddings, ``(inputs, dim)`` each."""
        return vector_loss(student, teacher)


class RelationLoss:
    """The objective ``relations`` of a source with a teacher's embeddings of any dimension.

    References:
        - Park et al., 2019, "Relational Knowledge Distillation".
    """

    @staticmethod
    def compute(student: Tensor, teacher: Tensor) -> Tensor:
        """Computes the loss of embeddings, ``(inputs, dim)`` and ``(inputs, its dim)``."""
        return relation_loss(student, teacher)
