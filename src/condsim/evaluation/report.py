"""Result files: the results of an evaluation with their provenance, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import SerializerFunctionWrapHandler, ValidationError, model_serializer

from condsim.config import Settings
from condsim.errors import InputError
from condsim.evaluation.bootstrap import Difference, Metric
from condsim.evaluation.metrics import OverEstimation
from condsim.io import write_text

# Earlier versions of condsim read a report without these keys.
_OPTIONAL_KEYS = ("over_estimation", "scored_by")


class ResultFile(Settings):
    """A result stored as JSON; NaN is null in the file."""

    _kind: ClassVar[str] = "report"
    _format_key: ClassVar[str] = "format"
    _again: ClassVar[str] = "Evaluate again, or use the condsim that wrote it."

    def to_json(self, path: str | Path) -> None:
        """Write the report; an earlier file of that name is replaced in one step."""
        write_json(self.to_dict(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, NaN as None; `from_dict` reads them back."""
        values: dict[str, Any] = json.loads(self.model_dump_json())
        return values

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Read a report that `to_json` wrote."""
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a {cls._kind}: it is not JSON ({error}).") from error
        return cls.from_dict(content, source=str(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, source: str) -> Self:
        """Build a report from the result of `to_dict`; ``source`` names it in messages."""
        key = cls._format_key
        if not isinstance(content, dict) or content.get(key) != 1:
            value = content.get(key) if isinstance(content, dict) else None
            raise InputError(
                f"{source} is not a {cls._kind} that this condsim reads: '{key}' must be 1, got "
                f"{value!r}. {cls._again}"
            )
        try:
            return cls.model_validate_json(json.dumps(content))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise InputError(
                f"{source} is not a complete {cls._kind}: {where}: {fault['msg']}. {cls._again}"
            ) from error


@dataclass(frozen=True)
class ModelResult:
    """The result of one scorer.

    Attributes:
        metrics: By name: ``spearman``, ``pearson`` and ``partial_spearman`` (x 100), ``mse`` (of
            gold in [0, 1]; lower is better), ``pair_accuracy`` (in %).
        fitted_on: For a fitted baseline, the rows it was fitted on.
        over_estimation: Pairs driven too far apart, if they were counted.
        scored_by: Further settings that decide its scores, such as λ of an origin model (SSBC), if
            it reports any.
    """

    name: str
    metrics: Mapping[str, Metric]
    revision: str | None = None
    fitted_on: str | None = None
    over_estimation: OverEstimation | None = None
    scored_by: Mapping[str, Any] | None = None

    @model_serializer(mode="wrap")
    def _without_empty_options(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = handler(self)
        for key in _OPTIONAL_KEYS:
            if values[key] is None:
                del values[key]
        return dict(values)


class Report(ResultFile):
    """The result of an evaluation.

    Attributes:
        task_revision: First 12 hex digits of the SHA-256 of its file.
        valid_rows: Rows with a label, on which every metric is computed.
        invalid_rows: Rows without a label; neither scored nor counted.
        pairs: Distinct sentence pairs among the valid rows: the unit of the bootstrap.
        contrasting_pairs: Pairs whose two labels differ: those that pair accuracy counts.
        baselines: Results of the baselines, the condition-only one first.
        against: Result of the model it is compared with, if any.
        comparison: By metric, model minus ``against``; empty without ``against``.
        versions: Versions of condsim, Python and the libraries that were loaded.
        created: Time of the evaluation, in UTC, ISO 8601.
    """

    format: Literal[1] = 1
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


def write_json(content: object, path: Path) -> None:
    """Write plain values without NaN as JSON; an earlier file is replaced in one step."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def loaded_versions(*libraries: str, modules: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the versions of loaded libraries; ``modules`` names modules that differ from them."""
    versions = {}
    for library in libraries:
        if (modules or {}).get(library, library) in sys.modules:
            try:
                versions[library] = metadata.version(library)
            except metadata.PackageNotFoundError:
                # The library runs from a source tree.
                versions[library] = "not installed"
    return versions
