"""Result of a sweep: trials, seeds of the best recipe, the held-out file, and their tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from condsim.config import Settings
from condsim.evaluation.report import ModelResult, Report, ResultFile, markdown_table
from condsim.training.recipe import Recipe
from condsim.training.sweep_spec import value_text


class Correlations(Settings):
    """Two correlations with the gold labels x 100; None for constant scores."""

    spearman: float | None
    pearson: float | None

    @classmethod
    def of(cls, result: ModelResult) -> Correlations:
        """Take the two from the result of an evaluation."""
        values = {name: result.metrics[name].value for name in cls.model_fields}
        return cls(**{name: None if math.isnan(v) else v for name, v in values.items()})


class TrialResult(Settings):
    """Result of a trial: the values by recipe key, the run folder, the figures on the dev file.

    ``error`` is the reason why there is none, such as a training that diverged.
    """

    parameters: dict[str, Any]
    folder: str
    dev: Correlations
    seconds: float | None
    error: str | None = None


class SeedResult(Settings):
    """Figures of the best recipe with one seed; ``folder`` is relative to that of the sweep."""

    seed: int
    folder: str
    figures: Correlations


class SeedResults(ResultFile):
    """Figures of models of several seeds, with mean and ``std``, and of a baseline.

    That is ``condition-only``, or word overlap for data without conditions.
    """

    subject = "sweep result"

    format: Literal[1] = 1
    seeds: tuple[SeedResult, ...]
    mean: dict[str, dict[str, float | None]]
    condition_only: Correlations
    baseline: str = "condition-only"


class HeldOut(SeedResults):
    """Figures of the best recipe on the held-out file: its name, revision and labeled rows."""

    file: str
    revision: str
    rows: int


class SweepResult(SeedResults):
    """Result of a sweep on the dev file, and on the held-out file, stored in a separate file.

    The best trial is the first; ``recipe`` is its recipe, with the seed that the trials had, and
    ``search`` what decided the trials.
    """

    name: str
    search: dict[str, Any]
    trials: tuple[TrialResult, ...]
    recipe: Recipe
    held_out: HeldOut | None = Field(default=None, exclude=True)


def seed_results(folders: Mapping[int, str], reports: Sequence[Report]) -> dict[str, Any]:
    """Fields of `SeedResults`."""
    seeds = [
        SeedResult(seed=seed, folder=folder, figures=Correlations.of(report.model))
        for (seed, folder), report in zip(folders.items(), reports, strict=True)
    ]
    means: dict[str, dict[str, float | None]] = {}
    for name in Correlations.model_fields:
        values = [getattr(seed.figures, name) for seed in seeds]
        complete = None not in values
        means[name] = {
            "mean": statistics.fmean(values) if complete else None,
            "std": statistics.stdev(values) if complete and len(values) > 1 else None,
        }
    baseline = reports[0].baselines[0]
    return {
        "seeds": tuple(seeds),
        "mean": means,
        "condition_only": Correlations.of(baseline),
        "baseline": baseline.name,
    }


def sweep_markdown(result: SweepResult) -> str:
    """Lay out the trials, the best recipe's seeds, the baseline and the held-out file.

    Returns:
        Markdown that ends in a newline. Spearman and Pearson are x 100.
    """
    keys = list(result.trials[0].parameters)
    dev = result.recipe.dev
    rows = []
    for rank, trial in enumerate(result.trials, start=1):
        values = [value_text(trial.parameters[key]) for key in keys]
        minutes = "-" if trial.seconds is None else f"{trial.seconds / 60:.1f}"
        rows.append([str(rank), *values, *_figure_cells(trial.dev), minutes])
    lines = [f"# Sweep {result.name}", "", f"{len(result.trials)} trials on `{dev}`:", ""]
    lines += markdown_table(["", *keys, "Spearman", "Pearson", "minutes"], rows)
    failed = [trial for trial in result.trials if trial.error]
    lines += [""] * bool(failed)
    lines += [f"- no result: `{trial.folder}`: {trial.error}" for trial in failed]
    lines += ["", f"The best recipe with {len(result.seeds)} seeds on `{dev}`, its runs apart from"]
    lines += ["the trials unless a seed is that of the trials:", ""]
    lines += _seeds_table(result)
    if result.held_out is not None:
        file, number = result.held_out.file, result.held_out.rows
        lines += ["", f"The same models on the held-out `{file}` ({number} rows), scored once:", ""]
        lines += _seeds_table(result.held_out)
    return "\n".join(lines) + "\n"


def _seeds_table(result: SeedResults) -> list[str]:
    means = []
    for figure in result.mean.values():
        spread = "" if figure["std"] is None else f" ± {_figure_text(figure['std'])}"
        means.append(_figure_text(figure["mean"]) + spread)
    return markdown_table(
        ["", "Spearman", "Pearson"],
        [
            *([f"seed {seed.seed}", *_figure_cells(seed.figures)] for seed in result.seeds),
            ["**mean ± standard deviation**", *means],
            [result.baseline, *_figure_cells(result.condition_only)],
        ],
    )


def _figure_cells(figures: Correlations) -> list[str]:
    return [_figure_text(figures.spearman), _figure_text(figures.pearson)]


def _figure_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
