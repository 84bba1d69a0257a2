"""``condsim applicability``: train and measure the applicability head."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from typer import Argument, Option

from condsim.cli.files import Output
from condsim.cli.options import JsonFile, Model, Resamples, Seed, Strict, show_table, write_report
from condsim.cli.process import print_note

if TYPE_CHECKING:
    from condsim.model.embedding import EmbeddingScorer
    from condsim.training.applicability import ApplicabilityReport
    from condsim.types import Task

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

Data: TypeAlias = Annotated[
    Path,
    Argument(
        metavar="FILE", help="C-STS file whose label is -1 where the condition does not apply."
    ),
]
Extra: TypeAlias = Annotated[
    list[Path] | None,
    Option(help="More rows to train on, such as the output of condsim build weak. Repeatable."),
]
Sample: TypeAlias = Annotated[int, Option(min=2, help="Use at most this many extra rows.")]
Strength: TypeAlias = Annotated[
    float, Option(help="Inverse strength of the regularization, above 0.")
]


@app.command("fit")
def fit_applicability(
    data: Data,
    output: Annotated[
        Path,
        Option(help="JSON file to write; a model reads applicability.json in its folder."),
        Output(".json"),
    ],
    model: Model = None,
    extra: Extra = None,
    sample: Sample = 12_000,
    strength: Strength = 0.01,
    seed: Seed = 0,
    strict: Strict = False,
) -> None:
    """Train the applicability head: how likely a condition applies to both sentences.

    **Examples**

    `condsim applicability fit dev.csv --model runs/new --output runs/new/applicability.json`

    `condsim applicability fit dev.csv --extra weak.csv --output head.json`
    """
    from condsim.training.applicability import fit_head

    rows, more, scorer = _load_rows_and_model(
        data, extra, model, sample=sample, seed=seed, strict=strict
    )
    head = fit_head(scorer, rows, extra=more, strength=strength)
    head.save(output)
    typer.echo(
        f"{output}: {output.stat().st_size / 1e3:.0f} kB, trained on {head.facts['applies']:,} "
        f"rows that apply and {head.facts['does_not_apply']:,} that do not"
    )


@app.command("evaluate")
def evaluate_applicability(
    data: Data,
    model: Model = None,
    extra: Extra = None,
    sample: Sample = 12_000,
    strength: Strength = 0.01,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    json: JsonFile = None,
    strict: Strict = False,
) -> None:
    """Measure an applicability head by cross-validation, next to baselines.

    Rows of one sentence pair share a fold. An AUROC of 1 is perfect, 0.5 is chance.

    **Examples**

    `condsim applicability evaluate dev.csv`

    `condsim applicability evaluate dev.csv --extra weak.csv --json report.json`
    """
    from condsim.training.applicability import measure_applicability

    rows, more, scorer = _load_rows_and_model(
        data, extra, model, sample=sample, seed=seed, strict=strict
    )
    report = measure_applicability(
        scorer, rows, extra=more, strength=strength, seed=seed, resamples=resamples
    )
    write_report(json, report.model_dump())
    _print_applicability(report)


def _load_rows_and_model(
    data: Path, extra: list[Path] | None, model: str | None, *, sample: int, seed: int, strict: bool
) -> tuple[Task, Task | None, EmbeddingScorer]:
    from condsim.data.batch import BlankRows
    from condsim.data.csts import load_applicability
    from condsim.loading import load_encoder
    from condsim.training.applicability import load_extra

    blank = BlankRows(strict=strict)
    rows = load_applicability(data, blank=blank)
    print_note(blank.note("no part in the result"))
    more = load_extra(extra, sample=sample, seed=seed, exclude=rows) if extra else None
    return rows, more, load_encoder(model)


def _print_applicability(report: ApplicabilityReport) -> None:
    areas = {
        "head, cross-validated": report.head,
        "head trained on both, cross-validated": report.both,
        "condition alone (TF-IDF), cross-validated": report.condition_only,
        "similarity": report.cosine,
    }
    rows = [
        (name, f"{area.value:.3f}", f"{area.low:.3f} to {area.high:.3f}")
        for name, area in areas.items()
        if area is not None
    ]
    title = f"{report.data}: {report.rows:,} rows, {report.does_not_apply:,} do not apply"
    head = "predictor", "AUROC", "95 % interval"
    show_table(head, [*rows, ("chance", "0.500", "")], title=title)
    typer.echo(
        f"Mean squared error of the probabilities (Brier): {report.brier:.4f}; "
        f"of a constant: {report.brier_constant:.4f}."
    )
