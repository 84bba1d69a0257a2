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
from condsim.files import replacing
from condsim.settings import Settings
from condsim.training.recipe import Recipe
from condsim.training.sweep.spec import value_text

_FORMAT = 1


class Correlations(Settings):
    """Two correlations with the gold labels.

    Attributes:
        spearman: Spearman x 100; None where it does not exist (constant scores).
        pearson: Pearson x 100; None where it does not exist.
    """

    spearman: float | None
    pearson: float | None

    @classmethod
    def of(cls, result: ModelResult) -> Correlations:
        """Takes the two from the result of an evaluation."""
        values = {name: result.metrics[name].value for name in cls.model_fields}
        return cls(**{name: None if math.isnan(v) else v for name, v in values.items()})


class TrialResult(Settings):
    """One trial.

    Attributes:
        parameters: The values that the sampler chose, by recipe key.
        folder: Its run folder, relative to that of the sweep.
        dev: What it reached on the dev file.
        seconds: What the training took.
        error: Why it has no result, such as a training that diverged; None if it has.
    """

    parameters: dict[str, Any]
    folder: str
    dev: Correlations
    seconds: float | None
    error: str | None = None


class SeedResult(Settings):
    """The best recipe with one seed.

    Attributes:
        seed: The seed.
        folder: The run folder, relative to that of the sweep.
        figures: What the model reached.
    """

    seed: int
    folder: str
    figures: Correlations


class HeldOut(Settings):
    """What the models of the best recipe reached on the held-out file.

    Attributes:
        file: The file, as the sweep names it.
        revision: First 12 hex digits of its SHA-256.
        rows: Its rows with a label.
        seeds: One result for each model.
        condition_only: The baseline, fitted on the training file.
    """

    file: str
    revision: str
    rows: int
    seeds: tuple[SeedResult, ...]
    condition_only: Correlations


class SweepResult(Settings):
    """The result of a sweep.

    Attributes:
        name: Name of the sweep.
        search: What decided the trials; see ``SweepSpec.search``.
        trials: All trials, the best first, those without a result last.
        recipe: The best recipe, with the seed that the trials had.
        seeds: The best recipe with each seed, on the dev file.
        condition_only: The baseline that sees the condition only, on the dev file.
        held_out: The result on the held-out file, which has a file of its own; None if the sweep
            has none.
    """

    name: str
    search: dict[str, Any]
    trials: tuple[TrialResult, ...]
    recipe: Recipe
    seeds: tuple[SeedResult, ...]
    condition_only: Correlations
    held_out: HeldOut | None = None


Result = TypeVar("Result", HeldOut, SweepResult)


def write_result(result: HeldOut | SweepResult, path: Path) -> None:
    """Writes a result, with mean and deviation over the seeds, in one step."""
    content = result.model_dump(mode="json", exclude={"held_out"})
    whole = {"format": _FORMAT, **content, "mean": _means(result.seeds)}
    with replacing(path) as partial:
        text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")


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

    Args:
        result: The result.

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
