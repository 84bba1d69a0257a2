"""Distribution of the labels of the training file (C-STS, Figure 4)."""

from __future__ import annotations

import csv
from pathlib import Path

from condsim.data.load import load_task
from condsim.data.tasks import describe
from condsim.io import replacing
from papers.catalogue import Experiment
from papers.options import Options, data_files
from papers.pages import ending, heading, pipe_table
from papers.plots import plot_histogram
from papers.provenance import facts
from papers.results import Results, measured_on


def write_label_histogram(
    experiment: Experiment, options: Options, command: str, notes: str, page: Path
) -> str:
    """Write table and plot next to the page, and return the page."""
    data = data_files("c-sts", options)
    found = describe(load_task(data.train, require_labels=True))
    counts = {f"{label:g}": rows for label, rows in found.label_histogram}
    shares = {label: 100 * rows / found.labeled_rows for label, rows in counts.items()}
    page.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(page.with_suffix(".csv")) as partial,
        partial.open("w", encoding="utf-8", newline="") as stream,
    ):
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["label", "rows", "percent"])
        table.writerows([label, rows, f"{shares[label]:.3f}"] for label, rows in counts.items())
    plot_histogram(shares, page.with_suffix(".png"), head="label")
    mean = sum(float(label) * rows for label, rows in counts.items()) / found.labeled_rows
    lines = [
        *heading(experiment),
        *pipe_table(
            ["label", "rows, ours", "% of rows, ours", "paper"],
            [[label, f"{rows:,}", f"{shares[label]:.1f}", "-"] for label, rows in counts.items()],
        ),
        "",
        f"- {found.labeled_rows:,} labeled rows of {data.train.name}, mean label {mean:.2f}.",
    ]
    measured = measured_on("c-sts", data, [], options)
    told = facts(Results(experiment, options, measured=(measured,)), command)
    return ending(experiment, [*lines, *(f"- {fact}" for fact in told)], notes)
