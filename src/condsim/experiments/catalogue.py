"""The catalogue: one YAML file for each table or figure of the papers, typed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, cast

import yaml

from condsim.errors import InputError, unknown_name

__all__ = ["Comparison", "Experiment", "Published", "Row", "load_experiment", "names", "parse"]

Kind = Literal["runs", "zero-shot", "label-histogram", "over-estimation"]

_FOLDER = "catalogue"
_CHOICES: dict[str, tuple[str, ...]] = {
    "kind": ("runs", "zero-shot", "label-histogram", "over-estimation"),
    "task": ("c-sts", "sts-b"),
    "metrics": ("spearman", "pearson", "over_estimated"),
    "recipe": ("bi", "tri", "cross", "ccl-bi", "ccl-tri", "stsb-bi", "stsb-cross"),
    "backbone": ("roberta-base", "roberta-large", "diffcse-base", "simcse-base", "simcse-large"),
}
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")


@dataclass(frozen=True)
class Published:
    """A number of a paper.

    Attributes:
        value: The number: a correlation x 100, or a count.
        std: The standard deviation over seeds that the paper gives with it; None if it gives none.
        text: The number as the paper prints it.
    """

    value: float
    std: float | None
    text: str


@dataclass(frozen=True)
class Row:
    """One row of an experiment: a configuration, run on every backbone that is asked for.

    Attributes:
        key: Short name of the row within its experiment.
        cells: What the table shows, by the head of the column.
        recipe: Which base recipe it starts from (`condsim.experiments.backbones.recipe_file`).
        task: Data it trains and is measured on.
        set: Recipe keys it changes, as ``--set`` names them.
        set_for: More of them, by backbone of the papers.
        seeds: Number of seeds: that of the recipe and those after it.
        full: Whether it is run with ``--full`` only.
        does_not_apply: Why there can be no such run; None if there can.
    """

    key: str
    cells: Mapping[str, str]
    recipe: str | None = None
    task: str = "c-sts"
    set: Mapping[str, Any] = field(default_factory=dict)
    set_for: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seeds: int = 1
    full: bool = False
    does_not_apply: str | None = None


@dataclass(frozen=True)
class Comparison:
    """Two rows whose difference is stated, paired by seed.

    Attributes:
        row: Key of the first row.
        minus: Key of the row that is taken from it.
    """

    row: str
    minus: str


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Attributes:
        name: Name on the command line.
        title: What it shows.
        source: Paper, table or figure.
        claim: What the paper claims, in our words.
        measured_on: The data the paper's numbers are measured on.
        kind: What is done for each row.
        metrics: What is shown, ``spearman``, ``pearson`` or ``over_estimated``.
        rows: The rows, by key, in the order of the table.
        published: The paper's numbers by row, metric and backbone; empty if it gives none.
        x: Head of the column that is the horizontal axis of a curve; None for a dot plot.
        comparisons: Differences to state.
        remark: What a reader must know about the paper's numbers; None if nothing.
    """

    name: str
    title: str
    source: str
    claim: str
    measured_on: str
    kind: Kind
    metrics: tuple[str, ...]
    rows: Mapping[str, Row]
    published: Mapping[str, Mapping[str, Mapping[str, Published]]]
    x: str | None = None
    comparisons: tuple[Comparison, ...] = ()
    remark: str | None = None

    def paper(self, row: str, metric: str, backbone: str) -> Published | None:
        """The paper's number, if it gives one.

        Args:
            row: Key of the row.
            metric: Name of the metric.
            backbone: Key of the backbone.

        Returns:
            The number, or None.
        """
        return self.published.get(row, {}).get(metric, {}).get(backbone)


def names() -> tuple[str, ...]:
    """Names of all experiments, those of C-STS first and in the order of the papers.

    Returns:
        Names such as ``csts-table2``.
    """
    files = resources.files("condsim.experiments").joinpath(_FOLDER).iterdir()
    found = [file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")]
    return tuple(sorted(found, key=_paper_order))


def load_experiment(name: str) -> Experiment:
    """Reads an experiment of the catalogue.

    Args:
        name: One of `names`.

    Returns:
        The checked experiment.

    Raises:
        InputError: If there is no such experiment, or its file breaks a rule.
    """
    known = names()
    if name not in known:
        raise unknown_name("experiment", name, known)
    return parse(_read(name), name=name)


def parse(values: Mapping[str, Any], *, name: str) -> Experiment:
    """Checks the content of a catalogue file.

    Args:
        values: The parsed YAML.
        name: Name of the experiment.

    Returns:
        The experiment.

    Raises:
        InputError: If a key is unknown, missing or of the wrong type, or names what is not there.
    """
    where = f"{_FOLDER}/{name}.yaml"
    known = [key.name for key in dataclasses.fields(Experiment) if key.name != "name"]
    _check_keys(values, [*known, "same_rows_as"], where)
    rows = _rows(values, where)
    published = _published(values.get("published") or {}, rows, where)
    metrics = tuple(values.get("metrics", ("spearman",)))
    for metric in metrics:
        _one_of("metrics", metric, where)
    x = values.get("x")
    if x is not None and not all(x in row.cells for row in rows.values()):
        raise InputError(f"{where}: every row needs a cell {x!r}, the axis 'x' names.")
    comparisons = tuple(Comparison(**entry) for entry in values.get("comparisons") or ())
    for comparison in comparisons:
        for key in (comparison.row, comparison.minus):
            if key not in rows:
                raise InputError(f"{where}: {unknown_name('row', key, rows)}")
    texts = {key: _text(values, key, where) for key in ("title", "source", "claim", "measured_on")}
    return Experiment(
        name=name,
        kind=cast(Kind, _one_of("kind", values.get("kind", "runs"), where)),
        metrics=metrics,
        rows=rows,
        published=published,
        x=x,
        comparisons=comparisons,
        remark=_text(values, "remark", where) if "remark" in values else None,
        **texts,
    )


def _read(name: str) -> dict[str, Any]:
    file = resources.files("condsim.experiments").joinpath(_FOLDER, f"{name}.yaml")
    return cast(dict[str, Any], yaml.safe_load(file.read_text(encoding="utf-8")))


def _rows(values: Mapping[str, Any], where: str) -> dict[str, Row]:
    if "same_rows_as" in values:
        if "rows" in values:
            raise InputError(f"{where}: give 'rows' or 'same_rows_as', not both.")
        return dict(load_experiment(values["same_rows_as"]).rows)
    return {key: _row(key, entry, where) for key, entry in (values.get("rows") or {}).items()}


def _row(key: str, values: Mapping[str, Any], where: str) -> Row:
    where = f"{where}, row {key!r}"
    known = [entry.name for entry in dataclasses.fields(Row) if entry.name != "key"]
    _check_keys(values, known, where)
    if "cells" not in values or ("recipe" in values) == ("does_not_apply" in values):
        raise InputError(f"{where}: a row needs 'cells' and one of 'recipe', 'does_not_apply'.")
    for choice in ("recipe", "task"):
        if choice in values:
            _one_of(choice, values[choice], where)
    for backbone in values.get("set_for", {}):
        _one_of("backbone", backbone, where)
    cells = {head: str(cell) for head, cell in values["cells"].items()}
    return Row(key=key, **{**values, "cells": cells})


def _published(
    values: Mapping[str, Any], rows: Mapping[str, Row], where: str
) -> dict[str, dict[str, dict[str, Published]]]:
    published: dict[str, dict[str, dict[str, Published]]] = {}
    for row, by_metric in values.items():
        if row not in rows:
            raise InputError(f"{where}: {unknown_name('row', row, rows)}")
        for metric, by_backbone in by_metric.items():
            _one_of("metrics", metric, where)
            for backbone, number in by_backbone.items():
                _one_of("backbone", backbone, where)
                published.setdefault(row, {}).setdefault(metric, {})[backbone] = _number(
                    str(number), where
                )
    return published


def _number(text: str, where: str) -> Published:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(f"{where}: a number is written '39.2' or '39.2 ± 1.3'. Got {text!r}.")
    return Published(float(match[1]), float(match[2]) if match[2] else None, text)


def _check_keys(values: Mapping[str, Any], known: list[str], where: str) -> None:
    for key in values:
        if key not in known:
            raise InputError(f"{where}: {unknown_name('key', str(key), known)}")


def _one_of(what: str, value: str, where: str) -> str:
    if value not in _CHOICES[what]:
        raise InputError(f"{where}: {unknown_name(what, str(value), _CHOICES[what])}")
    return value


def _text(values: Mapping[str, Any], key: str, where: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: the key '{key}' must be a text. Got {value!r}.")
    return " ".join(value.split())


def _paper_order(name: str) -> tuple[bool, str, int]:
    """Sorts ``table2`` before ``table10``."""
    paper, _, rest = name.partition("-")
    digits = re.sub(r"\D", "", rest)
    kinds = {"table": "1", "figure": "2"}
    return paper != "csts", kinds.get(re.sub(r"[\d-].*", "", rest), "3"), int(digits or 0)
