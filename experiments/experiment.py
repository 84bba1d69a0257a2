"""What an experiment is: its rows, and what its paper found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from condsim.prompting import Instruction

Kind = Literal[
    "runs", "zero-shot", "label-histogram", "over-estimation", "prompting", "contexts", "cases"
]
FROM_CONTEXTS: tuple[Kind, ...] = ("contexts", "cases")
"""The kinds whose rows are similarity from contexts."""


@dataclass(frozen=True)
class Published:
    """A number of a paper.

    Attributes:
        value: The number: a correlation x 100, a percentage, or a count.
        std: The standard deviation over seeds that the paper gives with it; None if it gives none.
        text: The number as the paper prints it.
    """

    value: float
    std: float | None
    text: str


@dataclass(frozen=True)
class Prompting:
    """How a row asks language models.

    Attributes:
        instruction: Which instruction.
        shots: Number of examples in a prompt.
    """

    instruction: Instruction
    shots: int


@dataclass(frozen=True)
class FromContexts:
    """How a row of similarity from contexts gets its scores.

    Attributes:
        scorer: What scores; None for a row of the paper's numbers alone.
        weights: Weights of Eq. 3 in the score alone, by term: contexts are chosen with those of the
            recipe, so such rows share one scoring.
    """

    scorer: Literal["origin", "surrogate", "tfidf-cosine", "word-overlap"] | None = None
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One row of an experiment: a configuration, run on every backbone that is asked for.

    In an experiment that prompts language models, these play the part of the backbones; in one of
    similarity from contexts the data sets that the rows are measured on do.

    Attributes:
        key: Short name of the row within its experiment.
        cells: What the table shows, by the head of the column.
        recipe: Which base recipe it starts from (`experiments.backbones.recipe_file`).
        prompt: How it asks language models, instead of a recipe.
        contexts: How it scores by contexts, instead of a recipe of training.
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
    prompt: Prompting | None = None
    contexts: FromContexts | None = None
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
        metrics: What is shown: ``spearman``, ``pearson``, ``over_estimated``, ``invalid``, or
            ``valid_spearman``, which is that of the valid answers alone.
        rows: The rows, by key, in the order of the table.
        published: The paper's numbers by row, metric and backbone; empty if it gives none.
        x: Head of the column that is the horizontal axis of a curve; None for a dot plot.
        log: Whether that axis is logarithmic.
        gold_sets: What rows of similarity from contexts are measured on
            (`experiments.gold_sets`).
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
    log: bool = False
    gold_sets: tuple[str, ...] = ()
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

    def has_number(self, row: str, backbone: str) -> bool:
        """Whether the paper gives any number for a row and a backbone.

        Args:
            row: Key of the row.
            backbone: Key of the backbone.

        Returns:
            True if it gives one for one of the metrics shown.
        """
        return any(self.paper(row, metric, backbone) is not None for metric in self.metrics)
