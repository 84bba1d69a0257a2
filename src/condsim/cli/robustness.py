"""``condsim robustness``: how much scores change when a condition is reworded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.pairs import PairFile
from condsim.cli.process import print_note
from condsim.data.batch import BlankRows

if TYPE_CHECKING:
    from condsim.evaluation.rewording import Robustness


def robustness_command(
    file: Annotated[
        Path | None,
        Argument(
            help="File with sentence1, sentence2, condition_group, condition.",
            show_default="the built-in set",
        ),
    ] = None,
    *,
    pairs: PairFile,
    group_column: Annotated[
        str, Option(help="Column of what the wordings of a condition share.")
    ] = "condition_group",
    model: options.Model = None,
    top: Annotated[int, Option(min=0, help="Number of wordings to list, worst first.")] = 10,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    json: options.JsonFile = None,
) -> None:
    """Measure how much scores change when a condition is reworded without changing its meaning.

    Takes, for each sentence pair and each `condition_group` of the file, the standard deviation of
    the score (0 to 1) over the wordings. Prints mean and 95th percentile with 95 % intervals, for
    each condition and overall, then the wordings that change scores most.

    **Examples**

    `condsim robustness`

    `condsim robustness my-rewordings.csv --model runs/new --json robustness.json`
    """
    from condsim.data.rewordings import BUNDLED_REWORDINGS, load_rewordings
    from condsim.evaluation.rewording import robustness
    from condsim.loading import load_scorer

    blank = BlankRows(strict=pairs.strict)
    columns = pairs.text1, pairs.text2, group_column, pairs.condition_column
    if file is None:
        rewordings = load_rewordings(BUNDLED_REWORDINGS)
    else:
        rewordings = load_rewordings(
            file, columns=columns, file_format=pairs.file_format, blank=blank
        )
    result = robustness(load_scorer(model), rewordings, resamples=resamples, seed=seed)
    options.write_report(json, result.to_dict())
    _print_robustness(result, top=top)
    print_note(blank.note("no part in the result"))


def _print_robustness(result: Robustness, *, top: int) -> None:
    from condsim.evaluation.rewording import BAR

    kinds = sorted(result.kinds.items(), key=lambda item: -item[1].value)
    figures = [*kinds, ("mean", result.mean), ("95th percentile", result.p95)]
    options.show_table(
        ("condition", "deviation", "95 % interval"),
        [
            (name, f"{figure.value:.3f}", f"{figure.low:.3f} to {figure.high:.3f}")
            for name, figure in figures
        ],
        title=f"{result.model}: {result.groups} pairs, {result.rows} wordings",
    )
    if top:
        options.show_table(
            ("wording", "distance", "shift"),
            [(w.condition, f"{w.distance:.3f}", f"{w.shift:+.3f}") for w in result.wordings[:top]],
            title="Wordings that change scores most",
        )
    side = "below" if result.passes else "not below"
    typer.echo(f"The mean deviation, {result.mean.value:.3f}, is {side} the bar of {BAR:g}.")
