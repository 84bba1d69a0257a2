"""``python -m benchmarks.cluster_names``: names of clusters, in a sheet for readers.

Collections with gold values are grouped under the condition. For each cluster, of which most texts
have one value, the sheet has that value and two names in random order: the first phrase under the
condition, and the most frequent word (class-based TF-IDF). Readers mark which of them say the same
as the value; a second run, without `--data`, counts the marks.
"""

from __future__ import annotations

import csv
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim import __version__
from condsim.cli.process import run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.search.clustering import cluster
from condsim.search.names import cluster_words

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SETS: Sequence[tuple[str, str]] = (
    ("clinc150", "the intent"),
    ("clinc150", "the domain"),
    ("bitext", "the topic"),
    ("hwu64", "the domain"),
    ("medquad", "the kind of information"),
    ("cuad", "the kind of clause"),
    ("snips", "the intent"),
    ("druglib", "the condition treated"),
    ("oats", "what is reviewed"),
    ("helpdesk.csv", "the problem"),
    ("helpdesk.csv", "the product"),
    ("messages.csv", "the product"),
    ("messages.csv", "the problem"),
    ("tickets.csv", "the topic"),
)
"""Sets and conditions; a file is in `examples/`, and its column is the condition's last word."""

PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "cluster-names.md"
METHODS = ("condition", "frequency")
_TEXTS = 400
_VALUES = 12
_FEWEST = 8
_PURITY = 0.5


def read(
    data: Path, name: str, condition: str, *, texts: int = _TEXTS, values: int = _VALUES
) -> dict[str, str]:
    """Draw texts with one of the most frequent values, and return the value of each."""
    if name.endswith(".csv"):
        with (EXAMPLES / name).open(encoding="utf-8") as file:
            return {row["text"]: row[condition.split()[-1]] for row in csv.DictReader(file)}
    rows = [
        (row.text, row.attributes[condition][0])
        for row in iter_criteria(next(data.joinpath(name).glob("test.jsonl.gz")))
        if isinstance(row, CriteriaText) and len(row.attributes.get(condition, ())) == 1
    ]
    counts = Counter(value for _, value in rows)
    kept = {value for value, count in counts.most_common(values) if count >= _FEWEST}
    order = np.random.default_rng(zlib.crc32(condition.encode())).permutation(len(rows))
    distinct = dict(rows[row] for row in order if rows[row][1] in kept)
    return dict(list(distinct.items())[:texts])


def sheet(data: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each cluster in which one value is the most frequent by far."""
    model = load_encoder(None)
    for name, condition in SETS:
        values = read(data, name, condition)
        gold = np.array(list(values.values()))
        found = cluster(list(values), condition, k=len(set(gold.tolist())), model=model)
        groups = [np.flatnonzero(found.labels == group.number) for group in found.clusters]
        frequent = cluster_words([[list(values)[row] for row in rows] for rows in groups])
        for group, rows, words in zip(found.clusters, groups, frequent, strict=True):
            value, count = Counter(gold[rows].tolist()).most_common(1)[0]
            if count < _PURITY * len(rows):
                continue
            yield {
                "set": name.removesuffix(".csv"),
                "condition": condition,
                "value": value,
                "share": round(count / len(rows), 2),
                "condition_name": (group.words or ("",))[0],
                "frequency_name": (words or ("",))[0],
            }


def shuffled(rows: Sequence[dict[str, object]], seed: int) -> Iterator[dict[str, object]]:
    """Yield a row for each name, in random order and without its method."""
    pairs = [(number, method) for number in range(len(rows)) for method in METHODS]
    for index in np.random.default_rng(seed).permutation(len(pairs)):
        number, method = pairs[int(index)]
        row = rows[number]
        name = row[f"{method}_name"]
        yield {"value": row["value"], "condition": row["condition"], "name": name, "right": ""}


def count(sheets: Path) -> Iterator[str]:
    """Count what the readers marked: write the results, and yield the lines of their page."""
    rows = json.loads((sheets / "clusters.json").read_text(encoding="utf-8"))
    for row in rows:
        row.update({f"{method}_right": [] for method in METHODS})
    for file in sorted(sheets.glob("reader*.csv")):
        with file.open(encoding="utf-8") as stream:
            marks = {
                (*list(mark.values())[:3],): int(mark["right"]) for mark in csv.DictReader(stream)
            }
        for row in rows:
            for method in METHODS:
                key = row["value"], row["condition"], row[f"{method}_name"]
                row[f"{method}_right"].append(marks[key])
    report = {"condsim": __version__, "model": load_encoder(None).name, "clusters": rows}
    write_text(PAGE.with_suffix(".json"), json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    yield "# Names of clusters\n"
    yield (
        "Written by `python -m benchmarks.cluster_names`. Clusters (k-means, as many as there are "
        "values) of which half the texts or more have one value. A name is right if it is the "
        "value, a synonym or a longer wording of it. Read twice, in two orders, by a language "
        "model, not by people. The sheets don't tell the method, but the reader had seen a list "
        "with the methods before, so this was not a blind reading. Right names in each reading.\n"
    )
    yield "| set, condition | clusters | first phrase under the condition | most frequent word |"
    yield "|---|---:|---:|---:|"
    groups: dict[str, list[dict[str, list[int]]]] = defaultdict(list)
    for row in rows:
        groups[f"{row['set']}: {row['condition']}"].append(row)
        groups["**all**"].append(row)
    groups["**all**"] = groups.pop("**all**")
    for title, group in groups.items():
        columns = [np.sum([row[f"{method}_right"] for row in group], axis=0) for method in METHODS]
        cells = " | ".join(", ".join(map(str, column.tolist())) for column in columns)
        yield f"| {title} | {len(group)} | {cells} |"


def main(
    sheets: Annotated[Path, typer.Option(help="Folder of the sheets.")],
    data: Annotated[Path | None, typer.Option(help="Folder of the sets of criteria.")] = None,
) -> None:
    """Name clusters and write sheets for two readers; without --data, count what they marked."""
    if data is None:
        write_text(PAGE, "\n".join(count(sheets)) + "\n")
        return
    rows = list(sheet(data))
    text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    write_text(sheets / "clusters.json", text)
    for seed in (1, 2):
        with (sheets / f"reader{seed}.csv").open("w", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ("value", "condition", "name", "right"))
            writer.writeheader()
            writer.writerows(shuffled(rows, seed))


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
