"""``condsim cluster``: the texts of a file, grouped under one condition or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim import __version__
from condsim.cli.options import Model, check_column, show_table
from condsim.cli.running import check_outputs, long_work
from condsim.data.reading import check_file, iter_rows, suffix_of
from condsim.data.writing import aligned_records, is_table, kept_record, write_records
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim.search.cluster import Clusters

_SHOWN = 30  # clusters of a table; nobody reads more than that
_ACROSS = 8  # clusters beside each other
_LONGEST = 160  # characters of a text in a table


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
) -> None:
    """Group the texts of a file by a criterion that you name.

    Keeps all columns and adds `cluster`, a number from 0 for the largest, and `cluster_name`; a
    column of that name becomes `cluster.1`. With several conditions the columns are called
    `cluster: CONDITION` and `cluster_name: CONDITION`. A text that HDBSCAN puts into no cluster has
    the number -1. Embeddings are held in memory: 1.5 GB for a million texts.

    **Examples**

    `condsim cluster tickets.csv --condition "the complaint" --k 12 --output clustered.csv`

    `condsim cluster reviews.jsonl --column review --condition "the product" --condition
    "the complaint" --min-size 20 --output clustered.csv --plot clusters.png --json summary.json`
    """
    table = is_table(output)
    check_outputs(output=output, plot=plot, json=json)
    if len(set(condition)) < len(condition):
        raise InputError("--condition: each condition must be given once; remove the second one.")
    texts = _texts(file, column, table=table)

    from condsim.evaluation.report import write_json
    from condsim.loading import load_encoder
    from condsim.search.cluster import cluster as grouped
    from condsim.search.picture import plot_clusters

    if plot is not None:
        require("matplotlib", extra="search")
    encoder = load_encoder(model)
    with long_work(resume="Nothing was written.") as progress:
        found = [
            grouped(
                texts,
                one,
                model=encoder,
                k=k,
                min_size=min_size,
                umap=umap,
                seed=seed,
                progress=progress,
            )
            for one in condition
        ]
        records = _records(file, column, found, table=table)
        if table and suffix_of(file) in (".jsonl", ".ndjson"):
            records = aligned_records(records, last=_columns(found))
        rows = write_records(output, records)
        if plot is not None:
            plot_clusters(found, plot, seed=seed)
        if json is not None:
            write_json(_summary(found, encoder.name), json)
    _show(found)
    typer.echo(f"{output}: {rows} rows", err=True)


def _texts(file: Path, column: str, *, table: bool) -> list[str]:
    """The texts of a file; every row is checked before the work starts."""
    check_file(file)
    check_column(file, column)
    texts = []
    for row in iter_rows(file, columns=[column], others=True):
        texts.append(row.text(column))
        kept_record(row, table=table)
    return texts


def _columns(found: Sequence[Clusters]) -> list[str]:
    """The columns that are added, two for each condition."""
    if len(found) == 1:
        return ["cluster", "cluster_name"]
    return [f"{name}: {one.condition}" for one in found for name in ("cluster", "cluster_name")]


def _records(
    file: Path, column: str, found: Sequence[Clusters], *, table: bool
) -> Iterator[Mapping[str, object]]:
    added, labels = _columns(found), [one.labels.tolist() for one in found]
    rows = iter_rows(file, columns=[column], others=True)
    for number, row in enumerate(rows):
        if number == len(labels[0]):
            raise InputError(f"{file}: has more rows than when it was read first. Start again.")
        values: list[object] = []
        for one, label in zip(found, labels, strict=True):
            values += [label[number], one.name_of(number)]
        kept = kept_record(row, table=table, beside=added)
        yield kept | dict(zip(added, values, strict=True))


def _summary(found: Sequence[Clusters], model: str) -> dict[str, object]:
    from condsim.search.cluster import cross_table

    summary: dict[str, object] = {
        "condsim": __version__,
        "model": model,
        "conditions": [one.to_dict() for one in found],
    }
    if len(found) > 1:
        summary["cross_table"] = cross_table(*found[:2]).tolist()
    return summary


def _show(found: Sequence[Clusters]) -> None:
    for one in found:
        _show_clusters(one)
    if len(found) > 1:
        _show_cross_table(*found[:2])


def _show_clusters(one: Clusters) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from condsim.console import Terminal

    title = Text(f"Clusters by {one.condition}")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("size", justify="right")
    table.add_column("name", overflow="fold", ratio=2)
    table.add_column("nearest text", overflow="fold", ratio=5)
    for group in one.clusters[:_SHOWN]:
        text = " ".join(group.text.split())
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        table.add_row(str(group.number), f"{group.size:,}", Text(group.name), Text(text))
    if one.clusters:
        Terminal(highlight=False).print(table)
    if len(one.clusters) > _SHOWN:
        typer.echo(f"These are the {_SHOWN} largest of {len(one.clusters)} clusters.")
    if one.unassigned:
        typer.echo(f"{one.unassigned:,} of {len(one.labels):,} texts are in no cluster.")
    if not one.clusters:
        typer.echo("Give a smaller --min-size, or a number of clusters with --k.")
    if one.silhouette is not None:
        typer.echo(f"Silhouette {one.silhouette:.2f} (1: far apart, 0: they touch).")
    typer.echo()


def _show_cross_table(first: Clusters, second: Clusters) -> None:
    """Prints how many texts are in each cluster of both; the last row and column: in none."""
    from condsim.search.cluster import cross_table

    counts = cross_table(first, second)
    columns = [column for column in range(counts.shape[1]) if counts[:, column].any()][:_ACROSS]
    rows = [row for row in range(len(counts)) if counts[row].any()][:_SHOWN]
    show_table(
        ("", *(_heading(second, column, words=1) for column in columns)),
        [
            (_heading(first, row, words=3), *(f"{n:,}" if n else "" for n in counts[row, columns]))
            for row in rows
        ],
        title=f"Rows: {first.condition}. Columns: {second.condition}.",
    )


def _heading(found: Clusters, number: int, *, words: int) -> str:
    if number == len(found.clusters):
        return "none"
    return f"{number} {', '.join(found.clusters[number].words[:words])}".strip()
