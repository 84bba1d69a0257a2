"""Plot clusters: a point for each text, a panel for each condition."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA

from condsim.errors import require
from condsim.io import replacing
from condsim.search.cluster import umap_reducer
from condsim.search.clusters import Clusters
from condsim.types import FloatArray, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With fewer texts, UMAP has too few neighbors to show anything.
_MIN_UMAP_TEXTS = 16
_CLUSTERS_IN_LEGEND = 12
_MAX_NAME_CHARACTERS = 44


def plot_clusters(results: Sequence[Clusters], path: Path, *, seed: int = 0) -> None:
    """Draw the texts as points, colored by cluster, one panel for each result.

    The points are the embeddings in two dimensions, by UMAP where it is installed
    (``condsim[umap]``) and there are more than 15 texts, else by their first two principal
    components.
    """
    require("matplotlib", extra="search")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(results), 6.4), layout="constrained")
    for panel, result in zip(
        figure.subplots(1, len(results), squeeze=False)[0], results, strict=True
    ):
        _draw(panel, result, seed=seed)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)


def _draw(panel: Axes, result: Clusters, *, seed: int) -> None:
    from matplotlib import colormaps

    points, method = _projected(result.vectors, seed=seed)
    colors = colormaps["tab20" if len(result.clusters) > 10 else "tab10"].colors  # type: ignore[attr-defined]
    unassigned = result.labels < 0
    if unassigned.any():
        label = f"in no cluster ({unassigned.sum():,})"
        x, y = points[unassigned].T
        panel.scatter(x, y, s=6, color="lightgray", linewidths=0, label=label)
    size = float(np.clip(4000 / len(points), 4, 36))
    for cluster in result.clusters:
        members = points[result.labels == cluster.number]
        label = (
            f"{cluster.number}  {shortened(cluster.name, _MAX_NAME_CHARACTERS)} ({cluster.size:,})"
        )
        panel.scatter(
            members[:, 0],
            members[:, 1],
            s=size,
            color=colors[cluster.number % len(colors)],
            alpha=0.75,
            linewidths=0,
            label=label if cluster.number < _CLUSTERS_IN_LEGEND else None,
        )
        panel.annotate(
            str(cluster.number),
            np.median(members, axis=0),
            ha="center",
            va="center",
            weight="bold",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.75},
        )
    panel.set_title(result.condition or "no condition", loc="left", parse_math=False)
    panel.set_xlabel(method, fontsize=8, color="gray")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[["top", "right"]].set_visible(False)
    legend = panel.legend(
        loc="upper left", bbox_to_anchor=(0, -0.05), frameon=False, fontsize=9, markerscale=1.2
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _projected(vectors: FloatArray, *, seed: int) -> tuple[FloatArray, str]:
    """Return embeddings in two dimensions, ``(n, 2)``, and the name of the method."""
    if len(vectors) >= _MIN_UMAP_TEXTS and find_spec("umap"):
        return umap_reducer(len(vectors), dimensions=2, seed=seed)(vectors), "UMAP"
    return PCA(2, random_state=0).fit_transform(vectors), "principal components"
