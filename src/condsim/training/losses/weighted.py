"""Weighted sums of objectives, with one forward for all of them (BCL takes a second)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from condsim.errors import InputError, unknown_name
from condsim.training.losses.base import LossOptions, Targets, encode_batch
from condsim.training.losses.contrastive import new_head, project_batch
from condsim.training.losses.registry import OBJECTIVES


class WeightedSumLoss(nn.Module):
    """A weighted sum of objectives, such as Quad + MSE (C-STS §4.1).

    Returns a dict with one entry per term, already weighted; the sentence-transformers trainer logs
    each and trains on their sum. All terms share the embeddings, and BCL and C-MSE one projection
    head, which exists only if one of them has a weight above 0.

    Example:
        >>> WeightedSumLoss(model, {"mse": 1.0, "correlation": 0.5})  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Makes the loss.

        Args:
            weights: Weight of each objective by its name in ``OBJECTIVES``, at least 0. An
                objective of weight 0 is not computed.

        Raises:
            InputError: If a name is unknown, a weight negative or no weight above 0.
        """
        super().__init__()
        self.model = model
        self.weights = checked_weights(weights)
        self.options = options or LossOptions()
        self._projected = [
            name for name in self.weights if OBJECTIVES[name].compares == "projections"
        ]
        self.head = new_head(model) if self._projected else None
        self._with_view = any(OBJECTIVES[name].load().needs_view for name in self._projected)

    def forward(
        self, sentence_features: Iterable[dict[str, Any]], labels: Tensor
    ) -> dict[str, Tensor]:
        """Computes the weighted terms of a batch.

        Args:
            sentence_features: The two preprocessed columns, ``rows`` rows each.
            labels: ``(rows,)`` or ``(rows, 2)``, see :meth:`Targets.from_labels`; objectives on
                pairs need the ids.

        Returns:
            A float32 scalar per objective with a weight above 0, multiplied by its weight.

        Raises:
            InputError: If there are not two columns, or the labels break their rules.
        """
        batch = encode_batch(self.model, sentence_features, labels)
        terms = weighted_terms(batch.similarities, batch.targets, self.weights, self.options)
        if self.head is not None:
            projected = project_batch(self.model, self.head, batch, with_view=self._with_view)
            for name in self._projected:
                loss = OBJECTIVES[name].load()
                terms[name] = self.weights[name] * loss.compute(projected, self.options)
        return terms

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"weights": self.weights, **self.options.model_dump()}


class CCLLoss(WeightedSumLoss):
    """``λ1 W-ACL + λ2 BCL + λ3 MSE + λ4 C-MSE`` (CCL Eq. 3; all λ are 1 in §4.1).

    In-batch negatives of BCL are those of one process and one step: neither gradient accumulation
    nor more processes add to them. W-ACL takes the pairs whose two rows share that batch.

    Example:
        >>> CCLLoss(model, tau=3.0, sigma=0.75)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        w_acl: float = 1.0,
        bcl: float = 1.0,
        mse: float = 1.0,
        c_mse: float = 1.0,
        tau: float = 5.0,
        sigma: float = 0.5,
    ) -> None:
        """Makes the loss.

        Args:
            model: The encoder to train, a bi- or a tri-encoder.
            w_acl: λ1, at least 0. A term of weight 0 is not computed.
            bcl: λ2, at least 0. Above 0 it costs a second forward over sentence 1.
            mse: λ3, at least 0.
            c_mse: λ4, at least 0.
            tau: τ of BCL, above 0.
            sigma: σ of BCL in [0, 1].

        Raises:
            InputError: If a weight is negative or all are 0, or if τ or σ is out of its range.
        """
        weights = {"w-acl": w_acl, "bcl": bcl, "mse": mse, "c-mse": c_mse}
        super().__init__(model, weights, LossOptions(tau=tau, sigma=sigma))


def weighted_terms(
    similarities: Tensor, targets: Targets, weights: Mapping[str, float], options: LossOptions
) -> dict[str, Tensor]:
    """Computes each objective on the similarities, ``(rows,)``, times its weight."""
    return {
        name: weight * OBJECTIVES[name].load().compute(similarities, targets, options)
        for name, weight in weights.items()
        if OBJECTIVES[name].compares in ("rows", "pairs")
    }


def checked_weights(weights: Mapping[str, float], *, kind: str | None = None) -> dict[str, float]:
    """Checks the weights of a sum, of objectives of one kind if it is given; drops the zeros."""
    known = [
        name
        for name, one in OBJECTIVES.items()
        if (one.compares == kind if kind else one.compares != "levels" and not one.stands_alone)
    ]
    for name, weight in weights.items():
        if name not in known:
            raise unknown_name("objective", name, known)
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"The weight of objective {name!r} must be at least 0. Got {weight} instead."
            )
    kept = {name: float(weight) for name, weight in weights.items() if weight > 0}
    if not kept:
        raise InputError(
            f"At least one objective must have a weight above 0. Got {dict(weights)} instead."
        )
    return kept


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
        return {"parts": self.parts, **self.options.model_dump()}

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


class CrossEncoderSimilarityLoss(nn.Module):
    """A weighted sum of objectives over the raw score of a cross-encoder (C-STS §4.1).

    The score is used as it is, with no activation, as the similarity in [0, 1]. Quad and the losses
    of CCL do not apply: they need an encoding of each sentence under its condition, which a
    cross-encoder has not. ``classification`` takes a logit for each label instead, by itself.

    Inputs:
        | columns                                                         | labels            |
        |-----------------------------------------------------------------|-------------------|
        | text, or two texts of a pair (``encoders.cross_encoder_inputs``) | gold, or gold, id |
    """

    def __init__(
        self,
        model: CrossEncoder,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Makes the loss.

        Args:
            model: The cross-encoder to train, with one output; for ``classification`` with one
                for each label.
            weights: Weight of each objective by its name, at least 0.

        Raises:
            InputError: If an objective does not apply, a name is unknown, a weight negative or no
                weight above 0, or the model has not as many outputs as it needs.
        """
        super().__init__()
        levels = "classification" in weights
        self.weights = checked_weights(weights, kind="levels" if levels else None)
        usable = [name for name, objective in OBJECTIVES.items() if objective.cross_encoder]
        for name in self.weights:
            if name not in usable:
                raise InputError(
                    f"The objective {name!r} does not apply to a cross-encoder: it needs a "
                    "separate conditional encoding of each sentence (C-STS §4.1). Use one of "
                    f"{', '.join(usable)}, or a bi- or tri-encoder."
                )
        if (model.num_labels > 1) != levels:
            wanted = "one for each label" if levels else "one output, the similarity"
            raise InputError(
                f"The cross-encoder must have {wanted}. Got one with {model.num_labels} outputs "
                "instead."
            )
        self.model = model
        self.options = options or LossOptions()

    def forward(
        self,
        inputs: Sequence[Sequence[str]],
        labels: Tensor | Sequence[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """Computes the weighted terms of a batch.

        Args:
            inputs: One or two columns, ``rows`` texts each.
            labels: ``(rows,)`` or ``(rows, 2)``, see :meth:`Targets.from_labels`; a list of rows is
                what the cross-encoder's collator makes of a list column.
            prompt: Passed to the model's preprocessing, as is ``task``.

        Returns:
            A float32 scalar per objective with a weight above 0, multiplied by its weight.

        Raises:
            InputError: If there is another number of columns, or the labels break their rules.
        """
        if len(inputs) not in (1, 2):
            raise InputError(
                f"A cross-encoder loss takes one or two text columns. Got {len(inputs)} instead."
            )
        device = next(self.model.parameters()).device
        texts: list[Any] = list(inputs[0] if len(inputs) == 1 else zip(*inputs, strict=True))
        features = batch_to_device(self.model.preprocess(texts, prompt=prompt, task=task), device)
        outputs = self.model(features)["scores"]  # (rows, outputs)
        if not isinstance(labels, Tensor):
            labels = torch.stack(list(labels))
        targets = Targets.from_labels(labels.to(device), rows=outputs.shape[0])
        if "classification" in self.weights:
            loss = OBJECTIVES["classification"].load()(outputs, targets.gold)
            return {"classification": self.weights["classification"] * loss}
        return weighted_terms(outputs.view(-1), targets, self.weights, self.options)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {"weights": self.weights, **self.options.model_dump()}
