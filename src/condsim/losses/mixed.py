"""The loss of a batch from several sources, whose distinct inputs are encoded once each."""

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
                name: weight * OBJECTIVES[name].load().compute(student, part["vectors"])
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
