"""Result files: the results of an evaluation with their provenance, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import SerializerFunctionWrapHandler, model_serializer

from condsim.config import Settings, validated_json
from condsim.errors import InputError
from condsim.evaluation.bootstrap import Difference, Metric
from condsim.evaluation.metrics import OverEstimation
from condsim.io import write_text

# Earlier versions of condsim read a report without these keys.
_OPTIONAL_KEYS = ("over_estimation", "scored_by")


class ResultFile(Settings):
    """A result stored as JSON; NaN is null in the file."""

    what = "report"

    def to_json(self, path: str | Path) -> None:
        """Write the report; an earlier file of that name is replaced in one step."""
        write_json(self.to_dict(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, NaN as None."""
        values: dict[str, Any] = json.loads(self.model_dump_json())
        return values

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Read a report that `to_json` wrote."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        return validated_json(cls, content, what=cls.what, source=str(path))


@dataclass(frozen=True)
class ModelResult:
    """The result of one scorer.

    Attributes:
        metrics: By name: ``spearman``, ``pearson`` and ``partial_spearman`` (x 100), ``mse`` (of
            gold in [0, 1]; lower is better), ``pair_accuracy`` (in %).
        fitted_on: For a fitted baseline, the rows it was fitted on.
        scored_by: Further settings that decide its scores, such as λ of an origin model (SSBC).
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

    def __repr__(self) -> str:
        """Name the task and the model, with its Spearman correlation."""
        spearman = self.model.metrics["spearman"].value
        return f"Report({self.task!r}, {self.model.name!r}, spearman={spearman:.1f})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from condsim.evaluation.tables import to_html

        return to_html(self)


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
