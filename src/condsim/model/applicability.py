"""Applicability of a condition to two sentences: a logistic model on a bi-encoder's embeddings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.errors import ModelError
from condsim.io import write_text
from condsim.types import Float64Array, FloatArray

FILE_NAME = "applicability.json"
"""File of the head in a model folder."""

FORMAT = 1

PROBE = ("A man throws a ball to a dog.", "number of people")
"""Sentence and condition whose embedding shows whether a head and a model belong together."""

# The int8 and float32 forms of one model have a higher cosine, different models a lower one.
MIN_PROBE_COSINE = 0.98


@dataclass(frozen=True, eq=False)
class Embedded:
    """A model's embeddings of n rows, each ``(n, dimension)`` and of length 1.

    Attributes:
        first: First sentences, each under its condition.
        second: Second sentences, each under its condition.
        plain_first: First sentences alone.
        plain_second: Second sentences alone.
        condition: Conditions alone.
    """

    first: FloatArray
    second: FloatArray
    plain_first: FloatArray
    plain_second: FloatArray
    condition: FloatArray


def features(rows: Embedded) -> Float64Array:
    """Compute the inputs of the logistic model, which do not change if the sentences are swapped.

    With u, v the conditional embeddings, s, t those of the sentences and c that of the condition::

        (u + v) √d / 2,   |u - v| √d,   c √d,
        5 (u·v, s·t, and of u·c and v·c, s·c and t·c, u·s and v·t the lesser and the greater)

    Args:
        rows: Embeddings of n rows.

    Returns:
        Features of comparable spread, ``(n, 3 d + 8)``.
    """
    scale = np.sqrt(rows.first.shape[1])
    u, v = rows.first.astype(np.float64), rows.second.astype(np.float64)  # (n, d)
    s, t, c = rows.plain_first, rows.plain_second, rows.condition  # (n, d)
    cosines = [_row_dot(u, v), _row_dot(s, t)]
    for first, second in (
        (_row_dot(u, c), _row_dot(v, c)),
        (_row_dot(s, c), _row_dot(t, c)),
        (_row_dot(u, s), _row_dot(v, t)),
    ):
        cosines += [np.minimum(first, second), np.maximum(first, second)]
    return np.concatenate(
        [(u + v) * (scale / 2), np.abs(u - v) * scale, c * scale, 5 * np.stack(cosines, axis=1)],
        axis=1,
    )


def _row_dot(first: NDArray[Any], second: NDArray[Any]) -> Float64Array:
    return np.asarray(np.einsum("nd,nd->n", first, second), np.float64)


@dataclass(frozen=True, eq=False)
class ApplicabilityHead:
    """Weights of a fitted head: probability = 1 / (1 + exp(-(features · weights + bias))).

    Attributes:
        model: Name of the model whose embeddings it was fitted on.
        weights: One for each feature, ``(3 d + 8,)``.
        probe: The model's embedding of `PROBE`, ``(d,)``.
        facts: Training data and quality of the head.
    """

    model: str
    weights: Float64Array
    bias: float
    probe: FloatArray
    facts: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        """Length d of the embeddings it takes."""
        return int(self.probe.size)

    def probability(self, rows: Embedded) -> FloatArray:
        """Compute the probabilities that the conditions apply, ``(n,)``."""
        logits = features(rows) @ self.weights + self.bias
        # The logistic function in a form that never overflows.
        return (0.5 * (1 + np.tanh(logits / 2))).astype(np.float32)

    def check(self, probe: FloatArray, *, model: str) -> None:
        """Refuse a model whose embedding of `PROBE` is not that of the head, with a ModelError."""
        cosine = float(probe @ self.probe) if probe.shape == self.probe.shape else 0.0
        if cosine < MIN_PROBE_COSINE:
            raise ModelError(
                f"The applicability head was fitted on the embeddings of {self.model!r}, which "
                f"differ from those of {model!r} (cosine {cosine:.2f}). Fit a head for this model "
                "with 'condsim applicability fit'."
            )

    def save(self, path: Path | str) -> None:
        """Write the head as JSON in one step; in a model folder, the file is `FILE_NAME`."""
        content = {
            "format": FORMAT,
            "model": self.model,
            "facts": dict(self.facts),
            "bias": round(self.bias, 6),
            "weights": [round(float(value), 6) for value in self.weights],
            "probe": [round(float(value), 4) for value in self.probe],
        }
        write_text(Path(path), json.dumps(content) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> ApplicabilityHead:
        """Read a head; ModelError if it is missing, damaged or of another format."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            is_current = content["format"] == FORMAT
            head = cls(
                model=str(content["model"]),
                weights=np.array(content["weights"], np.float64),
                bias=float(content["bias"]),
                probe=np.array(content["probe"], np.float32),
                facts=dict(content["facts"]),
            )
            numbers = np.concatenate([[head.bias], head.weights, head.probe])
        except (
            OSError,
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise ModelError(
                f"{path} is not an applicability head ({error!r}); fit or download it again."
            ) from None
        fits = head.weights.size == 3 * head.dimension + 8 and np.isfinite(numbers).all()
        if not is_current or not fits:
            raise ModelError(
                f"{path}: must have 3 d + 8 weights for a probe of length d, all finite "
                f"numbers, and be of format {FORMAT}; fit or download it again."
            )
        return head


def head_of(folder: Path) -> ApplicabilityHead | None:
    """Read the head of a model folder, if it has one; ModelError if it is damaged."""
    path = folder / FILE_NAME
    return ApplicabilityHead.load(path) if path.is_file() else None
