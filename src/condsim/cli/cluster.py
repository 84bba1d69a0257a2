"""``condsim cluster``: the texts of a file, grouped under one or more conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import typer
from typer import Argument, Option

from condsim import __version__
from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.options import TextFile
from condsim.cli.process import long_work, print_note
from condsim.data.batch import Batch
from condsim.data.formats import READ, WRITTEN, is_table, open_writer
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.model.base import COLLECTION_SHARE
from condsim.types import IntArray, shortened

if TYPE_CHECKING:
    from condsim.model.embedding import EmbeddingScorer
    from condsim.search.clusters import ClusterFile, Clusters

_CLUSTERS_IN_TABLE = 30
_COLUMNS_OF_CROSS_TABLE = 8
_MAX_TEXT_LENGTH = 160
# Adjusted Rand index from which clusters with and without a condition count as the same.
_SAME_CLUSTERS = 0.9
# Share of texts in no cluster that is worth a hint.
_MANY_UNASSIGNED = 0.25
_FEWER = "Give a smaller --min-size, or a number of clusters with --k."


def cluster_command(
    file: Annotated[Path, Argument(help=f"File of texts: {READ}.")],
    output: Annotated[Path, Option(help=f"File to write: {WRITTEN}."), Output(".tsv")],
    condition: Annotated[
        list[str] | None, Option(help="In which respect texts of a cluster are alike. Repeatable.")
    ] = None,
    plain: options.Plain = False,
    column: options.TextColumn = "text",
    k: Annotated[
        str | None,
        Option(
            "--k",
            metavar="NUMBER|auto",
            help="Number of clusters (k-means); auto: the highest silhouette.",
        ),
    ] = None,
    min_size: Annotated[
        int | None,
        Option(
            help="Size of the smallest cluster (HDBSCAN).",
            show_default="20, or a twentieth of the texts",
        ),
    ] = None,
    overall: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            help="Share of the similarity without the condition, 0 to 1.",
            show_default=f"{COLLECTION_SHARE}, or the value in --into",
        ),
    ] = None,
    umap: Annotated[bool, Option("--umap", help="Reduce embeddings first.")] = False,
    model: options.Model = None,
    seed: Annotated[int, Option(min=0, max=2**32 - 1, help="Seed of k-means and UMAP.")] = 0,
    plot: Annotated[
        Path | None, Option(help="Also draw the texts: a PNG file."), Output(".png")
    ] = None,
    json: options.JsonFile = None,
    save: Annotated[
        Path | None, Option(help="File of the clusters, for --into."), Output(".json")
    ] = None,
    into: Annotated[Path | None, Option(help="File of --save with the clusters to use.")] = None,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Group the texts of a file by a criterion that you name.

    Keeps all columns and adds `cluster`, a number from 0 for the largest, and `cluster_name`. A
    text in no cluster has the number -1, and a row without text has none. Embeddings are held in
    memory: 1.5 GB for a million texts.

    **Examples**

    `condsim cluster tickets.csv --condition "the complaint" --k 12 --output clustered.csv`

    `condsim cluster tickets.csv --condition "the complaint" --k auto --output clustered.csv --save
    tickets.clusters`

    `condsim cluster tickets.csv --plain --k 12 --output plain.csv`

    `condsim cluster june.csv --into tickets.clusters --output june-clustered.csv`
    """
    table = is_table(output)
    made_or_drawn = [k, min_size, overall is not None, umap, plot, json, save]
    conditions = _conditions(condition, plain=plain, into=into, makes=any(made_or_drawn))
    file_format = FileFormat.checked(separator, encoding)
    rows = TextFile(file, column, file_format, tables=table, strict=strict)
    texts = list(rows)
    options.check_plot(plot, extra="search")

    from condsim.search.clustering import cluster, plot_clusters
    from condsim.search.clusters import ClusterFile

    stored, encoder = _open_model(model, into)
    with long_work(resume="Nothing was written.") as progress:
        group = partial(
            cluster,
            texts,
            model=encoder,
            k=_number(k),
            min_size=min_size,
            umap=umap,
            seed=seed,
            progress=progress,
        )
        results = [group(condition=name, overall=overall) for name in conditions]
        if save is not None and not all(result.clusters for result in results):
            raise InputError(f"{save}: there are no clusters to save. {_FEWER}")
        is_compared = not plain and into is None and len(texts) <= options.COMPARED_TEXTS
        plain_labels = group(condition=None).labels if is_compared else None
        groupings = _groupings(texts, results, stored, encoder)
        with open_writer(output) as writer:
            for batch in _grouped_batches(rows, groupings):
                writer.write(batch)
        if plot is not None:
            plot_clusters(results, plot, seed=seed)
        if save is not None:
            ClusterFile.of(results, model).save(save)
        options.write_report(json, _json_report(results, encoder.name))
    if stored is not None:
        _show_sizes(groupings)
    for result in results:
        _show_clusters(result, k)
    if len(results) > 1:
        _show_cross_table(*results[:2])
    _note_same_clusters(results, plain_labels)
    print_note(rows.blank.note("no cluster"))
    print_note(f"{output}: {writer.rows} rows")


def _open_model(model: str | None, into: Path | None) -> tuple[ClusterFile | None, EmbeddingScorer]:
    """Open the clusters to put texts into, if there are, and the model."""
    from condsim.loading import load_encoder
    from condsim.search.clusters import ClusterFile

    if into is None:
        return None, load_encoder(model)
    stored = ClusterFile.load(into)
    stored.check_model(model or stored.model, into)
    return stored, load_encoder(model or stored.model)


def _groupings(
    texts: Sequence[str],
    results: Sequence[Clusters],
    stored: ClusterFile | None,
    encoder: EmbeddingScorer,
) -> list[_Grouping]:
    groupings = [
        _Grouping(result.condition, result.labels, [group.name for group in result.clusters])
        for result in results
    ]
    for centers in stored.conditions if stored else ():
        labels = centers.assign(texts, model=encoder)
        groupings.append(_Grouping(centers.condition, labels, centers.names))
    return groupings


def _conditions(
    condition: Sequence[str] | None, *, plain: bool, into: Path | None, makes: bool
) -> list[str | None]:
    """Return the conditions to group by, none with --into; reject options that do not fit."""
    if into is None:
        chosen = options.chosen_conditions(condition, plain=plain)
        return [None] if chosen is None else [*chosen]
    if condition or plain:
        raise InputError("Give either --condition, or --into and the clusters of an earlier run.")
    if makes:
        raise InputError(
            "--into takes the clusters as they are: leave out options that make or draw others."
        )
    return []


def _note_same_clusters(results: Sequence[Clusters], plain_labels: IntArray | None) -> None:
    """Say which conditions hardly change the clusters."""
    from sklearn.metrics import adjusted_rand_score

    if plain_labels is None:
        return
    for clusters in results:
        agreement = adjusted_rand_score(plain_labels, clusters.labels)
        if agreement >= _SAME_CLUSTERS:
            print_note(
                f"{clusters.condition!r} hardly changes the clusters: --plain, without a "
                f"condition, gives nearly the same (adjusted Rand index {agreement:.2f})."
            )


def _number(k: str | None) -> int | Literal["auto"] | None:
    if k is None or k == "auto":
        return k  # type: ignore[return-value]
    try:
        return int(k)
    except ValueError:
        raise InputError(f"--k must be a number, or auto; got {k!r}.") from None


class _Grouping(NamedTuple):
    """Number of the cluster of each text, -1 for none, and the names of the clusters."""

    condition: str | None
    labels: IntArray
    names: Sequence[str]


def _grouped_batches(file: TextFile, groupings: Sequence[_Grouping]) -> Iterator[Batch]:
    """Yield the rows with two added columns for each condition."""
    texts_before = 0
    for batch, rows in file.batches():
        present = file.present[rows]
        texts = slice(texts_before, texts_before + int(present.sum()))
        texts_before = texts.stop
        for condition, labels, names in groupings:
            suffix = f": {condition}" if len(groupings) > 1 else ""
            row_labels = np.full(len(batch), None)
            row_labels[present] = labels[texts]
            batch[f"cluster{suffix}"] = row_labels.tolist()
            batch[f"cluster_name{suffix}"] = [
                "" if label is None or label < 0 else names[label] for label in row_labels
            ]
        yield batch


def _json_report(results: Sequence[Clusters], model: str) -> dict[str, object]:
    from condsim.search.clustering import cross_table

    summary: dict[str, object] = {
        "condsim": __version__,
        "model": model,
        "conditions": [clusters.to_dict() for clusters in results],
    }
    if len(results) > 1:
        summary["cross_table"] = cross_table(*results[:2]).tolist()
    return summary


def _show_sizes(groupings: Sequence[_Grouping]) -> None:
    """Print how many texts were put into each cluster."""
    for condition, labels, names in groupings:
        rows = [(str(n), f"{(labels == n).sum():,}", name) for n, name in enumerate(names)]
        rows.append(("", f"{(labels < 0).sum():,}", "in no cluster"))
        options.show_table(("", "texts", "name"), rows, title=condition)


def _show_clusters(clusters: Clusters, k: str | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from condsim.terminal import Terminal

    by = "of the texts as a whole" if clusters.condition is None else f"by {clusters.condition}"
    title = Text(f"Clusters {by}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("size", justify="right")
    table.add_column("name", overflow="fold", ratio=2)
    table.add_column("nearest text", overflow="fold", ratio=5)
    number = len(clusters.clusters)
    for group in clusters.clusters[:_CLUSTERS_IN_TABLE]:
        text = shortened(group.text, _MAX_TEXT_LENGTH)
        table.add_row(str(group.number), f"{group.size:,}", Text(group.name), Text(text))
    if number:
        Terminal(highlight=False).print(table)
    else:
        typer.echo(_FEWER)
    if number > _CLUSTERS_IN_TABLE:
        typer.echo(f"These are the {_CLUSTERS_IN_TABLE} largest of {number} clusters.")
    if k is not None and k != "auto" and number < int(k):
        typer.echo(f"Clusters: {number} instead of {k}, as texts have equal embeddings.")
    if clusters.tried:
        typer.echo(_choice(clusters.tried))
    elif k == "auto":
        typer.echo("Too few texts differ to compare numbers of clusters.")
    if clusters.unassigned:
        text = f"{clusters.unassigned:,} of {len(clusters.labels):,} texts are in no cluster"
        many = number and clusters.unassigned > _MANY_UNASSIGNED * len(clusters.labels)
        typer.echo(f"{text}{'; --k NUMBER puts each into one' if many else ''}.")
    if clusters.silhouette is not None:
        typer.echo(f"Silhouette {clusters.silhouette:.2f} (1: far apart, 0: touching).")
    typer.echo()


def _choice(tried: Mapping[int, float]) -> str:
    """Say how the number of clusters was chosen."""
    (best, highest), *runners_up = sorted(tried.items(), key=lambda item: -item[1])
    text = f"{best} clusters have the highest silhouette of {min(tried)} to {max(tried)}"
    near = ", ".join(f"{number}: {silhouette:.2f}" for number, silhouette in runners_up[:3])
    return f"{text}: {highest:.2f} (next {near})." if near else f"{text}: {highest:.2f}."


def _show_cross_table(first: Clusters, second: Clusters) -> None:
    """Print how many texts each pair of clusters shares; the last row and column are of none."""
    from condsim.search.clustering import cross_table

    counts = cross_table(first, second)
    columns = np.flatnonzero(counts.any(axis=0))[:_COLUMNS_OF_CROSS_TABLE].tolist()
    rows = np.flatnonzero(counts.any(axis=1))[:_CLUSTERS_IN_TABLE].tolist()
    options.show_table(
        ("", *(_heading(second, column, words=1) for column in columns)),
        [
            (_heading(first, row, words=3), *(f"{n:,}" if n else "" for n in counts[row, columns]))
            for row in rows
        ],
        title=f"Rows: {first.condition}. Columns: {second.condition}.",
    )


def _heading(clusters: Clusters, number: int, *, words: int) -> str:
    if number == len(clusters.clusters):
        return "none"
    return f"{number} {', '.join(clusters.clusters[number].words[:words])}".strip()
