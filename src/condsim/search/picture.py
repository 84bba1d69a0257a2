"""Clusters as a picture: every text a point, a panel for each condition."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA

from condsim.errors import InputError, require
from condsim.io import replacing
from condsim.search.cluster import Clusters, umap_reducer
from condsim.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 15  # texts, up to which UMAP has too few neighbours to show anything
_NAMED = 12  # clusters that the legend names
_LONGEST = 44  # characters of a name


def plot_clusters(found: Sequence[Clusters], path: Path, *, seed: int = 0) -> None:
    """Draws the texts as points, coloured by cluster, one panel for each result.

    The points are the embeddings in two dimensions, by UMAP where it is installed
    (``condsim[umap]``) and there are more than 15 texts, else by their first two principal
    components.

    Args:
        found: Clusters, one or more, from left to right.
        path: The PNG file to write.
        seed: Seed of UMAP.

    Raises:
        InputError: If there is nothing to draw, or the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    if not found:
        raise InputError("A picture needs clusters under one condition or more. Got none.")
    require("matplotlib", extra="search")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(found), 6.4), layout="constrained")
    for panel, result in zip(figure.subplots(1, len(found), squeeze=False)[0], found, strict=True):
        _draw(panel, result, seed=seed)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)


def _draw(panel: Axes, result: Clusters, *, seed: int) -> None:
    from matplotlib import colormaps

    points, how = _flat(result.vectors, seed=seed)
    colours = colormaps["tab20" if len(result.clusters) > 10 else "tab10"].colors  # type: ignore[attr-defined]
    loose = result.labels < 0
    if loose.any():
        label = f"in no cluster ({loose.sum():,})"
        x, y = points[loose].T
        panel.scatter(x, y, s=6, color="lightgrey", linewidths=0, label=label)
    size = float(np.clip(4000 / len(points), 4, 36))
    for one in result.clusters:
        mine = points[result.labels == one.number]
        label = f"{one.number}  {_short(one.name)} ({one.size:,})"
        panel.scatter(
            mine[:, 0],
            mine[:, 1],
            s=size,
            color=colours[one.number % len(colours)],
            alpha=0.75,
            linewidths=0,
            label=label if one.number < _NAMED else None,
        )
        panel.annotate(
            str(one.number),
            np.median(mine, axis=0),
            ha="center",
            va="center",
            weight="bold",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.75},
        )
    panel.set_title(result.condition or "no condition", loc="left", parse_math=False)
    panel.set_xlabel(how, fontsize=8, color="grey")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[["top", "right"]].set_visible(False)
    legend = panel.legend(
        loc="upper left", bbox_to_anchor=(0, -0.05), frameon=False, fontsize=9, markerscale=1.2
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _flat(vectors: FloatArray, *, seed: int) -> tuple[FloatArray, str]:
    """Embeddings in two dimensions, ``(n, 2)``, and how they were made."""
    if len(vectors) > _FEW and find_spec("umap"):
        return umap_reducer(len(vectors), dimensions=2, seed=seed)(vectors), "UMAP"
    return PCA(2, random_state=0).fit_transform(vectors), "principal components"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
