"""Clusters of texts that are alike with respect to a condition."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from condsim.console import Progress, silent
from condsim.errors import InputError, require, requires_extra
from condsim.io import replacing
from condsim.loading import load_encoder
from condsim.model.base import COLLECTION_SHARE, Condition, check_fraction, check_rows
from condsim.model.criterion import Criterion, unit
from condsim.model.embedding import EmbeddingScorer
from condsim.model.inputs import collect_truncations
from condsim.model.legibility import collect_unread
from condsim.search.clusters import Cluster, Clusters
from condsim.search.names import cluster_words, condition_phrases, value_names
from condsim.search.vectors import encode_texts
from condsim.types import FloatArray, IntArray, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

with requires_extra("search"):
    from sklearn.cluster import HDBSCAN, KMeans
    from sklearn.decomposition import PCA
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import silhouette_score

# In more dimensions, HDBSCAN finds every text far from every other.
_COMPONENTS = 10
_UMAP_COMPONENTS = 5
# More neighbors of a dense point leave more texts in no cluster.
_MIN_NEIGHBORS = 5
# With more texts, k-means starts once only, and the silhouette is measured on a sample.
_LARGE_COLLECTION = 20_000
# Numbers of clusters that k="auto" tries, and the texts it tries them on.
_MAX_AUTO_CLUSTERS = 20
_AUTO_TEXTS = 4_000
# With fewer texts, UMAP has too few neighbors to show anything.
_MIN_UMAP_TEXTS = 16
_CLUSTERS_IN_LEGEND = 12
_MAX_NAME_CHARACTERS = 44


@collect_unread()
def cluster(
    texts: Sequence[str],
    condition: Condition | None,
    *,
    model: str | Path | EmbeddingScorer | None = None,
    k: int | Literal["auto"] | None = None,
    min_size: int | None = None,
    umap: bool = False,
    seed: int = 0,
    vectors: FloatArray | None = None,
    overall: float | None = None,
    progress: Progress = silent,
) -> Clusters:
    """Group texts by one respect in which they are alike.

    With ``k``, k-means puts every text into one of ``k`` clusters. Otherwise HDBSCAN finds the
    number of clusters, and leaves texts that are like few others in none; it looks at the first 10
    principal components of the embeddings.

    Args:
        texts: The texts, length n, 3 or more.
        condition: The respect, such as ``"the complaint"``, or a learned criterion, whose values
            then name the clusters; None compares the texts as a whole.
        model: A bi- or tri-encoder, or what `condsim.load` takes; None is the default model.
        k: Number of clusters, from 2 to n; there are fewer where texts have equal embeddings.
            ``"auto"`` takes the number from 2 to 20 with the highest silhouette.
        min_size: Minimum number of texts of a cluster, from 2 to n; by default 20, or a twentieth
            of the texts where that is less, but 3 or more.
        umap: Whether to reduce the embeddings to 5 dimensions by UMAP first (``condsim[umap]``).
        seed: Seed of k-means, UMAP and the sample of the silhouette.
        vectors: Embeddings of the texts under the condition, ``(n, dimension)``, each of length 1,
            if you have them already; then no model is loaded.
        overall: Share of the embeddings without the condition, in [0, 1]; see
            `EmbeddingScorer.score`. By default 0.3. Vectors are taken unchanged: give the share
            that they were encoded with, by default 0.
        progress: Called with what is encoded.

    Returns:
        The clusters; the same arguments give the same ones.

    Raises:
        InputError: If a text is empty, or a number breaks its rule.
        ModelError: If there is no such model, or it has no embeddings.
        MissingExtraError: If UMAP is asked for and not installed.

    Example:
        >>> texts = ["A red car.", "A red bus.", "A black cat.", "A black dog."]
        >>> [group.size for group in cluster(texts, "the color", k=2).clusters]
        [2, 2]

    References:
        Campello, Moulavi and Sander (2013), *Density-Based Clustering Based on Hierarchical Density
        Estimates*. Rousseeuw (1987), *Silhouettes*.
    """
    rows = check_rows(condition, texts=texts)
    texts = list(rows.sentences[0])
    min_size = _check_numbers(texts, k=k, min_size=min_size)
    if overall is None:
        overall = COLLECTION_SHARE if vectors is None else 0.0
    check_fraction("share", overall=overall)
    if condition is None:
        overall = 0.0
    reducer = umap_reducer(len(texts), dimensions=_UMAP_COMPONENTS, seed=seed) if umap else None
    encoder: EmbeddingScorer | None = None
    if vectors is None:
        encoder = load_encoder(model)
        vectors = encode_texts(encoder, texts, condition, overall, progress)
    elif len(vectors) != len(texts):
        raise InputError(
            f"There must be a vector for each of the {len(texts)} texts; got {len(vectors)}."
        )
    elif not np.isfinite(vectors).all():
        raise InputError(
            "The vectors must have no NaN and no infinity. Leave out the rows without text, for "
            "which condsim encode writes NaN."
        )
    space = vectors if reducer is None else reducer(vectors)
    # BLAS leaves flags of faults behind right results on some processors (scikit-learn #31395).
    tried: dict[int, float] = {}
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if k == "auto":
            tried = _silhouettes(space, vectors, len(set(texts)), seed=seed)
            labels = _k_means(space, max(tried, key=tried.__getitem__, default=2), seed=seed)
        elif k is not None:
            labels = _k_means(space, k, seed=seed)
        else:
            labels = _densest(space, min_size, reduced=reducer is not None)
        labels = _by_size(labels)
        groups = [np.flatnonzero(labels == number) for number in range(labels.max() + 1)]
        group_texts = [[texts[row] for row in group] for group in groups]
        names = _names(group_texts, vectors, labels, encoder, condition, overall)
        return Clusters(
            condition=None if condition is None else str(condition),
            method="HDBSCAN" if k is None else "k-means",
            labels=labels,
            clusters=_described(texts, vectors, groups, names),
            silhouette=_silhouette(vectors, labels, seed=seed),
            vectors=vectors,
            tried=tried,
            overall=overall,
        )


def cross_table(first: Clusters, second: Clusters) -> IntArray:
    """Count how the same texts are grouped under two conditions.

    Args:
        first: Clusters of n texts.
        second: Clusters of the same texts.

    Returns:
        How many texts are in each cluster of the first and of the second; the last row and the last
        column count those in none: ``(clusters of first + 1, clusters of second + 1)``.

    Raises:
        InputError: If the numbers of texts differ.
    """
    sizes = len(first.labels), len(second.labels)
    if sizes[0] != sizes[1]:
        raise InputError(
            f"A cross-table needs clusters of the same texts; got {sizes[0]} and {sizes[1]}."
        )
    table = np.zeros((len(first.clusters) + 1, len(second.clusters) + 1), dtype=np.int64)
    # The label -1 counts in the last row or column.
    np.add.at(table, (first.labels, second.labels), 1)
    return table


def umap_reducer(texts: int, *, dimensions: int, seed: int) -> Callable[[FloatArray], FloatArray]:
    """Return a reduction of some number of texts by UMAP; raise `MissingExtraError` without it."""
    with warnings.catch_warnings():
        # UMAP warns that TensorFlow is missing.
        warnings.simplefilter("ignore", ImportWarning)
        library = require("umap", extra="umap")

    def reduce(vectors: FloatArray) -> FloatArray:
        reducer = library.UMAP(
            n_components=min(dimensions, texts - 2),
            n_neighbors=min(15, texts - 1),
            min_dist=0.0,
            metric="cosine",
            # The spectral start needs more texts than dimensions, and is slow to fail.
            init="spectral" if texts > 50 else "random",
            random_state=seed,
        )
        # UMAP warns that a seed means one thread, and about its own libraries.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reduced: FloatArray = reducer.fit_transform(vectors)
        return reduced

    return reduce


def _check_numbers(
    texts: Sequence[str], *, k: int | Literal["auto"] | None, min_size: int | None
) -> int:
    """Check the numbers against the texts; return the minimum size of a cluster."""
    number = len(texts)
    if number < 3:
        raise InputError(f"Clusters need at least 3 texts; got {number}.")
    if k is not None:
        if min_size is not None:
            raise InputError(
                "Give either the number of clusters ('k') or the size of the smallest "
                f"('min_size'), not both; got {k} and {min_size}."
            )
        if k != "auto" and not (isinstance(k, int | np.integer) and 2 <= k <= number):
            raise InputError(
                "The number of clusters 'k' must be 'auto' or a whole number from 2 to "
                f"{number}, the number of texts; got {k!r}."
            )
    if min_size is None:
        return max(3, min(20, number // 20))
    if not 2 <= min_size <= number:
        raise InputError(
            f"The smallest cluster 'min_size' must have from 2 to {number} texts; got {min_size}."
        )
    return min_size


def _k_means(space: FloatArray, k: int, *, seed: int) -> IntArray:
    starts = 10 if len(space) <= _LARGE_COLLECTION else 1
    with warnings.catch_warnings():
        # Equal embeddings make fewer clusters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: IntArray = KMeans(k, n_init=starts, random_state=seed).fit_predict(space)
    return labels


def _silhouettes(
    space: FloatArray, vectors: FloatArray, distinct: int, *, seed: int
) -> dict[int, float]:
    """Return the silhouette of k-means by the number of clusters, on a sample of the texts."""
    if len(space) > _AUTO_TEXTS:
        drawn = np.random.default_rng(seed).choice(len(space), _AUTO_TEXTS, replace=False)
        space, vectors = space[drawn], vectors[drawn]
    silhouettes = {}
    for k in range(2, min(_MAX_AUTO_CLUSTERS, distinct - 1) + 1):
        silhouette = _silhouette(vectors, _k_means(space, k, seed=seed), seed=seed)
        if silhouette is not None:
            silhouettes[k] = silhouette
    return silhouettes


def _densest(space: FloatArray, min_size: int, *, reduced: bool) -> IntArray:
    """Cluster by HDBSCAN, on the first principal components unless already reduced."""
    if not reduced:
        space = PCA(min(_COMPONENTS, *space.shape), random_state=0).fit_transform(space)
        # Equal texts differ in the last bits, which HDBSCAN would take for structure.
        space = np.round(space, 5)
    if not np.ptp(space, axis=0).any():
        # Among equal texts alone, no group is denser than another.
        return np.zeros(len(space), np.int64)
    method = HDBSCAN(
        min_cluster_size=min_size, min_samples=min(_MIN_NEIGHBORS, min_size), copy=True
    )
    labels: IntArray = method.fit_predict(space)
    return labels


def _by_size(labels: IntArray) -> IntArray:
    """Number clusters by size, the largest 0, equal ones by their first text; -1 stays."""
    values, first, counts = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    number = {int(values[index]): new for new, index in enumerate(order)}
    return np.array([number.get(int(label), -1) for label in labels], dtype=np.int64)


def _names(
    groups: list[list[str]],
    vectors: FloatArray,
    labels: IntArray,
    encoder: EmbeddingScorer | None,
    condition: Condition | None,
    overall: float,
) -> list[tuple[str, ...]]:
    """Name groups of texts, by frequent words without an encoder or a condition."""
    if encoder is None or condition is None or not groups:
        return cluster_words(groups)
    criterion = encoder.resolved(condition)
    if isinstance(criterion, Criterion) and criterion.values:
        return value_names(criterion, vectors, labels, len(groups))
    means = [vectors[labels == number].mean(axis=0) for number in range(len(groups))]
    with collect_truncations(warn=False), collect_unread(log=False):
        return condition_phrases(
            groups,
            unit(np.stack(means)),
            lambda phrases: encoder.encode(phrases, condition, overall=overall),
        )


def _described(
    texts: list[str],
    vectors: FloatArray,
    groups: Sequence[IntArray],
    names: Sequence[tuple[str, ...]],
) -> tuple[Cluster, ...]:
    clusters = []
    for number, group in enumerate(groups):
        members = vectors[group]  # (m, dim)
        nearest = int(group[np.argmax(members @ members.mean(axis=0))])
        clusters.append(Cluster(number, len(group), names[number], nearest, texts[nearest]))
    return tuple(clusters)


def _silhouette(vectors: FloatArray, labels: IntArray, *, seed: int) -> float | None:
    assigned = np.flatnonzero(labels >= 0)
    if len(assigned) > _LARGE_COLLECTION:
        assigned = np.random.default_rng(seed).choice(assigned, _LARGE_COLLECTION, replace=False)
    if not 2 <= len(np.unique(labels[assigned])) < len(assigned):
        return None
    return float(silhouette_score(vectors[assigned], labels[assigned], metric="cosine"))


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
