"""The loss of a batch from several sources, and what learns the embeddings of a teacher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from condsim.errors import InputError
from condsim.losses.base import LossOptions, Targets
from condsim.losses.registry import OBJECTIVES
from condsim.losses.weighted import checked_weights, weighted_terms


class MixedLoss(nn.Module):
    """Weighted sums of objectives over the parts of a mixed batch, which share one encoding.

    A part is what an objective compares: the rows of all sources that share the recipe's objective,
    the rows of a source with one of its own, or the inputs of a source with a teacher's vectors.

    Inputs:
        | columns                                      | labels                                 |
        |----------------------------------------------|----------------------------------------|
        | sub-batches of distinct conditional sentences | for each part in the batch, its tensors |

    The tensors of a part with labels are ``first`` and ``second`` (rows of the inputs, all
    sub-batches in a row), ``gold``, ``pair_ids``, ``list_ids`` and ``weights``, each ``(rows,)``;
    those of a part with vectors are ``inputs``, ``(m,)``, and ``vectors``, ``(m, teacher's dim)``.

    Example:
        >>> MixedLoss(model, {"train": {"mse": 1.0}, "plain": {"mse": 2.0}})  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        parts: Mapping[str, Mapping[str, float]],
        options: LossOptions | None = None,
    ) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train, a bi- or a tri-encoder.
            parts: Weight of each objective, by the name of the part.
            options: Numbers of the objectives.

        Raises:
            InputError: If an objective is unknown or does not go with others, its weight is
                negative, or a part has none above 0.
        """
        super().__init__()
        self.model = model
        self.options = options or LossOptions()
        self.parts = {name: _checked(weights) for name, weights in parts.items()}

    def forward(
        self,
        sentence_features: Iterable[dict[str, Any]],
        labels: Mapping[str, Mapping[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Computes the weighted terms of a batch.

        Args:
            sentence_features: Preprocessed sub-batches of the distinct inputs.
            labels: The tensors of each part that the batch has something of.

        Returns:
            A float32 scalar for each objective of these parts, multiplied by its weight; those of a
            part other than ``train`` are named after it, such as ``plain-mse``.
        """
        encoded = [self.model(dict(one))["sentence_embedding"] for one in sentence_features]
        vectors = torch.cat(encoded).float()  # (inputs, dim)
        terms: dict[str, Tensor] = {}
        for name, part in labels.items():
            found = self._terms(vectors, part, self.parts[name])
            start = "" if name == "train" else f"{name}-"
            terms |= {f"{start}{term}": value for term, value in found.items()}
        return terms

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"parts": self.parts, **asdict(self.options)}

    def _terms(
        self, vectors: Tensor, part: Mapping[str, Tensor], weights: Mapping[str, float]
    ) -> dict[str, Tensor]:
        if "vectors" in part:
            student = vectors[part["inputs"]]
            return {
                name: weight * OBJECTIVES[name].load()(student, part["vectors"])
                for name, weight in weights.items()
            }
        similarities = F.cosine_similarity(vectors[part["first"]], vectors[part["second"]], dim=-1)
        targets = Targets(part["gold"], part["pair_ids"], part["list_ids"], part["weights"])
        return weighted_terms(similarities, targets, weights, self.options)


def _checked(weights: Mapping[str, float]) -> dict[str, float]:
    """Checks the weights of a part: of vectors, or of rows and pairs."""
    kinds = {OBJECTIVES[name].compares for name in weights if name in OBJECTIVES}
    if kinds == {"vectors"}:
        return checked_weights(weights, kind="vectors")
    checked = checked_weights(weights)
    if kinds - {"rows", "pairs"}:
        raise InputError(
            "The rows of several sources are compared by their cosines only, and got the "
            f"objectives {', '.join(weights)}. Leave out 'bcl' and 'c-mse'."
        )
    return checked


def vector_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """``mean(1 - cos(student, teacher))`` over the inputs of a batch, the objective ``vectors``.

    After Reimers and Gurevych, 2020, "Making Monolingual Sentence Embeddings Multilingual", where
    it is the squared distance.

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
    """Mean squared difference between the two's cosines of every two inputs: ``relations``.

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
