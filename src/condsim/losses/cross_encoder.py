"""The objectives that apply to a cross-encoder, which scores both sentences in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from condsim.errors import InputError
from condsim.losses.base import LossOptions, Targets
from condsim.losses.registry import OBJECTIVES
from condsim.losses.weighted import checked_weights, weighted_terms

_APPLICABLE = tuple(name for name, objective in OBJECTIVES.items() if objective.cross_encoder)


class CrossEncoderSimilarityLoss(nn.Module):
    """A weighted sum of objectives over the raw score of a cross-encoder (C-STS §4.1).

    The score is used as it is, with no activation, as the similarity in [0, 1]. Quad and the losses
    of CCL do not apply: they need an encoding of each sentence under its condition, which a
    cross-encoder has not.

    Inputs:
        | columns                                                        | labels            |
        |----------------------------------------------------------------|-------------------|
        | first text, second text (see ``encoders.cross_encoder_pairs``) | gold, or gold, id |
    """

    def __init__(
        self,
        model: CrossEncoder,
        weights: Mapping[str, float],
        options: LossOptions | None = None,
    ) -> None:
        """Makes the loss.

        Args:
            model: The cross-encoder to train, with one output.
            weights: Weight of each objective by its name, at least 0.
            options: Numbers of the objectives.

        Raises:
            InputError: If an objective does not apply, a name is unknown, a weight negative or no
                weight above 0, or the model has more than one output.
        """
        super().__init__()
        self.weights = checked_weights(weights)
        for name in self.weights:
            if name not in _APPLICABLE:
                raise InputError(
                    f"The objective {name!r} does not apply to a cross-encoder: it needs a "
                    "separate conditional encoding of each sentence (C-STS §4.1). Use one of "
                    f"{', '.join(_APPLICABLE)}, or a bi- or tri-encoder."
                )
        if model.num_labels != 1:
            raise InputError(
                "The cross-encoder must have one output, the similarity. "
                f"Got one with {model.num_labels} outputs instead."
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
            inputs: The two text columns, ``rows`` texts each.
            labels: ``(rows,)`` or ``(rows, 2)``, see :meth:`Targets.from_labels`; a list of rows is
                what the cross-encoder's collator makes of a list column.
            prompt: Passed to the model's preprocessing, as is ``task``.

        Returns:
            A float32 scalar per objective with a weight above 0, multiplied by its weight.

        Raises:
            InputError: If there are not two columns, or the labels break their rules.
        """
        if len(inputs) != 2:
            raise InputError(
                f"A cross-encoder loss takes two text columns. Got {len(inputs)} instead."
            )
        device = next(self.model.parameters()).device
        pairs = list(zip(inputs[0], inputs[1], strict=True))
        features = batch_to_device(self.model.preprocess(pairs, prompt=prompt, task=task), device)
        similarities = self.model(features)["scores"].view(-1)  # (rows,)
        if not isinstance(labels, Tensor):
            labels = torch.stack(list(labels))
        targets = Targets.from_labels(labels.to(device), rows=similarities.shape[0])
        return weighted_terms(similarities, targets, self.weights, self.options)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings shown on the model card."""
        return {
            "weights": self.weights,
            "scale": self.options.scale,
            "middle_tolerance": self.options.middle_tolerance,
            "ranking_margin": self.options.ranking_margin,
        }
