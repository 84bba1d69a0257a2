"""Quad + MSE training as one would write it first, in plain torch and transformers.

Batches of random sentence pairs, each column padded to its longest text, float32, every row
encoded on its own: two forwards for a bi-encoder, four for a tri-encoder (sentence and condition,
for each of the two sentences). Loss, optimizer, learning rate and clipping are as in condsim.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer

from condsim.data.tasks import pair_rows
from condsim.types import Task

__all__ = ["BiEncoder", "PlainTraining", "TriEncoder", "random_pair_batches"]


class BiEncoder(nn.Module):
    """``f(s, c)``: one text of condition and sentence, mean pooled."""

    def __init__(self, backbone: str, *, max_length: int) -> None:
        """Load the backbone in float32.

        Args:
            backbone: A folder of a transformers checkpoint.
            max_length: Longest text in tokens.
        """
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(backbone)
        self.backbone = AutoModel.from_pretrained(backbone, dtype=torch.float32)
        self.max_length = max_length

    def pooled(self, texts: Sequence[str], more: Sequence[str] | None = None) -> Tensor:
        """Encode texts, or pairs of texts.

        Args:
            texts: Texts, length n.
            more: The second text of each pair, length n, or None.

        Returns:
            Means of the token vectors, (n, dim).
        """
        features = self.tokenizer(
            list(texts),
            None if more is None else list(more),
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        ).to(self.backbone.device)
        states = self.backbone(**features).last_hidden_state  # (n, length, dim)
        mask = features["attention_mask"].unsqueeze(-1)  # (n, length, 1)
        pooled: Tensor = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return pooled

    def forward(self, sentences: Sequence[str], conditions: Sequence[str]) -> Tensor:
        """Encode sentences, each under its condition.

        Args:
            sentences: Sentences, length n.
            conditions: Conditions, length n.

        Returns:
            Embeddings, (n, dim).
        """
        return self.pooled(conditions, sentences)


class TriEncoder(BiEncoder):
    """``h(c; s)``: sentence and condition apart, fused by the Hadamard product (C-STS §4.1)."""

    def __init__(self, backbone: str, *, max_length: int) -> None:
        """Load the backbone and add the condition's layer.

        Args:
            backbone: A folder of a transformers checkpoint.
            max_length: Longest text in tokens.
        """
        super().__init__(backbone, max_length=max_length)
        config = self.backbone.config
        self.condition_layer = nn.Sequential(
            nn.Dropout(config.hidden_dropout_prob),
            nn.Linear(config.hidden_size, config.hidden_size),
        )

    def forward(self, sentences: Sequence[str], conditions: Sequence[str]) -> Tensor:
        """See ``BiEncoder.forward``."""
        condition: Tensor = self.condition_layer(self.pooled(conditions))
        return self.pooled(sentences) * condition


class PlainTraining:
    """The training loop, run a few batches at a time.

    Attributes:
        model: What is trained.
    """

    def __init__(
        self,
        model: BiEncoder,
        task: Task,
        *,
        batch_size: int,
        learning_rate: float,
        max_grad_norm: float,
        seed: int,
    ) -> None:
        """Prepare the epoch.

        Args:
            model: The encoder, on its device.
            task: The training rows, all of them labeled.
            batch_size: Rows in a batch.
            learning_rate: Learning rate of AdamW.
            max_grad_norm: Gradients are clipped to this norm.
            seed: Seed of the order.
        """
        self.model = model.train()
        self._task = task
        self._max_grad_norm = max_grad_norm
        self._pair_ids = torch.tensor(pair_rows(task).pair_ids)
        self._gold = torch.tensor(task.gold)
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=learning_rate, weight_decay=0.0, fused=True
        )
        self._batches = random_pair_batches(self._pair_ids.tolist(), batch_size, seed=seed)

    def run(self, batches: int) -> int:
        """Train on the next batches of the epoch.

        Args:
            batches: How many, fewer if the epoch ends.

        Returns:
            Rows trained on.
        """
        trained = 0
        for rows, _ in zip(self._batches, range(batches), strict=False):
            self._step(rows)
            trained += len(rows)
        return trained

    def _step(self, rows: Sequence[int]) -> None:
        task = self._task
        conditions = [(task.conditions or ())[i] for i in rows]
        first = self.model([task.sentences1[i] for i in rows], conditions)  # (rows, dim)
        second = self.model([task.sentences2[i] for i in rows], conditions)  # (rows, dim)
        similarities = F.cosine_similarity(first, second)  # (rows,)
        gold = self._gold[list(rows)].to(similarities.device)  # (rows,)
        ids = self._pair_ids[list(rows)].to(similarities.device)  # (rows,)
        loss = F.mse_loss(similarities, gold) + _quad(similarities, gold, ids)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), self._max_grad_norm)
        self._optimizer.step()


def random_pair_batches(
    pair_ids: Sequence[int], batch_size: int, *, seed: int
) -> Iterator[list[int]]:
    """Cut an epoch into batches of random sentence pairs; Quad needs both rows of a pair.

    Args:
        pair_ids: Sentence pair of each row, length n.
        batch_size: Rows in a batch.
        seed: Seed of the order.

    Returns:
        Row numbers of each batch; all of ``batch_size`` but the last, so a pair at the edge of two
        batches is torn apart.
    """
    keys = sorted(set(pair_ids))
    random.Random(seed).shuffle(keys)
    rank = {key: place for place, key in enumerate(keys)}
    order = sorted(range(len(pair_ids)), key=lambda row: rank[pair_ids[row]])
    edges = [*range(0, len(order), batch_size), len(order)]
    return (order[start:stop] for start, stop in pairwise(edges))


def _quad(similarities: Tensor, gold: Tensor, ids: Tensor) -> Tensor:
    """Quad with margin 1 over the rows of one sentence pair (C-STS §4.1)."""
    same = ids.unsqueeze(1) == ids.unsqueeze(0)
    high, low = torch.nonzero(same & (gold.unsqueeze(1) > gold.unsqueeze(0)), as_tuple=True)
    if not len(high):
        return similarities.sum() * 0
    return torch.relu(1 + similarities[low] - similarities[high]).mean()
