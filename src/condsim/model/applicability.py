"""Applicability of a condition: a logistic model of each text, on a bi-encoder's embeddings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from condsim.errors import ModelError, one_line
from condsim.io import write_text
from condsim.types import Float64Array, FloatArray

FILE_NAME = "applicability.json"
"""File of the head in a model folder."""

FORMAT = 2

PROBE = ("A man throws a ball to a dog.", "number of people")
"""Sentence and condition whose embedding shows whether a head and a model belong together."""

# The int8 and float32 forms of one model have a higher cosine, different models a lower one.
MIN_PROBE_COSINE = 0.98


MIN_APPLICABILITY = 0.2
"""Probability below which a condition does not seem to apply to a pair, and its score is marked."""


def silence(first: float, second: float) -> str:
    """Say which of two texts seems not to mention a condition, by the probability that it does."""
    # NaN, of a text without a score, is marked neither.
    if not first * second < MIN_APPLICABILITY:
        return ""
    if max(first, second) < 0.5:
        return "neither text seems to mention it"
    return f"the {'first' if first < second else 'second'} text seems not to mention it"


@dataclass(frozen=True, eq=False)
class Embedded:
    """Embeddings of n texts under their conditions, of the texts alone and of the conditions alone.

    All are ``(n, d)`` and of length 1.
    """

    under: FloatArray
    plain: FloatArray
    condition: FloatArray


def head_features(rows: Embedded) -> Float64Array:
    """Compute the inputs of the logistic model of one text, of comparable spread, ``(n, 2 d + 3)``.

    With the embeddings u (conditional), s (of the text) and c (of the condition)::

        u √d,   c √d,   5 (u·c, u·s, s·c)
    """
    scale = np.sqrt(rows.under.shape[1])
    under, plain, condition = rows.under, rows.plain, rows.condition
    pairs = ((under, condition), (under, plain), (plain, condition))
    cosines = np.stack([np.einsum("nd,nd->n", *pair) for pair in pairs], axis=1, dtype=np.float64)
    columns = [under * scale, condition * scale, 5 * cosines]
    return np.concatenate(columns, axis=1, dtype=np.float64)


def logistic(logits: Float64Array) -> Float64Array:
    """Compute 1 / (1 + exp(-x)) in a form that never overflows."""
    return np.asarray(0.5 * (1 + np.tanh(logits / 2)))


@dataclass(frozen=True, eq=False)
class ApplicabilityHead:
    """Weights of a fitted head: probability = 1 / (1 + exp(-(features · weights + bias))).

    Attributes:
        model: Name of the model whose embeddings it was fitted on.
        weights: One for each feature, ``(2 d + 3,)``.
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
        """Compute how likely each text speaks of its condition, ``(n,)``."""
        return logistic(head_features(rows) @ self.weights + self.bias).astype(np.float32)

    def check(self, probe: FloatArray, *, model: str) -> None:
        """Refuse a model whose embedding of `PROBE` differs from the head's, with a ModelError."""
        cosine = float(probe @ self.probe) if probe.shape == self.probe.shape else 0.0
        if cosine < MIN_PROBE_COSINE:
            raise ModelError(
                f"The applicability head was fitted on the embeddings of {self.model!r}, which "
                f"differ from the embeddings of {model!r} (cosine {cosine:.2f}). Fit a head for "
                "this model with 'condsim applicability fit'."
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
        advice = "Fit or download it again."
        causes = (OSError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError)
        message = f"{path} is not an applicability head"
        with one_line(message, *causes, advice=advice, kind=ModelError):
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
        fits = head.weights.size == 2 * head.dimension + 3 and np.isfinite(numbers).all()
        if not is_current or not fits:
            raise ModelError(
                f"{path}: must have 2 d + 3 weights for a probe of length d, all finite "
                f"numbers, and be of format {FORMAT}; fit or download it again."
            )
        return head


def head_of(folder: Path) -> ApplicabilityHead | None:
    """Read the head of a model folder, if it has one; ModelError if it is damaged."""
    path = folder / FILE_NAME
    return ApplicabilityHead.load(path) if path.is_file() else None
