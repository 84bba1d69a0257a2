"""Softmax: the class of a sentence pair from both encodings, the objective of SBERT on NLI."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss as LibrarySoftmaxLoss
from torch import Tensor

from condsim.errors import InputError

__all__ = ["SoftmaxLoss"]


class SoftmaxLoss(LibrarySoftmaxLoss):
    """Cross-entropy of ``softmax(W [u; v; |u - v|] + b)``, sentence-transformers' ``SoftmaxLoss``.

    W and b belong to the loss: they are trained and kept in the checkpoints of a run, and a saved
    encoder has none of them. In a run of several processes their gradients are averaged over them,
    as the encoder's are; the library's would drift apart.

    References:
        - Reimers and Gurevych, 2019, "Sentence-BERT", §3, classification objective.
        - Sun et al., 2022 (SSBC), §4.2, "partially supervised".

    Inputs:
        | columns                               | labels              |
        |---------------------------------------|---------------------|
        | premise, hypothesis (plain sentences) | number of the class |
    """

    def __init__(self, model: SentenceTransformer, *, classes: int = 3) -> None:
        """Makes the loss with a fresh classifier.

        Args:
            model: The encoder to train.
            classes: Number of classes, at least 2.

        Raises:
            InputError: If there are fewer than two classes, or the model does not know its
                dimension.
        """
        dimension = model.get_embedding_dimension()
        if dimension is None:
            raise InputError("The softmax objective needs an encoder that knows its dimension.")
        if classes < 2:
            raise InputError(f"The softmax objective needs two classes or more. Got {classes}.")
        super().__init__(model, dimension, num_labels=classes)
        for weight in self.classifier.parameters():
            weight.register_hook(_mean_over_processes)  # type: ignore[no-untyped-call]


def _mean_over_processes(gradient: Tensor) -> Tensor:
    """Averages a gradient over the processes of a run; of one process it stays as it is."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return gradient
    total = gradient.clone()
    torch.distributed.all_reduce(total)
    return total / torch.distributed.get_world_size()
