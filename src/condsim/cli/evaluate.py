"""``condsim evaluate``: measures models on labelled files, next to the baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.options import JsonFile, Resamples
from condsim.cli.process import check_outputs, long_work
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from rich.table import Table

    from condsim.evaluation.report import Report
    from condsim.evaluation.suite import SuiteReport
    from condsim.types import Scorer


def evaluate(
    data: Annotated[
        list[Path],
        typer.Option(
            help="Labelled file: CSV, TSV, JSONL or Parquet with sentence1, sentence2, condition, "
            "label; also written pairs (.txt), scored pairs, STS-B, or hub:owner/name@revision. "
            "Repeatable. With --suite the folder of the data sets."
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model folder or Hub name; or mean:NAME, cls:NAME, cross-encoder:NAME. "
            "Repeatable; several may be named as LABEL=NAME.",
            show_default="the default model",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Measure on a set of data sets: criteria for rows of many domains, written for "
            "written pairs by domain, natural for texts as they come, with and without conditions."
        ),
    ] = None,
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            help="With --suite criteria: a set that the model was trained on. Repeatable.",
            show_default="those in the model's settings",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="Add a baseline: condition-only (always part of a single file), sentences-only, "
            "tfidf-cosine or word-overlap. Repeatable."
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with a second model: difference and p-value.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="File to fit the baselines on.", show_default="out of fold on the data file itself"
        ),
    ] = None,
    resamples: Resamples = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples and the folds.")] = 0,
    json: JsonFile = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            help="With several models or files: also write one line per metric to this CSV file."
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
    over_estimation: Annotated[
        bool,
        typer.Option(
            "--over-estimation",
            help="Also count the sentence pairs whose two rows the model pushes too far apart.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="With --over-estimation: plot raw similarity against gold to this PNG file, the "
            "--against model first."
        ),
    ] = None,
) -> None:
    """Measure a model on labelled rows, or several models on several files.

    Prints Spearman, Pearson, MSE, pair accuracy and partial Spearman with 95 % bootstrap
    intervals. The table always includes the condition-only baseline: a model that does not beat it
    ignores the sentences. With several models or files, or with --suite, prints a table with a row
    for each data set: Spearman and pair accuracy of each model.

    **Examples**

    `condsim evaluate --data dev.csv`

    `condsim evaluate --data dev.csv --train train.csv --baseline word-overlap --json report.json`

    `condsim evaluate --data dev.csv --model runs/new --against runs/old --markdown`

    `condsim evaluate --data dev.csv --against runs/old --over-estimation --plot over.png`

    `condsim evaluate --data mails.csv --data tickets.csv --model default --model runs/new`

    `condsim evaluate --suite criteria --data datasets --model default --model runs/new`
    """
    check_outputs(json=json, csv=csv, plot=plot)
    models, baselines = model or [], baseline or []
    several = suite is not None or len(data) > 1 or len(models) > 1
    _check_options(
        {
            "--trained-on": bool(trained_on),
            "--csv": csv is not None,
            "--train": train is not None,
            "--over-estimation": over_estimation,
            "--plot": plot is not None,
        },
        several=several,
        suite=suite,
    )
    if several:
        suite_report = _measure_suite(
            data,
            suite=suite,
            models=models or [None],
            baselines=baselines,
            trained_on=trained_on or [],
            against=against,
            resamples=resamples,
            seed=seed,
        )
        _show_suite(suite_report, json=json, csv=csv, markdown=markdown)
        return
    if plot is not None:
        if plot.suffix.lower() != ".png":
            raise InputError(f"--plot: the name must end in .png; got {plot}.")
        require("matplotlib", extra="train")
    with long_work(log="condsim.contexts"):
        report = _measure_file(
            data[0],
            model=models[0] if models else None,
            baselines=baselines,
            against=against,
            train=train,
            resamples=resamples,
            seed=seed,
            over_estimation=over_estimation,
            plot=plot,
        )
    if json is not None:
        report.to_json(json)
    from condsim.evaluation.tables import over_estimation_table, to_markdown, to_table

    _show(to_markdown(report) if markdown else (to_table(report), over_estimation_table(report)))


def _check_options(options: Mapping[str, bool], *, several: bool, suite: str | None) -> None:
    """Reject options that do not apply."""
    if options["--trained-on"] and suite != "criteria":
        raise InputError("--trained-on is for --suite criteria only.")
    if options["--csv"] and not several:
        raise InputError("--csv is for several models or files; give --json.")
    for option in ("--train", "--over-estimation", "--plot"):
        if options[option] and several:
            raise InputError(f"{option} is for a single model on a single file.")
    if options["--plot"] and not options["--over-estimation"]:
        raise InputError("--plot draws over-estimation; give --over-estimation as well.")


def _measure_suite(
    data: Sequence[Path],
    *,
    suite: str | None,
    models: Sequence[str | None],
    baselines: Sequence[str],
    trained_on: Sequence[str],
    against: str | None,
    resamples: int,
    seed: int,
) -> SuiteReport:
    """Measure several models on several files, or on the data sets of a suite."""
    from condsim.evaluation.natural import WithoutCondition
    from condsim.evaluation.suite import UnloadedScorer, evaluate_suite
    from condsim.evaluation.suite_data import load_files, load_suite, mark_trained
    from condsim.loading import named_scorer

    scorers: list[UnloadedScorer] = [named_scorer(name) for name in models]
    reference = None if against is None else named_scorer(against)
    if reference is not None:
        names = [scorer.name for scorer in scorers]
        if reference.name not in (*names, *baselines):
            scorers.insert(0, reference)
    with long_work(log="condsim.contexts") as progress:
        progress("reading the data", 0, 0)
        if suite is None:
            sets = load_files(data)
        else:
            if len(data) > 1:
                raise InputError("--suite takes one --data, the folder of its data sets.")
            sets = load_suite(data[0], suite)
        if suite == "natural":
            scorers += [WithoutCondition(scorer) for scorer in scorers]
        if suite == "criteria":
            known = {name for name in models for name in named_scorer(name).trained_on()}
            keys = [suite_set.key for suite_set in sets if suite_set.key in known]
            sets = mark_trained(sets, trained_on or keys)
        return evaluate_suite(
            scorers,
            sets,
            against=None if reference is None else reference.name,
            resamples=resamples,
            seed=seed,
            baselines=baselines,
            progress=progress,
        )


def _show_suite(
    report: SuiteReport, *, json: Path | None, csv: Path | None, markdown: bool
) -> None:
    """Write the files of a report on several models, and print its tables."""
    from condsim.console import Terminal
    from condsim.evaluation.suite_tables import suite_markdown, suite_tables

    if json is not None:
        report.to_json(json)
    if csv is not None:
        report.to_csv(csv)
    _show(suite_markdown(report) if markdown else suite_tables(report, width=Terminal().width))


def _show(tables: str | Iterable[Table | None]) -> None:
    """Print Markdown, or tables for a terminal."""
    from condsim.console import Terminal

    if isinstance(tables, str):
        typer.echo(tables, nl=False)
        return
    console = Terminal()
    for table in filter(None, tables):
        console.print(table)


def _measure_file(
    data: Path,
    *,
    model: str | None,
    baselines: list[str],
    against: str | None,
    train: Path | None,
    resamples: int,
    seed: int,
    over_estimation: bool,
    plot: Path | None,
) -> Report:
    """Load data and models, the cheap and likely mistakes first, measure and plot."""
    from condsim.data.load import load_task
    from condsim.evaluation.evaluate import evaluate as measure, labelled_rows, score_rows
    from condsim.evaluation.plots import predicted_against_gold
    from condsim.loading import open_scorer
    from condsim.model.baselines import baseline as make_baseline

    for name in baselines:
        make_baseline(name)
    task = load_task(data, require_labels=True)
    condition_only: Scorer | None = None
    chosen: list[Scorer | str] = list(dict.fromkeys(baselines))
    if train is not None:
        rows = load_task(train, require_labels=True)
        if rows.conditions is not None:
            condition_only = make_baseline("condition-only", train=rows)
        chosen = [
            make_baseline(str(name), train=rows) for name in chosen if name != "condition-only"
        ]
    valid = labelled_rows(task, over_estimation=over_estimation)
    scorer = open_scorer(model)
    reference = None if against is None else open_scorer(against)
    scores = score_rows(scorer, valid)
    reference_scores = None if reference is None else score_rows(reference, valid)
    report = measure(
        scores,
        task,
        baselines=chosen,
        against=reference_scores,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
        over_estimation=over_estimation,
    )
    if plot is not None:
        # The reference model is on the left.
        named = {}
        if against is not None and reference_scores is not None:
            named[against] = reference_scores
        named[model or scores.name] = scores
        raw = {
            name: entry.values if entry.raw is None else entry.raw for name, entry in named.items()
        }
        predicted_against_gold(raw, valid, plot)
    return report
