"""The result of an evaluation with its provenance: a file that can be read back and compared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from condsim.errors import InputError
from condsim.evaluation.statistics import OverEstimation
from condsim.files import replacing

FORMAT = 1

Figure = TypeVar("Figure")


@dataclass(frozen=True)
class Metric:
    """A figure with its interval.

    Attributes:
        value: The figure on the valid rows; NaN if it does not exist (constant scores).
        low: Lower end of the 95 % bootstrap interval; NaN if there is none.
        high: Upper end of it.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A figure of the model minus that of the model it is compared with.

    Attributes:
        value: The difference; NaN if it does not exist.
        low: Lower end of the 95 % paired bootstrap interval.
        high: Upper end of it.
        p_value: Two-sided paired bootstrap p-value of no difference, in (0, 1].
    """

    value: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class ModelResult:
    """What one scorer reached.

    Attributes:
        name: Name of the scorer.
        metrics: By name: ``spearman``, ``pearson`` and ``partial_spearman`` (x 100), ``mse`` (of
            gold in [0, 1]; lower is better), ``pair_accuracy`` (in %).
        revision: Version of the model, if it has one.
        fitted_on: For a fitted baseline, the rows it learnt from.
        over_estimation: Pairs driven too far apart, if they were counted.
        scored_by: What decides its scores beside the model, such as λ of an origin model (SSBC), if
            it says so.
    """

    name: str
    metrics: Mapping[str, Metric]
    revision: str | None = None
    fitted_on: str | None = None
    over_estimation: OverEstimation | None = None
    scored_by: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Report:
    """The result of an evaluation.

    Attributes:
        task: Name of the task.
        task_revision: First 12 hex digits of the SHA-256 of its file.
        rows: Number of rows.
        valid_rows: Rows with a label: the ones every figure is computed on.
        invalid_rows: Rows without one; neither scored nor counted in a figure.
        pairs: Distinct sentence pairs among the valid rows: the unit of the bootstrap.
        contrasting_pairs: Pairs whose two labels differ: those that pair accuracy counts.
        model: The model's result.
        baselines: Results of the baselines, the condition-only one first.
        against: Result of the model it is compared with, if any.
        comparison: By metric, model minus ``against``; empty without ``against``.
        seed: Seed of the resamples and of the folds.
        resamples: Number of bootstrap resamples.
        versions: Versions of condsim, Python and the libraries that were loaded.
        created: When, in UTC, ISO 8601.
    """

    task: str
    task_revision: str
    rows: int
    valid_rows: int
    invalid_rows: int
    pairs: int
    contrasting_pairs: int
    model: ModelResult
    baselines: tuple[ModelResult, ...]
    against: ModelResult | None
    comparison: Mapping[str, Difference]
    seed: int
    resamples: int
    versions: Mapping[str, str]
    created: str

    def to_json(self, path: str | Path) -> None:
        """Writes the report; an earlier file of that name is replaced in one step.

        Args:
            path: The file to write. NaN is written as null.

        Raises:
            InputError: If the folder does not exist.
        """
        write_json(self.to_dict(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Gives the report as plain values, NaN as None.

        Returns:
            What :meth:`from_dict` turns back into the same report.
        """
        content = _without_nan({"format": FORMAT, **asdict(self, dict_factory=_without_uncounted)})
        return cast(dict[str, Any], content)

    @classmethod
    def from_json(cls, path: str | Path) -> Report:
        """Reads a report that :meth:`to_json` wrote.

        Args:
            path: The file to read.

        Returns:
            The same report.

        Raises:
            InputError: If the file is missing, not a report, or of an unknown format version.
        """
        path = Path(path)
        return cls.from_dict(read_json(path), source=str(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, source: str) -> Report:
        """Builds a report from what :meth:`to_dict` gave.

        Args:
            content: The plain values.
            source: Where they come from, for errors.

        Returns:
            The same report.

        Raises:
            InputError: If they are no report, or one of an unknown format version.
        """
        if not isinstance(content, dict) or "format" not in content:
            raise InputError(f"{source} is not a report: it has no 'format'.")
        if content["format"] != FORMAT:
            raise InputError(
                f"{source} has report format {content['format']!r}; this condsim reads format "
                f"{FORMAT}. Evaluate again, or use the condsim that wrote it."
            )
        try:
            return _report(content)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{source} is not a whole report: {error!r}.") from error


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Writes plain values as JSON; an earlier file of that name is replaced in one step.

    Args:
        content: The values; NaN is not allowed.
        path: The file to write.

    Raises:
        InputError: If the folder does not exist.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:  # noqa: ANN401  (any JSON value)
    """Reads the JSON of a report."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"{path} is not a report: it is not JSON ({error}).") from error


def _report(content: Mapping[str, Any]) -> Report:
    """Builds a report from parsed JSON."""
    fields = {name: value for name, value in content.items() if name != "format"}
    fields["model"] = _result(content["model"])
    fields["baselines"] = tuple(_result(result) for result in content["baselines"])
    fields["against"] = None if content["against"] is None else _result(content["against"])
    fields["comparison"] = _figures(Difference, content["comparison"])
    return Report(**fields)


def _result(content: Mapping[str, Any]) -> ModelResult:
    """Builds a model result from parsed JSON."""
    fields = {**content, "metrics": _figures(Metric, content["metrics"])}
    if content.get("over_estimation") is not None:
        fields["over_estimation"] = OverEstimation(**content["over_estimation"])
    return ModelResult(**fields)


def _figures(kind: Callable[..., Figure], content: Mapping[str, Any]) -> dict[str, Figure]:
    """Builds figures by name from parsed JSON, null read as NaN."""
    return {
        name: kind(**{key: math.nan if value is None else value for key, value in figure.items()})
        for name, figure in content.items()
    }


def _without_uncounted(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields, those that few results have only where they are: older versions read the rest."""
    few = ("over_estimation", "scored_by")
    return {name: value for name, value in items if name not in few or value is not None}


def _without_nan(value: object) -> object:
    """The same structure with None for NaN: JSON has no NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return value
