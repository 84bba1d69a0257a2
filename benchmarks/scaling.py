"""Growth of time and memory of ``condsim score --file``: ``python -m benchmarks.scaling``.

It writes papers/docs/results/scaling.md with its plot. Each figure is one process from start to
exit.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import facts, usable_cores
from benchmarks.memory import Cost, cost_of
from benchmarks.rows import Row, generated_rows, write_rows
from condsim.cli.process import run_app
from condsim.errors import InputError
from condsim.io import replacing, write_text

PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "scaling.md"

_KINDS = (
    "in general",
    "of the first",
    "in the middle",
    "at the end",
    "of the rest",
    "that is told",
)
_WORDS = "man dog ball house red green runs sits old young street water table and the".split()

app = typer.Typer(pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Point:
    """One file and what it cost.

    Attributes:
        what: Which growth it belongs to.
        size: Its size in that.
        rows: Its rows.
        cost: Seconds and MiB.
    """

    what: str
    size: int
    rows: int
    cost: Cost


def by_rows(size: int) -> Iterator[Row]:
    """Make ``size`` rows, hardly any text of which occurs twice."""
    return islice(generated_rows(seed=1), size)


def by_distinct(size: int) -> Iterator[Row]:
    """Make 100,000 rows out of ``size`` distinct ones, in random order."""
    rows = list(by_rows(size))
    choose = random.Random(2).choice
    return (choose(rows) for _ in range(100_000))


def by_conditions(size: int) -> Iterator[Row]:
    """Make rows of 1,000 sentence pairs, each under ``size`` conditions."""
    heads = list(dict.fromkeys(row[2] for row in by_rows(1_000)))
    names = [f"{head} {kind}" for kind in _KINDS for head in heads][:size]
    if len(names) < size:
        raise InputError(f"The number of conditions must be at most {len(names)}, got {size}.")
    for first, second, _, label in by_rows(1_000):
        yield from ((first, second, name, label) for name in names)


def by_length(size: int) -> Iterator[Row]:
    """Make 5,000 rows with texts of ``size`` words that the tokenizer does not split."""
    words = random.Random(3)
    for _ in range(5_000):
        first, second = (" ".join(words.choices(_WORDS, k=size)) for _ in range(2))
        yield first, second, "the activity", 1


GROWTHS: dict[str, tuple[Callable[[int], Iterator[Row]], tuple[int, ...], str]] = {
    "rows": (by_rows, (1_000, 10_000, 100_000, 1_000_000), "rows, all distinct"),
    "distinct": (by_distinct, (100, 1_000, 10_000, 100_000), "distinct rows of 100,000"),
    "conditions": (by_conditions, (1, 5, 20, 50), "conditions for each of 1,000 pairs"),
    "length": (by_length, (8, 32, 64, 128, 256), "words in each text, 5,000 rows"),
}


@app.command()
def main(
    most: Annotated[int, typer.Option(help="Leave out files with more rows.")] = 1_000_000,
    output: Annotated[Path, typer.Option(help="The page.")] = PAGE,
) -> None:
    """Measure all growths and write the page."""
    points = []
    with tempfile.TemporaryDirectory(prefix="condsim-scaling-") as folder:
        file, scored = Path(folder, "rows.csv"), Path(folder, "scored.csv")
        command = [sys.executable, "-m", "condsim", "score", "--file", str(file)]
        for what, (make, sizes, _) in GROWTHS.items():
            for size in sizes:
                write_rows(file, make(size))
                with file.open("rb") as stream:
                    rows = sum(1 for _ in stream) - 1
                if rows > most:
                    continue
                point = Point(what, size, rows, cost_of([*command, "--output", str(scored)]))
                points.append(point)
                typer.echo(_row(point))
    plot(points, output.with_suffix(".png"))
    write_text(output, _page(points))


def _row(point: Point) -> str:
    seconds, memory = point.cost
    return (
        f"| {point.size:,} | {point.rows:,} | {seconds:.1f} | {point.rows / seconds:,.0f} "
        f"| {memory:.0f} |"
    )


def plot(points: list[Point], path: Path) -> None:
    """Draw seconds and MiB of each growth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    panels = figure.subplots(2, len(GROWTHS), sharex="col")
    for column, (what, (_, _, head)) in enumerate(GROWTHS.items()):
        chosen = [point for point in points if point.what == what]
        for panel, place, unit in zip(panels[:, column], (0, 1), ("seconds", "MiB"), strict=True):
            values = [point.cost[place] for point in chosen]
            panel.plot([point.size for point in chosen], values, "o-", color="C0", markersize=4)
            if chosen:
                panel.set_xscale("log")
                panel.set_yscale("log" if unit == "seconds" else "linear")
            if unit == "MiB":
                panel.set_ylim(0)
                panel.set_xlabel(head, fontsize=8)
            if not column:
                panel.set_ylabel(unit)
            panel.spines[["top", "right"]].set_visible(False)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=110, metadata={"Software": None})


def _page(points: list[Point]) -> str:
    parts = [
        PAGE_TEXT.format(cores=usable_cores(), processor=facts()["processor"], plot="scaling.png")
    ]
    for what, (_, _, head) in GROWTHS.items():
        rows = [_row(point) for point in points if point.what == what]
        heads = f"| {head} | rows | s | rows/s | peak MiB |\n|---:|---:|---:|---:|---:|"
        parts.append("\n".join([heads, *rows]))
    return "\n\n".join(parts) + "\n"


PAGE_TEXT = """# Cost of growth

`condsim score --file rows.csv --output scored.csv` with the default model, from the start of the
process to its exit, and the most memory it held. {cores} cores of {processor}; one run each.
Generated rows with texts of 15 words on average, unless the table says otherwise.
`python -m benchmarks.scaling` makes this page.

![Seconds and memory](scaling.png)"""


if __name__ == "__main__":
    run_app(app)
