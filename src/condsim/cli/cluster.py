"""``condsim cluster``: the texts of a file, grouped under one or more conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from condsim import __version__
from condsim.cli.options import Model, Strict, check_column, show_table
from condsim.cli.pairs import BlankRows
from condsim.cli.process import check_outputs, long_work
from condsim.data.files import Batch, check_file, is_table, open_writer, read_batches
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim.search.cluster import Clusters
    from condsim.types import BoolArray

_CLUSTERS_IN_TABLE = 30
_COLUMNS_OF_CROSS_TABLE = 8
_MAX_TEXT_LENGTH = 160


def cluster(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet file.")],
    condition: Annotated[
        list[str],
        typer.Option(
            help="In which respect texts of a cluster are alike, such as 'the complaint'. "
            "Repeatable; two or more are compared."
        ),
    ],
    output: Annotated[Path, typer.Option(help="File to write: .csv, .tsv or .jsonl.")],
    column: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    k: Annotated[int | None, typer.Option("--k", help="Number of clusters (k-means).")] = None,
    min_size: Annotated[
        int | None,
        typer.Option(
            help="Size of the smallest cluster; their number is found (HDBSCAN).",
            show_default="20, or a twentieth of the texts",
        ),
    ] = None,
    umap: Annotated[
        bool, typer.Option("--umap", help="Reduce the embeddings by UMAP first.")
    ] = False,
    model: Model = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of k-means and UMAP.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Also draw the texts: a PNG file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Also write the summary as JSON.")] = None,
    strict: Strict = False,
) -> None:
    """Group the texts of a file by a criterion that you name.

    Keeps all columns and adds `cluster`, a number from 0 for the largest, and `cluster_name`; a
    column of that name becomes `cluster.1`. With several conditions the columns are called
    `cluster: CONDITION` and `cluster_name: CONDITION`. A text that HDBSCAN puts into no cluster has
    the number -1, and a row without text has none. Embeddings are held in memory: 1.5 GB for a
    million texts.

    **Examples**

    `condsim cluster tickets.csv --condition "the complaint" --k 12 --output clustered.csv`

    `condsim cluster reviews.jsonl --column review --condition "the product" --condition
    "the complaint" --min-size 20 --output clustered.csv --plot clusters.png --json summary.json`
    """
    table = is_table(output)
    check_outputs(output=output, plot=plot, json=json)
    if len(set(condition)) < len(condition):
        raise InputError("--condition: give each condition once.")
    column = column.strip()
    blank = BlankRows(strict=strict)
    texts, present = _read_texts(file, column, blank, table=table)

    from condsim.evaluation.report import write_json
    from condsim.loading import load_encoder
    from condsim.search.cluster import cluster as cluster_texts
    from condsim.search.picture import plot_clusters

    if plot is not None:
        require("matplotlib", extra="search")
    encoder = load_encoder(model)
    with long_work(resume="Nothing was written.") as progress:
        results = []
        for name in condition:
            clusters = cluster_texts(
                texts,
                name,
                model=encoder,
                k=k,
                min_size=min_size,
                umap=umap,
                seed=seed,
                progress=progress,
            )
            results.append(clusters)
        with open_writer(output) as writer:
            for batch in _clustered_batches(file, column, results, present):
                writer.write(batch)
        if plot is not None:
            plot_clusters(results, plot, seed=seed)
        if json is not None:
            write_json(_summary(results, encoder.name), json)
    _show(results, k)
    if note := blank.note("no cluster"):
        typer.echo(note, err=True)
    typer.echo(f"{output}: {writer.rows} rows", err=True)


def _read_texts(
    file: Path, column: str, blank: BlankRows, *, table: bool
) -> tuple[list[str], BoolArray]:
    """Return the texts of a file, and which rows have one; check all rows before the work."""
    check_file(file)
    check_column(file, column)
    texts: list[str] = []
    masks = []
    for batch in read_batches(file, columns=[column]):
        if table:
            batch.check_flat()
        present = blank.present(batch, [column])
        texts += batch.take(np.flatnonzero(present)).texts(column)
        masks.append(present)
    return texts, np.concatenate(masks)


def _clustered_batches(
    file: Path, column: str, results: Sequence[Clusters], present: BoolArray
) -> Iterator[Batch]:
    """Yield the rows with two added columns for each condition."""
    # The row of the texts that each row of the file is, where it has a text.
    text_rows = np.cumsum(present) - 1
    start = 0
    for batch in read_batches(file, columns=[column]):
        rows = range(start, start + len(batch))
        if rows.stop > len(present):
            raise InputError(f"{file}: has more rows than when it was first read. Start again.")
        for clusters in results:
            suffix = f": {clusters.condition}" if len(results) > 1 else ""
            numbers, names = [], []
            for row in rows:
                text_row = int(text_rows[row])
                numbers.append(int(clusters.labels[text_row]) if present[row] else None)
                names.append(clusters.name_of(text_row) if present[row] else "")
            batch[f"cluster{suffix}"] = numbers
            batch[f"cluster_name{suffix}"] = names
        start = rows.stop
        yield batch


def _summary(results: Sequence[Clusters], model: str) -> dict[str, object]:
    from condsim.search.cluster import cross_table

    summary: dict[str, object] = {
        "condsim": __version__,
        "model": model,
        "conditions": [clusters.to_dict() for clusters in results],
    }
    if len(results) > 1:
        summary["cross_table"] = cross_table(*results[:2]).tolist()
    return summary


def _show(results: Sequence[Clusters], k: int | None) -> None:
    for clusters in results:
        _show_clusters(clusters, k)
    if len(results) > 1:
        _show_cross_table(*results[:2])


def _show_clusters(clusters: Clusters, k: int | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from condsim.console import Terminal

    title = Text(f"Clusters by {clusters.condition}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("size", justify="right")
    table.add_column("name", overflow="fold", ratio=2)
    table.add_column("nearest text", overflow="fold", ratio=5)
    number = len(clusters.clusters)
    for group in clusters.clusters[:_CLUSTERS_IN_TABLE]:
        text = " ".join(group.text.split())
        text = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."
        table.add_row(str(group.number), f"{group.size:,}", Text(group.name), Text(text))
    if number:
        Terminal(highlight=False).print(table)
    else:
        typer.echo("Give a smaller --min-size, or a number of clusters with --k.")
    if number > _CLUSTERS_IN_TABLE:
        typer.echo(f"These are the {_CLUSTERS_IN_TABLE} largest of {number} clusters.")
    if k is not None and number < k:
        typer.echo(f"Clusters: {number} instead of {k}, as texts have equal embeddings.")
    if clusters.unassigned:
        typer.echo(f"{clusters.unassigned:,} of {len(clusters.labels):,} texts are in no cluster.")
    if clusters.silhouette is not None:
        typer.echo(f"Silhouette {clusters.silhouette:.2f} (1: far apart, 0: touching).")
    typer.echo()


def _show_cross_table(first: Clusters, second: Clusters) -> None:
    """Print how many texts each pair of clusters shares; the last row and column are of none."""
    from condsim.search.cluster import cross_table

    counts = cross_table(first, second)
    columns = [column for column in range(counts.shape[1]) if counts[:, column].any()][
        :_COLUMNS_OF_CROSS_TABLE
    ]
    rows = [row for row in range(len(counts)) if counts[row].any()][:_CLUSTERS_IN_TABLE]
    show_table(
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
