"""The catalogue: a YAML file for each table or figure, with its rows and the paper's numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from condsim.config import Settings, validated
from condsim.errors import check_name
from condsim_llm.prompt import Instruction

Kind = Literal[
    "runs", "zero-shot", "label-histogram", "over-estimation", "prompting", "contexts", "cases"
]
MetricName = Literal["spearman", "pearson", "over_estimated", "invalid", "valid_spearman"]
Task = Literal["c-sts", "sts-b"]
Term = Literal["coherence", "center", "left", "right"]

FROM_CONTEXTS: tuple[Kind, ...] = ("contexts", "cases")
"""The kinds whose rows are similarity from contexts."""

FOLDER = Path(__file__).parent / "catalogue"
_PAPERS = ("csts", "ccl", "ssbc")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")


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
        raise ValueError(f"a number is written '39.2' or '39.2 ± 1.3', got {given!r}.")
    std = float(match[2]) if match[2] else None
    return Published(value=float(match[1]), std=std, text=str(given))


def _texts(cells: object) -> object:
    return {k: str(v) for k, v in cells.items()} if isinstance(cells, dict) else cells


def _one_line(text: str, info: ValidationInfo) -> str:
    if not text.strip():
        raise ValueError(f"the key '{info.field_name}' must be a text, got {text!r}.")
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
        weights: Weights of Eq. 3 in the score alone, by term. Contexts are chosen with the recipe's
            weights, so rows that differ in these weights share one scoring.
    """

    scorer: Literal["origin", "surrogate", "tfidf-cosine", "word-overlap"] | None = None
    weights: dict[Term, float] = Field(default={})


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
        seeds: Number of seeds: the recipe's and the next ones.
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
        metrics: What is shown; ``valid_spearman`` counts the valid answers alone.
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
    check_name("experiment", name, names())
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return parse(yaml.safe_load(text), name=name)


def parse(values: Mapping[str, Any], *, name: str) -> Experiment:
    """Check the content of a catalogue file."""
    content = dict(values)
    if "same_rows_as" in content:
        content["rows"] = load_experiment(content.pop("same_rows_as")).rows
    else:
        entries = content.get("rows") or {}
        content["rows"] = {key: {"key": key, **entry} for key, entry in entries.items()}
    if content.get("kind") in FROM_CONTEXTS:
        content.setdefault("gold_sets", ["sts-b"])
    source = f"catalogue/{name}.yaml"
    return validated(Experiment, {"name": name, **content}, subject="experiment", source=source)


def _paper_order(name: str) -> tuple[int, str, int, str]:
    """Keep papers apart, and sort ``table2`` before ``table10``."""
    paper, _, rest = name.partition("-")
    kinds = {"table": "1", "figure": "2"}
    kind = kinds.get(re.sub(r"[\d-].*", "", rest), "3")
    return _PAPERS.index(paper), kind, int(re.sub(r"\D", "", rest) or 0), rest
