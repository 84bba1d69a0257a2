"""What a sweep found: results that are written, read back and laid out as Markdown."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from condsim.errors import InputError
from condsim.evaluation import ModelResult
from condsim.files import write_text
from condsim.settings import Settings
from condsim.training.recipe import Recipe
from condsim.training.sweep.spec import value_text

_FORMAT = 1


class Correlations(Settings):
    """Two correlations with the gold labels x 100; None for constant scores."""

    spearman: float | None
    pearson: float | None

    @classmethod
    def of(cls, result: ModelResult) -> Correlations:
        """Takes the two from the result of an evaluation."""
        values = {name: result.metrics[name].value for name in cls.model_fields}
        return cls(**{name: None if math.isnan(v) else v for name, v in values.items()})


class TrialResult(Settings):
    """One trial."""

    parameters: dict[str, Any]  # by recipe key
    folder: str  # of the run, relative to that of the sweep
    dev: Correlations
    seconds: float | None  # of training
    error: str | None = None  # why it has no result, such as a training that diverged


class SeedResult(Settings):
    """What the best recipe reached with one seed."""

    seed: int
    folder: str  # of the run, relative to that of the sweep
    figures: Correlations


class HeldOut(Settings):
    """What the models of the best recipe reached on the held-out file."""

    file: str  # as the sweep names it
    revision: str  # first 12 hex digits of its SHA-256
    rows: int  # with a label
    seeds: tuple[SeedResult, ...]
    condition_only: Correlations


class SweepResult(Settings):
    """The result of a sweep on the dev file, and on the held-out file if it names one."""

    name: str
    search: dict[str, Any]  # what decided the trials; see ``SweepSpec.search``
    trials: tuple[TrialResult, ...]  # the best first, those without a result last
    recipe: Recipe  # the best, with the seed that the trials had
    seeds: tuple[SeedResult, ...]
    condition_only: Correlations
    held_out: HeldOut | None = None  # stored in a file of its own


Result = TypeVar("Result", HeldOut, SweepResult)


def write_result(result: HeldOut | SweepResult, path: Path) -> None:
    """Writes a result, with mean and deviation over the seeds, in one step."""
    content = result.model_dump(mode="json", exclude={"held_out"})
    whole = {"format": _FORMAT, **content, "mean": _means(result.seeds)}
    write_text(path, json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_result(kind: type[Result], path: Path) -> Result:
    """Reads what :func:`write_result` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a result of a sweep: {error}.") from error
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise InputError(f"{path} is not a result of a sweep in format {_FORMAT}.")
    content.pop("mean", None)
    try:
        return kind.model_validate_json(json.dumps(content))
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise InputError(
            f"{path} is not a whole result of a sweep: '{place}': {fault['msg']}."
        ) from error


def to_markdown(result: SweepResult) -> str:
    """Lays the result out: the trials, the best recipe's seeds, the baseline, the held-out file.

    Returns:
        Markdown that ends in a newline. Spearman and Pearson are x 100.
    """
    keys = list(result.trials[0].parameters)
    dev = result.recipe.dev
    lines = [f"# Sweep {result.name}", "", f"{len(result.trials)} trials on `{dev}`:", ""]
    lines += _table(
        ["", *keys, "Spearman", "Pearson", "minutes"],
        (
            [
                str(rank),
                *(_escape(value_text(trial.parameters[key])) for key in keys),
                *_cells(trial.dev),
                "-" if trial.seconds is None else f"{trial.seconds / 60:.1f}",
            ]
            for rank, trial in enumerate(result.trials, start=1)
        ),
    )
    failed = [trial for trial in result.trials if trial.error]
    lines += [""] * bool(failed)
    lines += [f"- no result: `{trial.folder}`: {_escape(str(trial.error))}" for trial in failed]
    lines += ["", f"The best recipe with {len(result.seeds)} seeds on `{dev}`, its runs apart from"]
    lines += ["the trials unless a seed is that of the trials:", ""]
    lines += _seeds_table(result.seeds, result.condition_only)
    if result.held_out is not None:
        file, rows = result.held_out.file, result.held_out.rows
        lines += ["", f"The same models on the held-out `{file}` ({rows} rows), scored once:", ""]
        lines += _seeds_table(result.held_out.seeds, result.held_out.condition_only)
    return "\n".join(lines) + "\n"


def _seeds_table(seeds: Sequence[SeedResult], condition_only: Correlations) -> list[str]:
    spreads = [
        _number(one["mean"]) + ("" if one["std"] is None else f" ± {_number(one['std'])}")
        for one in _means(seeds).values()
    ]
    return _table(
        ["", "Spearman", "Pearson"],
        [
            *([f"seed {seed.seed}", *_cells(seed.figures)] for seed in seeds),
            ["**mean ± standard deviation**", *spreads],
            ["condition-only", *_cells(condition_only)],
        ],
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def _cells(figures: Correlations) -> list[str]:
    return [_number(figures.spearman), _number(figures.pearson)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _means(seeds: Sequence[SeedResult]) -> dict[str, dict[str, float | None]]:
    """Mean and sample standard deviation over the seeds; None where they do not exist."""
    means: dict[str, dict[str, float | None]] = {}
    for name in ("spearman", "pearson"):
        values = [getattr(seed.figures, name) for seed in seeds]
        whole = None not in values
        means[name] = {
            "mean": statistics.fmean(values) if whole else None,
            "std": statistics.stdev(values) if whole and len(values) > 1 else None,
        }
    return means
