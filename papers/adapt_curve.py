"""``python -m papers.adapt_curve``: what adapting brings with 50 to 2,000 labelled pairs.

Four open sets that the default model was not trained on stand for a user's own data. Of each, half
of the texts are what a user might label and the other half is measured on, with C-STS and STS-B
measured too, to show what is lost. No adapted weights are kept; the figures are, so that a
killed run continues.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.process import long_work, run_app
from condsim.data.load import load_task
from condsim.data.tables import iter_criteria
from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.io import write_text
from condsim.loading import load_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.rows.criteria.build import PairRow, criteria_rows
from condsim.rows.criteria.settings import CriteriaSettings
from condsim.rows.records import write_rows
from condsim.training.adaptation import AdaptSettings, adapt
from condsim.types import Task
from papers.pages import MARKER, kept_notes

SETS = ("sentihood", "druglib", "acos_laptop", "oats")
SIZES = (50, 200, 500, 2_000)
PAGE = Path(__file__).resolve().parent / "docs" / "results" / "adapt.md"

_SEEDS = 3
# Number of rows of a set that are measured on.
_TESTED = 1_000
_FIGURES = ("spearman", "pair_accuracy")


@dataclass(frozen=True)
class Curve:
    """Folders of the data, of figures and of unfinished work."""

    data: Path
    runs: Path

    def figures(self, name: str, size: int, seed: int, settings: AdaptSettings) -> dict[str, float]:
        """The figures of one adaptation, or with size 0 of the model as it ships."""
        kept = self.runs / f"{name}-{size}-{seed}.json"
        if kept.is_file():
            found: dict[str, float] = json.loads(kept.read_text(encoding="utf-8"))
            return found
        test = self._rows(name, _TESTED, part="test", seed=0)
        if size == 0:
            measured = self._measured(load_scorer(), test)
        else:
            rows, output = self._rows(name, size, part="train", seed=seed), kept.with_suffix("")
            shutil.rmtree(output, ignore_errors=True)
            result = adapt(rows, output, settings=settings.replaced(seed=seed), force=True)
            measured = self._measured(load_scorer(output), test)
            measured |= {"minutes": result.seconds / 60, "helped": float(result.helped)}
            measured |= {"moved": result.moved}
            shutil.rmtree(output)
        write_text(kept, json.dumps(measured))
        return measured

    def _rows(self, name: str, number: int, *, part: str, seed: int) -> Path:
        """Draw pairs of half of the texts of a set."""
        output = self.runs / f"{name}-{part}-{number}-{seed}.csv"
        if not output.is_file():
            files = sorted((self.data / "criteria" / name).glob("*.jsonl.gz"))
            if not files:
                raise InputError(f"{self.data / 'criteria' / name} has no files (*.jsonl.gz).")
            items = [item for path in files for item in iter_criteria(path)]
            order = np.random.default_rng(0).permutation(len(items)).tolist()
            half = order[: len(items) // 2] if part == "train" else order[len(items) // 2 :]
            settings = CriteriaSettings(rows=number, form="pairs", seed=seed)
            drawn = criteria_rows((items[place] for place in half), settings, name=name)
            write_rows(drawn, output, kind=PairRow)
        return output

    def _measured(self, scorer: object, test: Path) -> dict[str, float]:
        """Spearman and pair accuracy on a set, Spearman on C-STS and STS-B."""
        if not isinstance(scorer, EmbeddingScorer):
            raise InputError("The curve is that of a bi-encoder.")
        own = _metrics(scorer, load_task(test))
        csts = _metrics(scorer, load_task(self.data / "csts-reannotated" / "dev.csv"))
        plain = _metrics(scorer, load_task(self.data / "sts-b" / "sts-dev.csv"))
        return {
            **{name: own[name] for name in _FIGURES},
            "csts": csts["spearman"],
            "stsb": plain["spearman"],
        }


def _metrics(scorer: EmbeddingScorer, task: Task) -> dict[str, float]:
    report = evaluate(scorer, task, resamples=1)
    return {name: metric.value for name, metric in report.model.metrics.items()}


def page(
    figures: dict[tuple[str, int], list[dict[str, float]]], command: str, notes: str = ""
) -> str:
    """Write the table of a curve in Markdown; where there are several seeds, mean ± deviation.

    ``notes`` is what a person wrote below the marker.
    """
    lines = [
        "| set | pairs | Spearman | pair accuracy | C-STS dev | STS-B dev | moved | minutes |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    names = (*_FIGURES, "csts", "stsb", "moved", "minutes")
    for (name, size), runs in figures.items():
        cells = [_cell([run[key] for run in runs if key in run], key) for key in names]
        lines.append(f"| {name} | {size or 'none'} | {' | '.join(cells)} |")
    return f"""# Adapting: how many pairs?

`condsim adapt` with 50 to 2,000 labelled pairs of four open data sets that the model was not
trained on. They serve here as a user's own data: pairs are drawn from half of the texts, and
Spearman (x 100) and pair accuracy (%) are those on up to {_TESTED:,} rows of the other half. C-STS
and STS-B, both Spearman, show what is lost; "moved" is the mean change of scores from 0 to 1 on
texts of other domains. C-STS dev is higher here than elsewhere: the default model has seen most
of its rows. The weights were not kept.

Made by `{command}`.

{chr(10).join(lines)}

{MARKER}""" + (notes or "\n")


def _cell(values: Sequence[float], key: str) -> str:
    if not values:
        return ""
    digits = 3 if key == "moved" else 1
    text = f"{statistics.fmean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {statistics.stdev(values):.{digits}f}"


app = typer.Typer(add_completion=False)


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("../shared/data"),
    runs: Annotated[Path, typer.Option(help="Folder of figures and unfinished work.")] = Path(
        "runs/adapt-curve"
    ),
    sets: Annotated[list[str] | None, typer.Option("--set", help="Set; repeatable.")] = None,
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Pairs; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Adaptations of each size.")] = _SEEDS,
    output: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
) -> None:
    """Measure what adapting brings with how many pairs."""
    runs.mkdir(parents=True, exist_ok=True)
    curve, settings = Curve(data, runs), AdaptSettings()
    figures: dict[tuple[str, int], list[dict[str, float]]] = {}
    with long_work():
        for name in sets or SETS:
            for size in (0, *(sizes or SIZES)):
                figures[name, size] = [
                    curve.figures(name, size, seed, settings)
                    for seed in range(1 if size == 0 else seeds)
                ]
    options = [f"--set {name}" for name in sets or ()] + [f"--size {size}" for size in sizes or ()]
    options += [f"--seeds {seeds}"] if seeds != _SEEDS else []
    command = " ".join(["python -m papers.adapt_curve", *options])
    write_text(output, page(figures, command, kept_notes(output)))
    typer.echo(f"{output}: {len(figures)} rows")


if __name__ == "__main__":
    run_app(app)
