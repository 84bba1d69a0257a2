"""``condsim evaluate``: what a model reaches on a labelled file, with the baselines beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from condsim.cli.running import check_output, long_work
from condsim.errors import InputError, require, unknown_name

if TYPE_CHECKING:
    from condsim.evaluation import Report
    from condsim.scorers import ScoredOnce
    from condsim.types import Scorer, Task

_OFF = Path("off")


def refuse(why: str, options: Mapping[str, tuple[object, str]]) -> None:
    """Refuses options that make no sense here.

    Args:
        why: What is wrong with them.
        options: What each was given as, and what to do instead, by its name.

    Raises:
        InputError: If one was given.
    """
    for option, (given, instead) in options.items():
        if given:
            raise InputError(f"{option} {why}: {instead}.")


def run_suite(
    data: Path,
    *,
    suite: str,
    models: Sequence[str | None],
    against: str | None,
    condition: str | None,
    aggregation: str,
    resamples: int,
    seed: int,
    cache: Path | None,
    precision: str,
    json: Path | None,
    csv: Path | None,
    markdown: bool,
    plot: Path | None,
) -> None:
    """Measures scorers on the data sets of a suite; prints the table and writes the files.

    Args:
        data: The folder that has the data sets in it.
        suite: Name of the suite.
        models: Scorers by name; None for the model that ships.
        against: The scorer that the others are compared with; measured too if it is none of them.
        condition: What pairs without a condition are compared with respect to, if anything.
        aggregation: How the subsets of a year become one figure.
        resamples: Bootstrap resamples; 0 for no intervals.
        seed: Seed of the resamples and of the folds of baselines.
        cache: Folder that keeps scores, ``off`` for none; the user's by default.
        precision: What encoders of sentence-transformers compute in.
        json: Where to write the report, if anywhere.
        csv: Where to write a line a figure, if anywhere.
        markdown: Whether the table is printed as Markdown.
        plot: Where to draw the heat map, if anywhere.

    Raises:
        InputError: If a name is unknown, there are no data, or a file breaks a rule.
        ModelError: If a model cannot be loaded.
        MissingExtraError: If a library is needed that is not installed.
    """
    from condsim.evaluation import Aggregation, Suite, default_cache, evaluate_suite, load_suite
    from condsim.loading import named_scorer
    from condsim.scorers import UNFITTED_BASELINES, Precision, check_precision

    _check(aggregation, condition, against, resamples, plot)
    check_precision(precision)
    scorers = [named_scorer(model) for model in models]
    reference = None if against is None else named_scorer(against)
    names = {scorer.name for scorer in scorers} | set(UNFITTED_BASELINES)
    if reference is not None and reference.name not in names:
        scorers.insert(0, reference)
    kept = None if cache == _OFF else cache or default_cache()
    with long_work(log="condsim.contexts") as progress:
        progress("reading the data", 0, 0)
        tasks = load_suite(data, cast(Suite, suite), triplets_cache=kept)
        report = evaluate_suite(
            scorers,
            tasks,
            against=None if reference is None else reference.name,
            condition=condition,
            aggregation=cast(Aggregation, aggregation),
            resamples=resamples,
            seed=seed,
            cache=kept,
            precision=cast(Precision, precision),
            progress=progress,
        )
    if json is not None:
        report.to_json(json)
    if csv is not None:
        report.to_csv(csv)
    if plot is not None:
        from condsim.evaluation import heat_map

        heat_map(report, plot)
    from condsim.evaluation import suite_markdown, suite_tables

    if markdown:
        typer.echo(suite_markdown(report), nl=False)
        return
    from rich.console import Console

    console = Console()
    for table in suite_tables(report, width=console.width):
        console.print(table)


def _check(
    aggregation: str, condition: str | None, against: str | None, resamples: int, plot: Path | None
) -> None:
    """Finds the cheap mistakes before any data are read."""
    from condsim.evaluation import Aggregation

    if aggregation not in get_args(Aggregation):
        raise unknown_name("aggregation", aggregation, get_args(Aggregation))
    if condition is not None and not condition.strip():
        raise InputError("--condition: must have text; leave it out to compare as a whole.")
    if plot is not None:
        if plot.suffix.lower() != ".png":
            raise InputError(f"--plot: the name must end in .png. Got {plot} instead.")
        require("matplotlib", extra="train")
    if against is not None and not resamples:
        raise InputError("--against marks differences by a bootstrap; give --bootstrap as well.")


def evaluate(
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled file: CSV, TSV or JSONL with sentence1, sentence2, condition, label; "
            "also STS, SICK, STS-B, AFS, or hub:owner/name@revision. With --suite the folder that "
            "has the data sets in it.",
            show_default=False,
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model folder or Hub name; or mean:NAME, cls:NAME, bertscore:NAME@LAYER, "
            "cross-encoder:NAME, glove:FILE. With --suite it may be given again, and as "
            "LABEL=NAME.",
            show_default="the model that ships",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Measure on the data sets of a suite: sts, sts-b, csts, afs, wiki-sections or "
            "all.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="Another baseline beside condition-only: sentences-only, tfidf-cosine or "
            "word-overlap. May be given again.",
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
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="With --suite: 95 % intervals and marks of difference."),
    ] = False,
    aggregation: Annotated[
        str | None,
        typer.Option(
            help="With --suite: how the subsets of a year become one figure: all, mean or wmean.",
            show_default="all",
        ),
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(
            help="With --suite: what pairs without a condition are compared with respect to.",
            show_default="nothing",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="With --suite: folder that keeps scores; 'off' for none.",
            show_default="condsim/suite in the user's folder for caches",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="With --suite: what encoders compute in: float32, bfloat16, or auto: bfloat16 "
            "where the processor has matrix units for it.",
            show_default="auto",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Also write the report to this file.", show_default=False)
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="With --suite: also write a line a figure here.", show_default=False),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
    over_estimation: Annotated[
        bool,
        typer.Option(
            "--over-estimation",
            help="Also count the sentence pairs whose two rows the model drives too far apart.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw raw similarity against gold to this PNG file, the model of --against first; "
            "with --over-estimation. With --suite a heat map.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure a model on labelled rows, or on all the data sets of a suite.

    Prints Spearman, Pearson, MSE, pair accuracy and partial Spearman with 95 % bootstrap
    intervals. The baseline that sees the condition only is always beside them: a model that is
    no better has not looked at the sentences.

    **Examples**

    `condsim evaluate --data dev.csv`

    `condsim evaluate --data dev.csv --train train.csv --baseline word-overlap --json report.json`

    `condsim evaluate --data dev.csv --model runs/new --against runs/old --markdown`

    `condsim evaluate --data dev.csv --against runs/old --over-estimation --plot over.png`

    `condsim evaluate --suite sts --data datasets --model default --model runs/new --bootstrap`
    """
    check_output("--json", json)
    check_output("--csv", csv)
    check_output("--plot", plot)
    if suite is not None:
        refuse(
            "is not for --suite",
            {
                "--baseline": (baseline, "they are always there"),
                "--train": (train, "the training rows of C-STS are found beside it"),
                "--over-estimation": (over_estimation, "give a file of C-STS instead"),
            },
        )
        run_suite(
            data,
            suite=suite,
            models=model or [None],
            against=against,
            condition=condition,
            aggregation=aggregation or "all",
            resamples=resamples if bootstrap else 0,
            seed=seed,
            cache=cache,
            precision=precision or "auto",
            json=json,
            csv=csv,
            markdown=markdown,
            plot=plot,
        )
        return
    only_suite = "a single file has no use for it"
    refuse(
        "is for --suite only",
        {
            "--bootstrap": (bootstrap, "intervals are always there"),
            "--aggregation": (aggregation, only_suite),
            "--condition": (condition, only_suite),
            "--cache": (cache, only_suite),
            "--precision": (precision, only_suite),
            "--csv": (csv, "write --json"),
            "a second --model": (len(model or ()) > 1, "give it as --against"),
        },
    )
    if plot is not None:
        if not over_estimation:
            raise InputError("--plot draws over-estimation; give --over-estimation as well.")
        if plot.suffix.lower() != ".png":
            raise InputError(f"--plot: the name must end in .png. Got {plot} instead.")
        require("matplotlib", extra="train")
    with long_work(log="condsim.contexts"):
        report = _report(
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
    over_estimation: bool,
    plot: Path | None,
) -> Report:
    """Loads data and models, the cheap and likely mistakes first, evaluates and plots."""
    from condsim.evaluation import evaluate as run_evaluation
    from condsim.loading import open_scorer
    from condsim.scorers import ScoredOnce, baseline as make_baseline
    from condsim.tasks import load_task

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
    scorer = ScoredOnce(open_scorer(model))
    other = None if against is None else ScoredOnce(open_scorer(against))
    report = run_evaluation(
        scorer,
        task,
        baselines=chosen,
        against=other,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
        over_estimation=over_estimation,
    )
    if plot is not None:
        named = {} if other is None or against is None else {against: other}
        _plot({**named, model or scorer.name: scorer}, task, plot)
    return report


def _plot(scorers: Mapping[str, ScoredOnce], task: Task, path: Path) -> None:
    """Draws raw similarity against gold, the model that came before on the left."""
    from condsim.evaluation import predicted_against_gold

    rows = task.labelled()
    scores = {
        name: scorer.score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")
        for name, scorer in scorers.items()
    }
    predicted_against_gold(scores, rows, path)


def _print(report: Report, *, markdown: bool) -> None:
    """Prints the table to stdout."""
    from rich.console import Console

    from condsim.evaluation import over_estimation_table, to_markdown, to_table

    if markdown:
        typer.echo(to_markdown(report), nl=False)
        return
    console = Console()
    console.print(to_table(report))
    if (counts := over_estimation_table(report)) is not None:
        console.print(counts)
