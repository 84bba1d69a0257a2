"""Plots of scores. Needs the ``train`` extra (matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from condsim.errors import InputError, require
from condsim.files import replacing
from condsim.types import FloatArray

__all__ = ["score_histogram"]


def score_histogram(scores: Mapping[str, FloatArray], path: Path, *, bins: int = 40) -> None:
    """Draws how scores spread over [0, 1], one panel for each model, on one scale.

    Args:
        scores: Scores in [0, 1] by the name of their model, ``(n,)`` each.
        path: The PNG file to write.
        bins: Number of bars.

    Raises:
        InputError: If there is no model, or the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    if not scores:
        raise InputError("A histogram needs the scores of one model or more. Got none.")
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 1.9 * len(scores) + 0.5), layout="constrained")
    panels = figure.subplots(len(scores), 1, sharex=True, squeeze=False)[:, 0]
    edges = np.linspace(0, 1, bins + 1)
    for panel, (name, values) in zip(panels, scores.items(), strict=True):
        panel.hist(values, bins=edges, weights=np.full(len(values), 100 / len(values)))
        panel.axvline(float(np.median(values)), color="black", linewidth=1, linestyle="--")
        panel.set_title(name, fontsize=10, loc="left")
        panel.set_ylabel("% of rows")
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("score (dashed: median)")
    panels[-1].set_xlim(0, 1)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
