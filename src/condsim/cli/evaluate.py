"""``condsim evaluate``: what a model reaches on a labelled file, with the baselines beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim.evaluation import Report
    from condsim.types import Scorer

__all__ = ["evaluate"]


def evaluate(
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled file: CSV, TSV or JSONL with sentence1, sentence2, condition, label.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or Hub name.", show_default="the model that ships"),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="Another baseline beside condition-only: sentences-only or word-overlap. "
            "May be given again.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="A second model: adds the difference and its p-value."),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="File to fit the baselines on.",
            show_default="out of fold on the data file itself",
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=1, help="Bootstrap resamples of the sentence pairs.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples and the folds.")] = 0,
    json: Annotated[
        Path | None, typer.Option(help="Also write the report to this file.", show_default=False)
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
) -> None:
    """Measure a model on labelled rows.

    Prints Spearman, Pearson, MSE, pair accuracy and partial Spearman with 95 % bootstrap
    intervals. The baseline that sees the condition only is always beside them: a model that is
    no better has not looked at the sentences.

    **Examples**

    `condsim evaluate --data dev.csv`

    `condsim evaluate --data dev.csv --train train.csv --baseline word-overlap --json report.json`

    `condsim evaluate --data dev.csv --model runs/new --against runs/old --markdown`
    """
    if json is not None and not json.parent.is_dir():
        raise InputError(f"--json: the folder {json.parent} does not exist; make it first.")
    if json is not None and json.is_dir():
        raise InputError(f"--json: {json} is a folder; give the name of a file to write.")
    report = _report(
        data,
        model=model,
        baselines=baseline or [],
        against=against,
        train=train,
        resamples=resamples,
        seed=seed,
    )
    if json is not None:
        report.to_json(json)
    _print(report, markdown=markdown)


def _report(
    data: Path,
    *,
    model: str | None,
    baselines: list[str],
    against: str | None,
    train: Path | None,
    resamples: int,
    seed: int,
) -> Report:
    """Loads data and models, the cheap and likely mistakes first, and evaluates."""
    from condsim.evaluation import evaluate as run_evaluation
    from condsim.scorers.baselines import baseline as make_baseline
    from condsim.scorers.load import load_scorer
    from condsim.tasks import load_csts

    for name in baselines:
        make_baseline(name)
    task = load_csts(data, require_labels=True)
    condition_only: Scorer | None = None
    chosen: list[Scorer | str] = [name for name in dict.fromkeys(baselines)]
    if train is not None:
        rows = load_csts(train, require_labels=True)
        condition_only = make_baseline("condition-only", train=rows)
        chosen = [
            make_baseline(str(name), train=rows) for name in chosen if name != "condition-only"
        ]
    return run_evaluation(
        load_scorer(model),
        task,
        baselines=chosen,
        against=None if against is None else load_scorer(against),
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
    )


def _print(report: Report, *, markdown: bool) -> None:
    """Prints the table to stdout."""
    from rich.console import Console

    from condsim.evaluation import to_markdown, to_table

    if markdown:
        typer.echo(to_markdown(report), nl=False)
    else:
        Console().print(to_table(report))
