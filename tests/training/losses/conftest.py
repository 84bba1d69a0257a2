from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn


class TableEncoder(nn.Module):
    """Stands in for an encoder: the embedding of a text is the row of its first token."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(vectors.clone())
        self.forwards = 0

    def get_embedding_dimension(self) -> int:
        return int(self.table.shape[1])

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        self.forwards += 1
        return {**features, "sentence_embedding": self.table[features["input_ids"][:, 0]]}


@pytest.fixture
def table_encoder() -> TableEncoder:
    # Cosines of rows 0 and 1, 2, 3: 1.0, 0.6, 0.0
    return TableEncoder(torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 4.0], [0.0, 5.0]]))


@pytest.fixture
def columns() -> list[dict[str, Tensor]]:
    """Rows (0, 1), (0, 2), (0, 3): similarities 1.0, 0.6, 0.0."""
    left, right = torch.tensor([[0], [0], [0]]), torch.tensor([[1], [2], [3]])
    return [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in (left, right)]


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    similarities = torch.rand(12, generator=generator) * 2 - 1
    labels = torch.randint(0, 5, (12,), generator=generator) / 4
    return similarities, labels
