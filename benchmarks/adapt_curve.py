"""``python -m benchmarks.adapt_curve``: what adapting brings with 50 to 2,000 labeled pairs.

Four open sets that the default model was not trained on stand for a user's own data. Of each, half
of the texts are what a user might label and the other half is measured on, with C-STS and STS-B
measured too, to show what is lost. No adapted weights are kept; the figures are, so that a
killed run continues.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from papers.pages import MARKER, kept_notes

from condsim.cli.process import long_work, run_app
from condsim.data.load import load_task
from condsim.data.tables import iter_criteria
from condsim.evaluation.evaluate import evaluate
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.rows.build import PairRow, criteria_rows
from condsim.rows.records import write_rows
from condsim.rows.settings import CriteriaSettings
from condsim.training.adaptation import AdaptSettings, adapt

SETS = ("sentihood", "druglib", "acos_laptop", "oats")
SIZES = (50, 200, 500, 2_000)
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "adapt.md"
TESTED_ROWS = 1_000
FIGURES = {"spearman": 1, "pair_accuracy": 1, "csts": 1, "stsb": 1, "moved": 3, "minutes": 1}
"""Names of the figures and their digits, in the order of the table."""

Figures = dict[str, float]


def adapted_figures(data: Path, runs: Path, name: str, size: int, seed: int) -> Figures:
    """Measure one adaptation, or with size 0 the model as it ships; read it where it is done."""
    done = runs / f"{name}-{size}-{seed}.json"
    if done.is_file():
        figures: Figures = json.loads(done.read_text(encoding="utf-8"))
        return figures
    test = pair_rows(data, runs, name, TESTED_ROWS, part="test", seed=0)
    if size == 0:
        figures = measured(data, None, test)
    else:
        rows, output = pair_rows(data, runs, name, size, part="train", seed=seed), runs / done.stem
        shutil.rmtree(output, ignore_errors=True)
        result = adapt(rows, output, settings=AdaptSettings(seed=seed), force=True)
        figures = measured(data, output, test)
        figures |= {"minutes": result.seconds / 60, "moved": result.moved}
        shutil.rmtree(output)
    write_text(done, json.dumps(figures))
    return figures


def pair_rows(data: Path, runs: Path, name: str, number: int, *, part: str, seed: int) -> Path:
    """Draw pairs of half of the texts of a set."""
    output = runs / f"{name}-{part}-{number}-{seed}.csv"
    if not output.is_file():
        files = sorted((data / "criteria" / name).glob("*.jsonl.gz"))
        items = [item for path in files for item in iter_criteria(path)]
        order = np.random.default_rng(0).permutation(len(items)).tolist()
        half = order[: len(items) // 2] if part == "train" else order[len(items) // 2 :]
        settings = CriteriaSettings(rows=number, form="pairs", seed=seed)
        rows = criteria_rows((items[place] for place in half), settings, name=name)
        write_rows(rows, output, kind=PairRow)
    return output


def measured(data: Path, model: Path | None, test: Path) -> Figures:
    """Spearman and pair accuracy on a set, Spearman on C-STS and STS-B."""
    scorer, figures = load_encoder(model), {}
    for name, path in (
        ("own", test),
        ("csts", data / "csts-reannotated" / "dev.csv"),
        ("stsb", data / "sts-b" / "sts-dev.csv"),
    ):
        metrics = evaluate(scorer, load_task(path), resamples=1).model.metrics
        figures[name] = metrics["spearman"].value
        if name == "own":
            figures["pair_accuracy"] = metrics["pair_accuracy"].value
    figures["spearman"] = figures.pop("own")
    return figures


app = typer.Typer(add_completion=False)


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("../shared/data"),
    runs: Annotated[Path, typer.Option(help="Folder of figures and unfinished work.")] = Path(
        "runs/adapt-curve"
    ),
    sets: Annotated[list[str] | None, typer.Option("--set", help="Set; repeatable.")] = None,
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Pairs; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Adaptations of each size.")] = 1,
    output: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
) -> None:
    """Measure what adapting brings with how many pairs."""
    runs.mkdir(parents=True, exist_ok=True)
    rows = []
    with long_work():
        for name in sets or SETS:
            for size in (0, *(sizes or SIZES)):
                own = [
                    adapted_figures(data, runs, name, size, seed)
                    for seed in range(seeds if size else 1)
                ]
                rows.append(f"| {name} | {size or 'none'} | {' | '.join(_cells(own))} |")
    options = [f"--set {name}" for name in sets or ()] + [f"--size {size}" for size in sizes or ()]
    options += [f"--seeds {seeds}"] if seeds > 1 else []
    command = " ".join(["python -m benchmarks.adapt_curve", *options])
    text = PAGE_TEXT.format(rows="\n".join(rows), tested=f"{TESTED_ROWS:,}", command=command)
    write_text(output, text + MARKER + (kept_notes(output) or "\n"))
    typer.echo(str(output))


def _cells(runs: list[Figures]) -> list[str]:
    """Means over seeds; empty where there is no figure."""
    return [
        f"{np.mean([run[name] for run in runs]):.{digits}f}" if name in runs[0] else ""
        for name, digits in FIGURES.items()
    ]


PAGE_TEXT = """# Adapting: how many pairs?

`condsim adapt` with 50 to 2,000 labeled pairs of four open data sets that the model was not
trained on. They serve here as a user's own data: pairs are drawn from half of the texts, and
Spearman (x 100) and pair accuracy (%) are those on up to {tested} rows of the other half. C-STS
and STS-B, both Spearman, show what is lost; "moved" is the mean change of scores from 0 to 1 on
texts of other domains. The weights were not kept.

Made by `{command}`.

| set | pairs | Spearman | pair accuracy | C-STS dev | STS-B dev | moved | minutes |
|---|---:|---:|---:|---:|---:|---:|---:|
{rows}

"""


if __name__ == "__main__":
    run_app(app)
