"""Clusters of texts, and the file of their centers that new texts are put into."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from condsim import __version__
from condsim.config import Settings, validated_json
from condsim.console import silent
from condsim.errors import InputError, one_line
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.base import check_rows
from condsim.model.embedding import EmbeddingScorer
from condsim.model.legibility import collect_unread
from condsim.search.store import check_model, model_name
from condsim.search.vectors import encode_texts
from condsim.types import FloatArray, IntArray, html_table

Method = Literal["k-means", "HDBSCAN"]

# Rounding of distances between embeddings.
_DISTANCE_ERROR = 1e-4


@dataclass(frozen=True)
class Cluster:
    """A group of texts.

    Attributes:
        number: Its number, from 0 for the largest.
        size: How many texts are in it, 1 or more.
        words: Up to three words or phrases that answer the condition, or the value of a criterion;
            without a condition, up to four words that are frequent in it and rare in the others.
        nearest: Index of the text that is nearest to its center.
        text: That text.
    """

    number: int
    size: int
    words: tuple[str, ...]
    nearest: int
    text: str

    @property
    def name(self) -> str:
        """The words, such as ``refund, card, charged``."""
        return ", ".join(self.words)


@dataclass(frozen=True)
class Clusters:
    """Texts grouped under one condition.

    Attributes:
        condition: The condition; None if the texts were compared as a whole.
        method: How they were grouped.
        labels: Number of the cluster of each text, ``(n,)``; -1 for a text in none.
        clusters: The clusters, the largest first.
        silhouette: How much nearer texts are to their own cluster than to the next one, by cosine:
            from -1 to 1, around 0 where clusters touch. Texts in no cluster are left out, and of
            more than 20,000 a sample is measured. None with fewer than two clusters.
        vectors: Embeddings of the texts under the condition, ``(n, dimension)``, each of length 1.
        tried: Silhouette of each number of clusters that ``k="auto"`` chose from.
        overall: Share of the embeddings without the condition in the vectors.
    """

    condition: str | None
    method: Method
    labels: IntArray
    clusters: tuple[Cluster, ...]
    silhouette: float | None
    vectors: FloatArray
    tried: Mapping[int, float] = field(default_factory=dict)
    overall: float = 0.0

    def __repr__(self) -> str:
        condition = "" if self.condition is None else f" under {self.condition!r}"
        return f"Clusters({len(self.clusters):,} of {len(self.labels):,} texts{condition})"

    def _repr_html_(self) -> str:
        head = ("number", "texts", "words", "nearest text")
        rows = ((group.number, group.size, group.name, group.text) for group in self.clusters)
        return html_table(repr(self), head, rows)

    @property
    def unassigned(self) -> int:
        """Number of texts that are in no cluster."""
        return int((self.labels < 0).sum())

    def name_of(self, row: int) -> str:
        """Return the name of the cluster of a text, given its index; empty for a text in none."""
        label = self.labels[row]
        return self.clusters[label].name if label >= 0 else ""

    def to_dict(self) -> dict[str, object]:
        """Return a summary for JSON: all but labels and embeddings."""
        return {
            "condition": self.condition,
            "overall": self.overall,
            "method": self.method,
            "texts": len(self.labels),
            "unassigned": self.unassigned,
            "silhouette": self.silhouette,
            "clusters": [{"name": cluster.name, **asdict(cluster)} for cluster in self.clusters],
            **({"tried": dict(self.tried)} if self.tried else {}),
        }

    def centers(self) -> ClusterCenters:
        """Return what new texts are compared with."""
        centers, radii = [], []
        for cluster in self.clusters:
            members = self.vectors[self.labels == cluster.number]
            center = members.mean(axis=0)
            centers.append(center.tolist())
            radii.append(float(np.linalg.norm(members - center, axis=1).max()))
        return ClusterCenters(
            condition=self.condition,
            names=[cluster.name for cluster in self.clusters],
            centers=centers,
            radii=radii if self.method == "HDBSCAN" else None,
            overall=self.overall,
        )


class ClusterCenters(Settings):
    """Centers of the clusters of texts under one condition.

    Attributes:
        names: Name of each cluster.
        centers: Mean embedding of each, ``(k, dimension)``.
        radii: Distance of its furthest text from it, ``(k,)``; None where every text is in a
            cluster.
        overall: Share of the embeddings without the condition.

    Example:
        >>> from condsim.search import cluster
        >>> texts = ["A red car.", "A red bus.", "A black cat.", "A black dog."]
        >>> clusters = cluster(texts, "the color", k=2)
        >>> bool(clusters.centers().assign(["A red van."])[0] == clusters.labels[0])
        True
    """

    condition: str | None
    names: list[str]
    centers: list[list[float]] = Field(min_length=1)
    radii: list[Annotated[float, Field(ge=0)]] | None
    overall: float = Field(0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _check_shape(self) -> Self:
        number = len(self.centers)
        if {len(self.names), len(self.radii or self.names)} != {number}:
            raise ValueError("There must be a name, a center and a radius for each cluster.")
        if len({len(center) for center in self.centers}) > 1:
            raise ValueError("The centers must have the same length.")
        # A mean of unit vectors is at most as long as they are.
        longest = max(math.hypot(*center) for center in self.centers)
        if longest > 1 + _DISTANCE_ERROR:
            raise ValueError(f"A center has the length {longest:g}; at most 1 is possible.")
        return self

    @collect_unread()
    def assign(
        self, texts: Sequence[str], *, model: str | Path | EmbeddingScorer | None = None
    ) -> IntArray:
        """Return the number of the cluster with the nearest center for each text, ``(n,)``.

        It is -1 for a text that is further from the center than any other of the cluster, where
        clusters leave texts out. The model must be the one that the clusters were made with.
        """
        rows = check_rows(self.condition, texts=texts)
        texts = list(rows.sentences[0])
        encoder, centers = load_encoder(model), np.array(self.centers, np.float32)
        expected = encoder.dimension_of(self.condition, overall=self.overall)
        if centers.shape[1] != expected:
            raise InputError(
                f"The centers of the clusters have {centers.shape[1]} numbers; vectors of "
                f"{encoder.name!r} have {expected}. Make the clusters again."
            )
        vectors = encode_texts(encoder, texts, self.condition, self.overall, silent)
        squares = (centers**2).sum(axis=1) - 2 * vectors @ centers.T + 1  # (n, k)
        labels: IntArray = squares.argmin(axis=1)
        if self.radii is not None:
            limits = np.array(self.radii)[labels] + _DISTANCE_ERROR
            labels[np.sqrt(np.maximum(squares.min(axis=1), 0)) > limits] = -1
        return labels


class ClusterFile(Settings):
    """Clusters under one or more conditions, stored to put new texts into them."""

    subject: ClassVar[str] = "file of clusters"

    condsim: str = __version__
    model: str
    revision: str | None
    conditions: list[ClusterCenters] = Field(min_length=1)

    @classmethod
    def of(cls, results: Sequence[Clusters], model: str | Path | EmbeddingScorer | None) -> Self:
        """Describe clusters that were made with a model."""
        name, revision = model_name(model)
        return cls(
            model=name, revision=revision, conditions=[result.centers() for result in results]
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote."""
        with one_line(f"{path}: cannot be read", OSError):
            content = path.read_bytes()
        return validated_json(cls, content, subject=cls.subject, source=str(path))

    def save(self, path: Path) -> None:
        """Write the clusters as JSON."""
        write_text(path, self.model_dump_json())

    def check_model(self, model: str | Path | EmbeddingScorer | None, path: Path) -> None:
        """Reject a model that is not the one of the clusters."""
        check_model(f"file {path}", (self.model, self.revision), model_name(model))
