"""Vectors of unit length."""

from __future__ import annotations

import numpy as np

from condsim.errors import InputError
from condsim.types import FloatArray


def unit_length(vectors: FloatArray, *, what: str, first: int = 0) -> FloatArray:
    """Scales vectors to length 1.

    Args:
        vectors: The vectors, ``(n, width)``.

    Returns:
        Vectors of length 1, ``(n, width)`` float32.
    """
    lengths = np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(
            f"{what}: every embedding must be finite and not zero; row {first + int(bad[0])} (from "
            f"0) and {len(bad) - 1} more are not. Compute them again."
        )
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)
