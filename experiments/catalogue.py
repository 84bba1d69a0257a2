"""The catalogue: one YAML file for each table or figure of the papers, typed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast, get_args

import yaml

from condsim.errors import InputError, unknown_name
from condsim.settings import typed
from experiments.backbones import PAPER_BACKBONES
from experiments.experiment import (
    FROM_CONTEXTS,
    Comparison,
    Experiment,
    FromContexts,
    Kind,
    Prompting,
    Published,
    Row,
)
from experiments.gold_sets import GOLD_SETS
from experiments.language_models import PAPER_MODELS

_FOLDER = "catalogue"
_CHOICES: dict[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "task": ("c-sts", "sts-b"),
    "metrics": ("spearman", "pearson", "over_estimated", "invalid", "valid_spearman"),
    "recipe": ("bi", "tri", "cross", "ccl-bi", "ccl-tri", "stsb-bi", "stsb-cross"),
    "backbone": tuple(PAPER_BACKBONES),
    "language model": tuple(PAPER_MODELS),
    "gold set": tuple(GOLD_SETS),
    "term": ("coherence", "centre", "left", "right"),
}
_PAPERS = ("csts", "ccl", "ssbc")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")


def names() -> tuple[str, ...]:
    """Names of all experiments: C-STS, CCL, SSBC, and in the order of each paper.

    Returns:
        Names such as ``csts-table2``.
    """
    files = resources.files("experiments").joinpath(_FOLDER).iterdir()
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
    kind = cast(Kind, _one_of("kind", values.get("kind", "runs"), where))
    rows = _rows(values, where)
    _check_kind(rows, kind, where)
    gold_sets = tuple(values.get("gold_sets", ("sts-b",) if kind in FROM_CONTEXTS else ()))
    for gold_set in gold_sets:
        _one_of("gold set", gold_set, where)
    model = {"prompting": "language model", "contexts": "gold set", "cases": "gold set"}.get(
        kind, "backbone"
    )
    published = _published(values.get("published") or {}, rows, where, model=model)
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
        kind=kind,
        metrics=metrics,
        rows=rows,
        published=published,
        x=x,
        log=bool(values.get("log", False)),
        gold_sets=gold_sets,
        comparisons=comparisons,
        remark=_text(values, "remark", where) if "remark" in values else None,
        **texts,
    )


def _read(name: str) -> dict[str, Any]:
    file = resources.files("experiments").joinpath(_FOLDER, f"{name}.yaml")
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
    choices = ("recipe", "does_not_apply", "prompt", "contexts")
    if "cells" not in values or sum(what in values for what in choices) != 1:
        raise InputError(
            f"{where}: a row needs 'cells' and one of {', '.join(map(repr, choices))}."
        )
    for choice in ("recipe", "task"):
        if choice in values:
            _one_of(choice, values[choice], where)
    for backbone in values.get("set_for", {}):
        _one_of("backbone", backbone, where)
    cells = {head: str(cell) for head, cell in values["cells"].items()}
    if "prompt" in values:
        values = {**values, "prompt": _prompting(values["prompt"], where)}
    if "contexts" in values:
        contexts = typed(FromContexts, values["contexts"], what="contexts", source=where)
        for term in contexts.weights:
            _one_of("term", term, where)
        values = {**values, "contexts": contexts}
    return Row(key=key, **{**values, "cells": cells})


def _check_kind(rows: Mapping[str, Row], kind: Kind, where: str) -> None:
    """Refuses rows that do not go with the kind of their experiment."""
    for row in rows.values():
        for what, kinds in (("prompt", ("prompting",)), ("contexts", FROM_CONTEXTS)):
            if (getattr(row, what) is not None) != (kind in kinds):
                raise InputError(
                    f"{where}, row {row.key!r}: {what!r} goes with the kind "
                    f"{' or '.join(map(repr, kinds))} and with no other. The kind is {kind!r}."
                )


def _prompting(values: Mapping[str, Any], where: str) -> Prompting:
    prompt = typed(Prompting, values, what="prompt", source=where)
    if prompt.shots < 0:
        raise InputError(f"{where}: 'shots' must not be negative. Got {prompt.shots}.")
    return prompt


def _published(
    values: Mapping[str, Any], rows: Mapping[str, Row], where: str, *, model: str
) -> dict[str, dict[str, dict[str, Published]]]:
    published: dict[str, dict[str, dict[str, Published]]] = {}
    for row, by_metric in values.items():
        if row not in rows:
            raise InputError(f"{where}: {unknown_name('row', row, rows)}")
        for metric, by_backbone in by_metric.items():
            _one_of("metrics", metric, where)
            for backbone, number in by_backbone.items():
                _one_of(model, backbone, where)
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


def _paper_order(name: str) -> tuple[int, str, int, str]:
    """Keeps papers apart, and sorts ``table2`` before ``table10``."""
    paper, _, rest = name.partition("-")
    digits = re.sub(r"\D", "", rest)
    kinds = {"table": "1", "figure": "2"}
    kind = kinds.get(re.sub(r"[\d-].*", "", rest), "3")
    return _PAPERS.index(paper), kind, int(digits or 0), rest
