"""``condsim evaluate``: measures models on labeled files, next to the baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.pairs import LabeledPairs, LabeledVerdicts, load_pairs_as_task, read_verdicts
from condsim.cli.process import long_work
from condsim.errors import InputError
from condsim.model.base import SCORER_LOG

if TYPE_CHECKING:
    from rich.table import Table

    from condsim.evaluation.report import Report
    from condsim.evaluation.suite import SuiteReport
    from condsim.types import FloatArray, Scorer, Task


def evaluate_command(
    data: Annotated[
        list[Path],
        Argument(
            metavar="FILE...",
            help="Labeled pairs, written pairs (.txt), STS-B, or hub:owner/name@revision; with "
            "--suite, the folder of the data sets.",
        ),
    ],
    pairs: LabeledPairs,
    model: Annotated[
        list[str] | None,
        Option(
            help="Model folder or Hub name; or mean:, cls: or cross-encoder:NAME. Repeatable, also "
            "as LABEL=NAME.",
            show_default="the default model",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        Option(
            help="Set of data sets: criteria, written for written pairs by domain, natural for "
            "texts as they come, with and without conditions, or verdicts for a file of pairs "
            "with the right verdict."
        ),
    ] = None,
    trained_on: Annotated[
        list[str] | None,
        Option(
            help="Set of --suite criteria that the model was trained on. Repeatable.",
            show_default="those in the model's settings",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        Option(help="condition-only, sentences-only, tfidf-cosine or word-overlap. Repeatable."),
    ] = None,
    against: Annotated[str | None, Option(help="Second model to compare with.")] = None,
    train: Annotated[
        Path | None,
        Option(
            help="File to fit the baselines on.", show_default="out of fold on the data file itself"
        ),
    ] = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    json: options.JsonFile = None,
    csv: Annotated[
        Path | None,
        Option(help="CSV file with a line per metric, of several models or files."),
        Output(".csv"),
    ] = None,
    markdown: Annotated[bool, Option("--markdown", help="Print Markdown.")] = False,
    over_estimation: Annotated[
        bool,
        Option("--over-estimation", help="Count sentence pairs whose two rows are too far apart."),
    ] = False,
    plot: Annotated[
        Path | None,
        Option(
            help="With --over-estimation: plot raw similarity against gold to this PNG file, the "
            "--against model first."
        ),
        Output(".png"),
    ] = None,
) -> None:
    """Measure a model on labeled rows, or several models on several files.

    The table always includes the condition-only baseline: a model that does not beat it ignores
    the sentences. Several models or files, or --suite, give a table with a row for each data set.

    **Examples**

    `condsim evaluate dev.csv`

    `condsim evaluate pairs.csv --text1 left --text2 right --condition "the color" --label same`

    `condsim evaluate mails.csv tickets.csv --model default --model runs/new`
    """
    models = model or []
    if suite == "verdicts":
        others = (trained_on, baseline, against, train, csv, markdown, over_estimation, plot)
        if any(others):
            raise InputError(
                "--suite verdicts measures judges, --model large or a folder; it takes --json."
            )
        _measure_verdicts(data, pairs, models or [None], json, resamples, seed)
        return
    several = suite is not None or len(data) > 1 or len(models) > 1
    single = "a single model on a single file"
    for option, value, applies, use in (
        ("--train", train, not several, single),
        ("--over-estimation", over_estimation, not several, single),
        ("--plot", plot, over_estimation, "--over-estimation"),
        ("--csv", csv, several, "several models or files"),
        ("--trained-on", trained_on, suite == "criteria", "--suite criteria"),
    ):
        if value and not applies:
            raise InputError(f"{option} is for {use} only.")
    options.check_plot(plot, extra="train")
    load = partial(load_pairs_as_task, pairs=pairs, consequence="no score")
    compared = _Compared(models or [None], baseline or [], against, resamples, seed)
    if several:
        suite_report = _measure_suite(data, load, compared, suite=suite, trained_on=trained_on)
        options.write_report(json, suite_report.to_dict())
        if csv is not None:
            suite_report.to_csv(csv)
        _show(suite_report, markdown)
        return
    with long_work(log=SCORER_LOG):
        report = _measure_file(
            data[0], load, compared, train=train, over_estimation=over_estimation, plot=plot
        )
    options.write_report(json, report.to_dict())
    _show(report, markdown)


def _measure_verdicts(
    data: Sequence[Path],
    pairs: LabeledPairs,
    judges: Sequence[str | None],
    json: Path | None,
    resamples: int,
    seed: int,
) -> None:
    """Measure judges on files of pairs with the right verdict."""
    from condsim.evaluation.verdicts import verdict_figures
    from condsim.model.judge import VERDICTS

    reports = {}
    for file in data:
        rows = read_verdicts(file, pairs)
        reports[str(file)] = {
            name: verdict_figures(rows.right, found, rows.first, resamples=resamples, seed=seed)
            for name, found in _verdicts_by_method(rows, judges, seed)
        }
    names = ("macro F1", *VERDICTS, "wrongly merged", "wrongly kept")
    for file_name, report in reports.items():
        columns = [
            (
                f"{one.macro_f1:.1f} [{one.low:.1f}, {one.high:.1f}]",
                *(f"{one.f1[verdict]:.1f}" if verdict in one.f1 else "-" for verdict in VERDICTS),
                f"{one.wrongly_merged:.1f}",
                f"{one.wrongly_kept:.1f}",
            )
            for one in report.values()
        ]
        lines = [(name, *cells) for name, *cells in zip(names, *columns, strict=True)]
        title = f"{file_name}: {next(iter(report.values())).pairs:,} pairs"
        caption = "F1 x 100; percent of all pairs"
        options.show_table(("", *report), lines, title=title, caption=caption)
    options.write_report(json, reports)


def _verdicts_by_method(
    rows: LabeledVerdicts, judges: Sequence[str | None], seed: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield the verdicts of judges, and of what tells them by one score out of fold."""
    from condsim.evaluation.verdicts import verdicts_by_score
    from condsim.loading import load_encoder
    from condsim.model.baselines import baseline
    from condsim.model.judge import load_judge

    right, first, second, conditions = rows
    for judge in map(load_judge, judges):
        yield judge.name, [one.verdict for one in judge.verdict(first, second, conditions)]
        if conditions is not None:
            found = judge.verdict(first, second)
            yield f"{judge.name}, no condition", [one.verdict for one in found]
    scores: dict[str, FloatArray] = {
        "plain similarity": load_encoder(None).score(first, second),
        "word overlap": baseline("word-overlap").score(first, second, None),
        "most frequent": np.zeros(len(right), np.float32),
    }
    for name, column in scores.items():
        yield name, verdicts_by_score(column, right, first, seed=seed)


class _Compared(NamedTuple):
    """The models and baselines to measure, and how often and from which seed rows are drawn."""

    models: Sequence[str | None]
    baselines: Sequence[str]
    against: str | None
    resamples: int
    seed: int


def _measure_suite(
    data: Sequence[Path],
    load: Callable[[Path], Task],
    compared: _Compared,
    *,
    suite: str | None,
    trained_on: Sequence[str] | None,
) -> SuiteReport:
    """Measure several models on several files, or on the data sets of a suite."""
    from condsim.evaluation.suite import UnloadedScorer, evaluate_suite
    from condsim.evaluation.suite_data import WithoutCondition, load_files, load_suite, mark_trained
    from condsim.loading import named_scorer

    scorers: list[UnloadedScorer] = [named_scorer(name) for name in compared.models]
    reference = None if compared.against is None else named_scorer(compared.against)
    if reference is not None:
        names = [scorer.name for scorer in scorers]
        if reference.name not in (*names, *compared.baselines):
            scorers.insert(0, reference)
    with long_work(log=SCORER_LOG) as progress:
        progress("reading the data", 0, 0)
        if suite is None:
            sets = load_files(data, load)
        else:
            if len(data) > 1:
                raise InputError("--suite takes one argument, the folder of its data sets.")
            sets = load_suite(data[0], suite)
        if suite == "natural":
            scorers += [WithoutCondition(scorer) for scorer in scorers]
        if suite == "criteria":
            trained_keys = {
                key for name in compared.models for key in named_scorer(name).trained_on()
            }
            keys = [suite_set.key for suite_set in sets if suite_set.key in trained_keys]
            sets = mark_trained(sets, trained_on or keys)
        return evaluate_suite(
            scorers,
            sets,
            against=None if reference is None else reference.name,
            resamples=compared.resamples,
            seed=compared.seed,
            baselines=compared.baselines,
            progress=progress,
        )


def _show(report: Report | SuiteReport, markdown: bool) -> None:
    from condsim.evaluation.report import Report, over_estimation_table, to_markdown, to_table
    from condsim.evaluation.suite_tables import suite_markdown, suite_tables
    from condsim.terminal import Terminal

    console = Terminal()
    tables: Sequence[Table | None]
    if isinstance(report, Report):
        text, tables = to_markdown(report), (to_table(report), over_estimation_table(report))
    else:
        text, tables = suite_markdown(report), suite_tables(report, width=console.width)
    if markdown:
        typer.echo(text, nl=False)
        return
    for table in tables:
        if table is not None:
            console.print(table)


def _measure_file(
    data: Path,
    load: Callable[[Path], Task],
    compared: _Compared,
    *,
    train: Path | None,
    over_estimation: bool,
    plot: Path | None,
) -> Report:
    """Load data and models, the cheap and likely mistakes first, measure and plot."""
    from condsim.evaluation.evaluate import evaluate as measure, labeled_rows, score_rows
    from condsim.evaluation.plots import predicted_against_gold
    from condsim.loading import open_scorer
    from condsim.model.baselines import baseline as make_baseline

    for name in compared.baselines:
        make_baseline(name)
    task = load(data)
    condition_only: Scorer | None = None
    chosen: list[Scorer | str] = list(dict.fromkeys(compared.baselines))
    if train is not None:
        rows = load(train)
        if rows.conditions is not None:
            condition_only = make_baseline("condition-only", train=rows)
        chosen = [
            make_baseline(str(name), train=rows) for name in chosen if name != "condition-only"
        ]
    valid = labeled_rows(task, over_estimation=over_estimation)
    model, against = compared.models[0], compared.against
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
        resamples=compared.resamples,
        seed=compared.seed,
        over_estimation=over_estimation,
    )
    if plot is not None:
        # The reference model is on the left.
        named = {model or scores.name: scores}
        if against is not None and reference_scores is not None:
            named = {against: reference_scores, **named}
        raw = {
            name: entry.values if entry.raw is None else entry.raw for name, entry in named.items()
        }
        predicted_against_gold(raw, valid, plot)
    return report
