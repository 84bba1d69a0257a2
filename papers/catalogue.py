"""The catalogue: a YAML file for each table or figure, with its rows and the paper's numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from condsim.config import Model, Settings, validated
from condsim.errors import InputError, unknown_name
from condsim.prompting.prompt import Instruction
from papers.columns import PAPER_BACKBONES, PAPER_MODELS, TEST_SETS

Kind = Literal[
    "runs", "zero-shot", "label-histogram", "over-estimation", "prompting", "contexts", "cases"
]
MetricName = Literal["spearman", "pearson", "over_estimated", "invalid", "valid_spearman"]
Task = Literal["c-sts", "sts-b"]
Term = Literal["coherence", "centre", "left", "right"]

FROM_CONTEXTS: tuple[Kind, ...] = ("contexts", "cases")
"""The kinds whose rows are similarity from contexts."""

FOLDER = Path(__file__).parent / "catalogue"
_PAPERS = ("csts", "ccl", "ssbc")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
_WORK = ("recipe", "does_not_apply", "prompt", "contexts")  # a row has one of these


class Published(Settings):
    """A number of a paper.

    Attributes:
        value: A correlation x 100, a percentage, or a count.
        std: The standard deviation over seeds, where the paper gives one.
        text: The number as the paper prints it.
    """

    value: float
    std: float | None
    text: str


def _published(given: object) -> Published:
    if isinstance(given, Published):
        return given
    match = _NUMBER.fullmatch(str(given))
    if match is None:
        raise ValueError(f"a number is written '39.2' or '39.2 ± 1.3'. Got {given!r}.")
    std = float(match[2]) if match[2] else None
    return Published(value=float(match[1]), std=std, text=str(given))


def _texts(cells: object) -> object:
    return {k: str(v) for k, v in cells.items()} if isinstance(cells, dict) else cells


def _one_line(text: str, info: ValidationInfo) -> str:
    if not text.strip():
        raise ValueError(f"the key '{info.field_name}' must be a text. Got {text!r}.")
    return " ".join(text.split())


Text = Annotated[str, AfterValidator(_one_line)]


class Prompting(Settings):
    """Prompt of a row: the instruction, and the number of examples."""

    instruction: Instruction
    shots: int = Field(ge=0)


class FromContexts(Settings):
    """Source of the scores of a row of similarity from contexts.

    Attributes:
        scorer: What scores; None for a row of the paper's numbers alone.
        weights: Weights of Eq. 3 in the score alone, by term. Contexts are chosen with those of the
            recipe, so rows that differ in these weights share one scoring.
    """

    scorer: Literal["origin", "surrogate", "tfidf-cosine", "word-overlap"] | None = None
    weights: dict[str, float] = Field(default={})

    @model_validator(mode="after")
    def _known_terms(self) -> Self:
        for term in self.weights:
            if term not in get_args(Term):
                raise unknown_name("term", term, get_args(Term))
        return self


class Row(Settings):
    """One row of an experiment: a configuration that is run on every column asked for.

    Attributes:
        key: Short name of the row within its experiment.
        cells: What the table shows, by the head of the column.
        recipe: The base recipe it starts from.
        prompt: How it asks language models, instead of a recipe.
        contexts: How it scores by contexts, instead of a recipe of training.
        task: The data it is trained and measured on.
        set: Recipe keys it changes, as ``--set`` names them.
        set_for: More of them, by encoder of the papers.
        seeds: Number of seeds: that of the recipe and those after it.
        full: Whether it is run with ``--full`` only.
        does_not_apply: Why there can be no such run; None if there can.
    """

    key: str
    cells: Annotated[dict[str, str], BeforeValidator(_texts)]
    recipe: Literal["bi", "tri", "cross", "ccl-bi", "ccl-tri", "stsb-bi", "stsb-cross"] | None = (
        None
    )
    prompt: Prompting | None = None
    contexts: FromContexts | None = None
    task: Task = "c-sts"
    set: dict[str, Any] = Field(default={})
    set_for: dict[str, dict[str, Any]] = Field(default={})
    seeds: int = 1
    full: bool = False
    does_not_apply: str | None = None

    @model_validator(mode="after")
    def _one_kind_of_work(self) -> Self:
        if sum(getattr(self, work) is not None for work in _WORK) != 1:
            raise ValueError(f"a row needs 'cells' and one of {', '.join(map(repr, _WORK))}.")
        for backbone in self.set_for:
            if backbone not in PAPER_BACKBONES:
                raise unknown_name("backbone", backbone, PAPER_BACKBONES)
        return self


class Comparison(Settings):
    """Two rows whose difference is stated: ``row`` minus ``minus``."""

    row: str
    minus: str


class Experiment(Settings):
    """A table or figure of a paper.

    Attributes:
        name: Name on the command line.
        title: What it shows.
        source: Paper, table or figure.
        claim: What the paper claims, in our words.
        measured_on: The data the paper's numbers are measured on.
        kind: What is done for each row.
        metrics: What is shown; ``valid_spearman`` is that of the valid answers alone.
        rows: The rows, by key, in the order of the table.
        published: The paper's numbers by row, metric and column; empty if it gives none.
        x: Head of the column that is the horizontal axis of a curve; None for a dot plot.
        log: Whether that axis is logarithmic.
        gold_sets: Test sets of rows of similarity from contexts.
        comparisons: Differences to state.
        remark: What a reader must know about the paper's numbers; None if nothing.
    """

    name: str
    title: Text
    source: Text
    claim: Text
    measured_on: Text
    kind: Kind = "runs"
    metrics: tuple[MetricName, ...] = Field(("spearman",), strict=False)
    rows: dict[str, Row] = Field(default={})
    published: dict[
        str, dict[MetricName, dict[str, Annotated[Published, BeforeValidator(_published)]]]
    ] = Field(default={})
    x: str | None = None
    log: bool = False
    gold_sets: tuple[str, ...] = Field((), strict=False)
    comparisons: tuple[Comparison, ...] = Field((), strict=False)
    remark: Text | None = None

    @property
    def from_contexts(self) -> bool:
        """True if its rows are similarity from contexts."""
        return self.kind in FROM_CONTEXTS

    def paper(self, row: str, metric: str, column: str) -> Published | None:
        """The paper's number, if it gives one."""
        return self.published.get(row, {}).get(cast(MetricName, metric), {}).get(column)

    def has_number(self, row: str, column: str) -> bool:
        """True if the paper gives a number for one of the metrics in the table."""
        return any(self.paper(row, metric, column) is not None for metric in self.metrics)


def names() -> tuple[str, ...]:
    """Names of all experiments: C-STS, CCL, SSBC, and in the order of each paper."""
    return tuple(sorted((file.stem for file in FOLDER.glob("*.yaml")), key=_paper_order))


def load_experiment(name: str) -> Experiment:
    """Read an experiment of the catalogue."""
    if name not in names():
        raise unknown_name("experiment", name, names())
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return parse(yaml.safe_load(text), name=name)


def parse(values: Mapping[str, Any], *, name: str) -> Experiment:
    """Check the content of a catalogue file."""
    where = f"catalogue/{name}.yaml"
    given = dict(values)
    if "same_rows_as" in given:
        if "rows" in given:
            raise InputError(f"{where}: give 'rows' or 'same_rows_as', not both.")
        given["rows"] = load_experiment(given.pop("same_rows_as")).rows
    else:
        given["rows"] = {
            key: _checked(Row, {"key": key, **entry}, "row", f"{where}, row {key!r}")
            for key, entry in (given.get("rows") or {}).items()
        }
    if given.get("kind") in FROM_CONTEXTS:
        given.setdefault("gold_sets", ["sts-b"])
    experiment = _checked(Experiment, {"name": name, **given}, "experiment", where)
    try:
        _check_names(experiment)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return experiment


def _checked(kind: type[Model], values: Mapping[str, Any], what: str, where: str) -> Model:
    """Validate values; every error begins with the file."""
    try:
        return validated(kind, values, what=what, source=where)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(where) else f"{where}: {text}") from error


def _check_names(experiment: Experiment) -> None:
    """Reject names that stand for nothing, and rows of another kind of work."""
    rows, x = experiment.rows, experiment.x
    for row in rows.values():
        _check_work(row, experiment.kind)
    _check_known("gold set", experiment.gold_sets, TEST_SETS)
    _check_known("row", experiment.published, rows)
    _check_known("row", [key for pair in experiment.comparisons for _, key in pair], rows)
    what, columns = "backbone", PAPER_BACKBONES
    if experiment.kind == "prompting":
        what, columns = "language model", PAPER_MODELS
    elif experiment.from_contexts:
        what, columns = "gold set", TEST_SETS
    for by_metric in experiment.published.values():
        for numbers in by_metric.values():
            _check_known(what, numbers, columns)
    if x is not None and not all(x in row.cells for row in rows.values()):
        raise InputError(f"every row needs a cell {x!r}, the axis 'x' names.")


def _check_work(row: Row, kind: Kind) -> None:
    for work, kinds in (("prompt", ("prompting",)), ("contexts", FROM_CONTEXTS)):
        if (getattr(row, work) is not None) != (kind in kinds):
            raise InputError(
                f"row {row.key!r}: {work!r} goes with the kind {' or '.join(map(repr, kinds))} "
                f"and with no other. The kind is {kind!r}."
            )


def _check_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown_name(what, name, known)


def _paper_order(name: str) -> tuple[int, str, int, str]:
    """Keep papers apart, and sort ``table2`` before ``table10``."""
    paper, _, rest = name.partition("-")
    kinds = {"table": "1", "figure": "2"}
    kind = kinds.get(re.sub(r"[\d-].*", "", rest), "3")
    return _PAPERS.index(paper), kind, int(re.sub(r"\D", "", rest) or 0), rest
