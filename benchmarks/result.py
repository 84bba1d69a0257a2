"""Results of a benchmark, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from condsim.io import replacing

__all__ = ["Result", "print_table", "write_json"]


@dataclass(frozen=True)
class Result:
    """One claim, measured.

    Attributes:
        benchmark: Name of the benchmark.
        measured: What was measured, in a few words.
        peer: What condsim is compared with, and its version.
        unit: Unit of ``ours`` and ``theirs``.
        ours: The figure of condsim.
        theirs: The figure of the peer.
        ratio: How many times better condsim is; higher is better.
        bar: The ratio that must be reached; None where nothing was promised.
        notes: What a reader must know to judge the figures.
    """

    benchmark: str
    measured: str
    peer: str
    unit: str
    ours: float
    theirs: float
    ratio: float
    bar: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """True if the ratio reaches the bar; None where there is no bar."""
        return None if self.bar is None else self.ratio >= self.bar


def print_table(results: Sequence[Result], console: Console) -> None:
    """Print one row per result, and below the table the notes.

    Args:
        results: The results.
        console: Where to print.
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("benchmark", no_wrap=True)
    for name in ("measured", "peer"):
        table.add_column(name)
    for name in ("ours", "theirs"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for name in ("ratio", "bar", "met"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        table.add_row(
            result.benchmark,
            result.measured,
            result.peer,
            _figure(result.ours),
            _figure(result.theirs),
            result.unit,
            f"{result.ratio:.2f}x",
            "-" if result.bar is None else f"{result.bar:g}x",
            {True: "[green]yes[/]", False: "[red]no[/]", None: "-"}[result.met],
        )
    console.print(table)
    for result in results:
        for note in result.notes:
            line = f"{result.benchmark}, {result.measured}: {note}."
            console.print(line, style="dim", markup=False)


def write_json(
    path: Path,
    results: Sequence[Result],
    *,
    machine: Mapping[str, object],
    settings: Mapping[str, object],
) -> None:
    """Write results with what is needed to compare them with results of another day.

    Args:
        path: The file to write.
        results: The results.
        machine: Facts of the machine, see ``machine.facts``.
        settings: What the benchmarks were run with.

    Raises:
        InputError: If the folder does not exist or ``path`` is a folder.
    """
    content = {
        "machine": dict(machine),
        "settings": dict(settings),
        "results": [{**asdict(result), "met": result.met} for result in results],
    }
    with replacing(path) as partial:
        partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _figure(value: float) -> str:
    """A figure with three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
