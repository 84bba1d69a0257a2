"""What ``condsim evaluate --suite`` does: loads data sets, measures scorers, shows and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

import typer

from condsim.cli.long_work import tell_of_long_work
from condsim.errors import InputError, require, unknown_name

__all__ = ["refuse", "run_suite"]

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
    from condsim.evaluation.aggregation import Aggregation
    from condsim.evaluation.suite import evaluate_suite
    from condsim.evaluation.suite_cache import default_cache
    from condsim.evaluation.suite_data import Suite, load_suite
    from condsim.scorers.named import UNFITTED_BASELINES, named_scorer
    from condsim.scorers.precision import Precision, check_precision

    _check(aggregation, condition, against, resamples, plot)
    check_precision(precision)
    scorers = [named_scorer(model) for model in models]
    reference = None if against is None else named_scorer(against)
    names = {scorer.name for scorer in scorers} | set(UNFITTED_BASELINES)
    if reference is not None and reference.name not in names:
        scorers.insert(0, reference)
    kept = None if cache == _OFF else cache or default_cache()
    from condsim.cli.stages import StageProgress, log_beside

    with StageProgress() as progress:
        log_beside(progress)
        tell_of_long_work()
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
        from condsim.evaluation.suite_heat_map import heat_map

        heat_map(report, plot)
    from condsim.evaluation.suite_tables import suite_markdown, suite_tables

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
    from condsim.evaluation.aggregation import Aggregation

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
