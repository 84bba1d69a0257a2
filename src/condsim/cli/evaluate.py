"""``condsim evaluate``: measures a model on a labelled file, next to the baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from condsim.cli.options import JsonFile, Resamples
from condsim.cli.running import check_outputs, long_work
from condsim.errors import InputError, require, unknown_name

if TYPE_CHECKING:
    from rich.table import Table

    from condsim.evaluation.report import Report
    from condsim.evaluation.suite.result import SuiteReport
    from condsim.types import Scorer

_OFF = Path("off")
_SUITE_BASELINES = ("word-overlap", "condition-only")


def _refuse(why: str, options: Mapping[str, tuple[object, str]]) -> None:
    """Refuses options that were given; by name the value and what to do instead."""
    for option, (given, instead) in options.items():
        if given:
            raise InputError(f"{option} {why}: {instead}.")


def _run_suite(
    data: Path,
    *,
    suite: str,
    models: Sequence[str | None],
    baselines: bool,
    trained_on: Sequence[str],
    against: str | None,
    condition: str | None,
    aggregation: str,
    resamples: int,
    bootstrap: bool,
    seed: int,
    cache: Path | None,
    precision: str,
) -> SuiteReport:
    """Measures scorers on the data sets of a suite."""
    from condsim.evaluation.correlation import Aggregation
    from condsim.evaluation.suite.data import BY_SET, Suite, load_suite
    from condsim.evaluation.suite.running import evaluate_suite
    from condsim.evaluation.suite.sets import mark_trained
    from condsim.evaluation.suite.work import default_cache
    from condsim.loading import named_scorer
    from condsim.model.baselines import BASELINES, UNFITTED_BASELINES
    from condsim.model.torch import Precision, check_precision

    by_set = suite in BY_SET
    if not by_set:
        only = f"--suite {' and '.join(BY_SET)}"
        _refuse(f"is for {only} only", {"--baselines": (baselines, "they are always there")})
    else:
        _refuse(f"is not for --suite {suite}", {"--condition": (condition, "every row has one")})
    if suite != "criteria":
        _refuse("is for --suite criteria only", {"--trained-on": (trained_on, "leave it out")})
    resamples = resamples if bootstrap or by_set else 0
    _check(aggregation, condition, against, resamples)
    check_precision(precision)
    scorers = [named_scorer(model) for model in models]
    reference = None if against is None else named_scorer(against)
    names = {scorer.name for scorer in scorers} | (set() if by_set else set(UNFITTED_BASELINES))
    if reference is not None and reference.name not in names:
        scorers.insert(0, reference)
    kept = None if cache == _OFF else cache or default_cache()
    with long_work(log="condsim.contexts") as progress:
        progress("reading the data", 0, 0)
        tasks = load_suite(data, cast(Suite, suite), triplets_cache=kept)
        if suite == "criteria":
            own = {name for scorer in scorers for name in scorer.trained_on()}
            tasks = mark_trained(tasks, trained_on or [t.key for t in tasks if t.key in own])
        return evaluate_suite(
            scorers,
            tasks,
            against=None if reference is None else reference.name,
            condition=condition,
            aggregation=cast(Aggregation, aggregation),
            resamples=resamples,
            seed=seed,
            cache=kept,
            precision=cast(Precision, precision),
            baselines=(_SUITE_BASELINES if baselines else ()) if by_set else tuple(BASELINES),
            progress=progress,
        )


def _check(aggregation: str, condition: str | None, against: str | None, resamples: int) -> None:
    """Finds the cheap mistakes before any data are read."""
    from condsim.evaluation.correlation import Aggregation

    if aggregation not in get_args(Aggregation):
        raise unknown_name("aggregation", aggregation, get_args(Aggregation))
    if condition is not None and not condition.strip():
        raise InputError("--condition: must have text; leave it out to compare as a whole.")
    if against is not None and not resamples:
        raise InputError("--against marks differences by a bootstrap; give --bootstrap as well.")


def _check_plot(plot: Path | None) -> None:
    if plot is not None:
        if plot.suffix.lower() != ".png":
            raise InputError(f"--plot: the name must end in .png. Got {plot} instead.")
        require("matplotlib", extra="train")


def _show_suite(
    report: SuiteReport, *, json: Path | None, csv: Path | None, markdown: bool, plot: Path | None
) -> None:
    """Writes the files of a suite, and prints its tables."""
    from condsim.console import Terminal
    from condsim.evaluation.suite.tables import heat_map, suite_markdown, suite_tables

    if json is not None:
        report.to_json(json)
    if csv is not None:
        report.to_csv(csv)
    if plot is not None:
        heat_map(report, plot)
    _show(suite_markdown(report) if markdown else suite_tables(report, width=Terminal().width))


def _show(tables: str | Iterable[Table | None]) -> None:
    """Prints Markdown, or tables for a terminal."""
    from condsim.console import Terminal

    if isinstance(tables, str):
        typer.echo(tables, nl=False)
        return
    console = Terminal()
    for table in filter(None, tables):
        console.print(table)


def evaluate(
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled file: CSV, TSV, JSONL or Parquet with sentence1, sentence2, condition, "
            "label; also written pairs (.txt), STS, SICK, STS-B, AFS, or hub:owner/name@revision. "
            "With --suite the folder of the data sets."
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model folder or Hub name; or mean:NAME, cls:NAME, bertscore:NAME@LAYER, "
            "cross-encoder:NAME, glove:FILE. With --suite repeatable, also as LABEL=NAME.",
            show_default="the model that ships",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Measure on the data sets of a suite: sts, sts-b, csts, afs, wiki-sections or "
            "all; criteria for rows of many domains, written for written pairs by domain."
        ),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="With --suite criteria or written: add word-overlap and condition-only.",
        ),
    ] = False,
    trained_on: Annotated[
        list[str] | None,
        typer.Option(
            help="With --suite criteria: a set that the model was trained on. Repeatable.",
            show_default="what the model's settings say",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="Add a baseline to condition-only: sentences-only, tfidf-cosine or "
            "word-overlap. Repeatable."
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
    bootstrap: Annotated[
        bool,
        typer.Option(
            "--bootstrap",
            help="With --suite: 95 % intervals; mark significant differences. Always with criteria "
            "and written.",
        ),
    ] = False,
    aggregation: Annotated[
        str | None,
        typer.Option(
            help="With --suite: how to aggregate the subsets of a year: all, mean or wmean.",
            show_default="all",
        ),
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(help="With --suite: condition for pairs that have none.", show_default="none"),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="With --suite: folder for cached scores, or 'off'.",
            show_default="condsim/suite in your cache folder",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="With --suite: number format of encoders: float32, bfloat16, float16, or auto: "
            "the faster of the first two, measured.",
            show_default="auto",
        ),
    ] = None,
    json: JsonFile = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="With --suite: also write one line per metric to this CSV file."),
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
            "--against model first. With --suite: plot a heat map."
        ),
    ] = None,
) -> None:
    """Measure a model on labelled rows, or several models on the data sets of a suite.

    Prints Spearman, Pearson, MSE, pair accuracy and partial Spearman with 95 % bootstrap
    intervals. The table always includes the condition-only baseline: a model that is no better
    has not looked at the sentences.

    **Examples**

    `condsim evaluate --data dev.csv`

    `condsim evaluate --data dev.csv --train train.csv --baseline word-overlap --json report.json`

    `condsim evaluate --data dev.csv --model runs/new --against runs/old --markdown`

    `condsim evaluate --data dev.csv --against runs/old --over-estimation --plot over.png`

    `condsim evaluate --suite sts --data datasets --model default --model runs/new --bootstrap`

    `condsim evaluate --suite criteria --data datasets --model default --model runs/new --baselines`
    """
    check_outputs(json=json, csv=csv, plot=plot)
    _check_plot(plot)
    if suite is not None:
        _refuse(
            "is not for --suite",
            {
                "--baseline": (baseline, "they are always there"),
                "--train": (train, "the training rows of C-STS are found beside it"),
                "--over-estimation": (over_estimation, "give a file of C-STS instead"),
            },
        )
        measured = _run_suite(
            data,
            suite=suite,
            models=model or [None],
            baselines=baselines,
            trained_on=trained_on or [],
            against=against,
            condition=condition,
            aggregation=aggregation or "all",
            resamples=resamples,
            bootstrap=bootstrap,
            seed=seed,
            cache=cache,
            precision=precision or "auto",
        )
        _show_suite(measured, json=json, csv=csv, markdown=markdown, plot=plot)
        return
    only_suite = "a single file has no use for it"
    _refuse(
        "is for --suite only",
        {
            "--bootstrap": (bootstrap, "intervals are always there"),
            "--baselines": (baselines, "give each as --baseline"),
            "--trained-on": (trained_on, only_suite),
            "--aggregation": (aggregation, only_suite),
            "--condition": (condition, only_suite),
            "--cache": (cache, only_suite),
            "--precision": (precision, only_suite),
            "--csv": (csv, "write --json"),
            "a second --model": (len(model or ()) > 1, "give it as --against"),
        },
    )
    if plot is not None and not over_estimation:
        raise InputError("--plot draws over-estimation; give --over-estimation as well.")
    with long_work(log="condsim.contexts"):
        report = _evaluated(
            data,
            model=model[0] if model else None,
            baselines=baseline or [],
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

    tables = (to_table(report), over_estimation_table(report))
    _show(to_markdown(report) if markdown else tables)


def _evaluated(
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
    """Loads data and models, the cheap and likely mistakes first, measures and plots."""
    from condsim.data.load import load_task
    from condsim.evaluation.evaluate import evaluate as measure, labelled_rows, score_rows
    from condsim.evaluation.tables import predicted_against_gold
    from condsim.loading import open_scorer
    from condsim.model.baselines import baseline as make_baseline

    for name in baselines:
        make_baseline(name)
    task = load_task(data, require_labels=True)
    condition_only: Scorer | None = None
    chosen: list[Scorer | str] = [name for name in dict.fromkeys(baselines)]
    if train is not None:
        rows = load_task(train, require_labels=True)
        if rows.conditions is not None:
            condition_only = make_baseline("condition-only", train=rows)
        chosen = [
            make_baseline(str(name), train=rows) for name in chosen if name != "condition-only"
        ]
    valid = labelled_rows(task, over_estimation=over_estimation)
    scorer, other = open_scorer(model), None if against is None else open_scorer(against)
    scores = score_rows(scorer, valid)
    others = None if other is None else score_rows(other, valid)
    report = measure(
        scores,
        task,
        baselines=chosen,
        against=others,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
        over_estimation=over_estimation,
    )
    if plot is not None:  # the model that came before on the left
        named = {} if others is None or against is None else {against: others}
        named[model or scores.name] = scores
        raw = {name: one.values if one.raw is None else one.raw for name, one in named.items()}
        predicted_against_gold(raw, valid, plot)
    return report
