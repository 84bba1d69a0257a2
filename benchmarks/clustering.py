"""``python -m benchmarks.clustering``: how well clusters under a condition match labels of people.

Texts of open sets that carry two criteria are grouped by k-means, with as many clusters as the
criterion has values, and compared with those values: under the right condition, under the
other criterion's, by the same model without a condition, and by all-MiniLM-L6-v2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.metrics import adjusted_rand_score, v_measure_score

from condsim.cli.process import long_work, run_app
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.errors import InputError
from condsim.evaluation.statistics import Metric
from condsim.io import write_json, write_text
from condsim.loading import load_encoder, named_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.search.clustering import cluster
from condsim.types import FloatArray

SETS: Mapping[str, tuple[str, str]] = {
    "bitext": ("the topic", "the register"),
    "clinc150": ("the intent", "the domain"),
    "druglib": ("the effectiveness of the drug", "the severity of the side effects"),
    "e2e": ("the kind of food", "the area"),
    "rnnlg_venues": ("the kind of statement", "the kind of venue"),
    "sgd": ("the service domain", "the speech act"),
    "bible": ("the style of the language", "the book it is from"),
}
"""Two criteria of each set, most texts of which carry both."""

WAYS = ("right condition", "other condition", "no condition", "all-MiniLM-L6-v2")
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "clustering.md"

# Minimum number of texts of a value; texts of a rarer value do not form a group.
_FEWEST = 10


@dataclass(frozen=True)
class Labeled:
    """Texts of a set and the values of two criteria, ``(n,)`` each."""

    texts: list[str]
    values: dict[str, list[str]]


def read_set(file: Path, criteria: tuple[str, str], *, texts: int) -> Labeled:
    """Draw texts that have one value of both criteria, each value in at least ten texts drawn."""
    rows = [
        row
        for row in iter_criteria(file)
        if isinstance(row, CriteriaText)
        and all(len(row.attributes.get(name, ())) == 1 for name in criteria)
    ]
    order = np.random.default_rng(0).permutation(len(rows))[:texts]
    rows, before = [rows[place] for place in order], -1
    while len(rows) != before:
        before = len(rows)
        counts = {name: Counter(row.attributes[name][0] for row in rows) for name in criteria}
        rows = [
            row
            for row in rows
            if all(counts[name][row.attributes[name][0]] >= _FEWEST for name in criteria)
        ]
    values = {name: [row.attributes[name][0] for row in rows] for name in criteria}
    if any(len(set(found)) < 2 for found in values.values()):
        raise InputError(
            f"{file}: fewer than two values of {criteria[0]!r} or {criteria[1]!r} have "
            f"{_FEWEST} texts or more. Draw more with --texts."
        )
    return Labeled([row.text for row in rows], values)


@dataclass(frozen=True)
class Agreement:
    """V-measure and adjusted Rand index, times 100, over seeds, by way; the ways of `WAYS`."""

    name: str
    criterion: str
    texts: int
    clusters: int
    figures: dict[str, tuple[Metric, Metric]]

    @property
    def best(self) -> str:
        """The way with the highest V-measure."""
        return max(self.figures, key=lambda way: self.figures[way][0].value)


def measure_set(
    name: str,
    data: Labeled,
    model: EmbeddingScorer,
    plain: EmbeddingScorer | None,
    *,
    seeds: int,
) -> Iterator[Agreement]:
    """Group a set by each of its criteria."""
    vectors = {criterion: model.encode(data.texts, criterion) for criterion in (*data.values, None)}
    minilm = None if plain is None else plain.encode(data.texts)
    for criterion, values in data.values.items():
        (other,) = data.values.keys() - {criterion}
        ways = zip(WAYS, (vectors[criterion], vectors[other], vectors[None], minilm), strict=True)
        figures = {
            way: _agreement(data.texts, values, own, seeds=seeds)
            for way, own in ways
            if own is not None
        }
        yield Agreement(name, criterion, len(values), len(set(values)), figures)


def _agreement(
    texts: list[str], values: list[str], vectors: FloatArray, *, seeds: int
) -> tuple[Metric, Metric]:
    """V-measure and adjusted Rand index of k-means with the true number of clusters."""
    k = len(set(values))
    runs = [cluster(texts, None, k=k, vectors=vectors, seed=seed).labels for seed in range(seeds)]
    v_measures = [v_measure_score(values, labels) for labels in runs]
    return over_seeds(v_measures), over_seeds([adjusted_rand_score(values, run) for run in runs])


def over_seeds(figures: Sequence[float]) -> Metric:
    """Mean, lowest and highest of the figures of several seeds, times 100."""
    percents = 100 * np.array(figures)
    return Metric(float(percents.mean()), float(percents.min()), float(percents.max()))


def page(
    rows: Sequence[Agreement], *, model: str, trained: Sequence[str], command: str, seeds: int
) -> str:
    """Lay the figures out as a page."""
    ways = list(rows[0].figures)
    lines = [
        f"| set | criterion | texts | values | {' | '.join(ways)} |",
        f"|---|---|---:|---:|{'---:|' * len(ways)}",
    ]
    for row in rows:
        cells = {way: " / ".join(map(_cell, row.figures[way])) for way in ways}
        cells[row.best] = f"**{cells[row.best]}**"
        mark = " (trained on)" if row.name in trained else ""
        head = f"| {row.name}{mark} | {row.criterion} | {row.texts:,} | {row.clusters} |"
        lines.append(f"{head} {' | '.join(cells.values())} |")
    means = np.mean([[[f.value for f in row.figures[way]] for way in ways] for row in rows], axis=0)
    mean_cells = [" / ".join(f"{x:.1f}" for x in pair) for pair in means]
    lines.append(f"| **mean** | | | | {' | '.join(mean_cells)} |")
    lost = [f"{row.name}, {row.criterion}" for row in rows if row.best != WAYS[0]]
    return PAGE_TEXT.format(
        model=model,
        table="\n".join(lines),
        won=len(rows) - len(lost),
        all=len(rows),
        lost="; ".join(lost) or "none",
        command=command,
        seeds=seeds,
    )


def _cell(figure: Metric) -> str:
    return f"{figure.value:.1f} [{figure.low:.1f}, {figure.high:.1f}]"


app = typer.Typer(add_completion=False)


@app.command()
def main(
    model: Annotated[
        str | None, typer.Option(help="Model folder.", show_default="the default model")
    ] = None,
    minilm: Annotated[
        Path | None, typer.Option(help="Folder of all-MiniLM-L6-v2, to compare with.")
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("../shared/data"),
    sets: Annotated[list[str] | None, typer.Option("--set", help="Set; repeatable.")] = None,
    texts: Annotated[int, typer.Option(min=50, help="Texts drawn of a set at most.")] = 3_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of k-means.")] = 5,
    output: Annotated[Path, typer.Option(help="The page to write, with a JSON file.")] = PAGE,
) -> None:
    """Measure how well clusters under a condition match the labels of people."""
    if unknown := set(sets or ()) - SETS.keys():
        raise InputError(f"--set must be one of {', '.join(SETS)}; got {', '.join(unknown)}.")
    encoder = load_encoder(model)
    plain = None if minilm is None else load_encoder(minilm)
    rows: list[Agreement] = []
    with long_work():
        for name in sets or SETS:
            drawn = read_set(data / "criteria" / name / "test.jsonl.gz", SETS[name], texts=texts)
            rows += measure_set(name, drawn, encoder, plain, seeds=seeds)
    command = "python -m benchmarks.clustering" + (" --minilm FOLDER" if minilm else "")
    trained = named_scorer(model).trained_on()
    text = page(rows, model=encoder.name, trained=trained, command=command, seeds=seeds)
    write_text(output, text)
    facts = {"model": encoder.name, "seeds": seeds, "rows": rows}
    write_json(facts, output.with_suffix(".json"))
    typer.echo(f"{output}: {len(rows)} rows")


PAGE_TEXT = """# Clustering

Test texts of open sets, labeled by people in two criteria each, grouped by k-means into as many
clusters as the criterion has values, by `{model}`. Each cell: V-measure / adjusted Rand index,
times 100, as the mean over {seeds} seeds of k-means [lowest, highest]; the best mean V-measure of a
row is bold.

- **Right condition**: embeddings under the criterion of the row; **other condition**: under the
  other criterion of the set; **no condition**: the same model on the text alone.
- Texts with several values of a criterion, or a value that fewer than ten texts have, are left out.

{table}

The right condition is best in {won} of {all} rows. Where it is not: {lost}.

"Trained on": the training texts of the set were; these are others. `{command}` makes this page
and [clustering.json](clustering.json);
[Clustering](../../../docs/collections.md#clusters) shows the command.
"""


if __name__ == "__main__":
    run_app(app)
