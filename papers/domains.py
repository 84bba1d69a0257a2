"""``python -m papers.domains``: the page on texts beyond captions.

Measures models on the suites ``criteria`` and ``written`` next to the baselines, then, of the first
model alone, how well its scores are calibrated in each domain and how well it sees that a text says
nothing about a criterion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import ArrayLike

from condsim.cli.process import long_work, run_app
from condsim.console import Progress
from condsim.data.csts import load_applicability
from condsim.data.held_out import held_out_texts
from condsim.errors import InputError
from condsim.evaluation.metrics import auroc
from condsim.evaluation.suite import SuiteSet
from condsim.evaluation.suite_data import load_criteria_sets, mark_trained
from condsim.evaluation.suite_tables import suite_markdown
from condsim.io import write_text
from condsim.loading import NamedScorer, named_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray
from papers.default_data import write_absent
from papers.suite import measure_suite
from papers.suite.scoring import default_cache
from papers.suite.slices import load_written_slices

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "papers" / "docs" / "results" / "domains.md"
BASELINES = ("word-overlap", "condition-only")

# Rows of a set; half of them name a criterion that does not apply to a text.
_APPLIES = 400


def suites(
    scorers: Sequence[NamedScorer], rows: Path, written: Path, progress: Progress
) -> Iterator[tuple[str, tuple[SuiteSet, ...]]]:
    """The table of each suite, and its data sets."""
    criteria = load_criteria_sets(rows)
    own = set(scorers[0].trained_on())
    criteria = mark_trained(criteria, [task.key for task in criteria if task.key in own])
    for tasks in (criteria, load_written_slices(written)):
        report = measure_suite(
            scorers,
            tasks,
            resamples=1000,
            cache=default_cache(),
            baselines=BASELINES,
            progress=progress,
        )
        yield suite_markdown(report), tasks


def calibration(scorer: EmbeddingScorer, tasks: Iterable[SuiteSet]) -> Iterator[str]:
    """Lines of the table of calibration, a data set each, and a line for all."""
    yield "| set | rows | mean label | mean score | calibration error |"
    yield "|---|---:|---:|---:|---:|"
    parts: list[tuple[str, FloatArray, FloatArray]] = []
    for one in tasks:
        task = one.task.labelled()
        if one.averaged and len(task):
            score = scorer.score(task.sentences1, task.sentences2, task.conditions)
            parts.append((one.title, score, task.gold))
    scores = np.concatenate([score for _, score, _ in parts])
    labels = np.concatenate([gold for *_, gold in parts])
    for title, score, gold in (*parts, ("**all**", scores, labels)):
        error = calibration_error(score, gold)
        yield f"| {title} | {len(gold):,} | {gold.mean():.2f} | {score.mean():.2f} | {error:.2f} |"


def calibration_error(scores: ArrayLike, gold: ArrayLike, *, bins: int = 10) -> float:
    """Compute how far the mean label is from the score, on average.

    The expected calibration error of Naeini et al. (2015), over bins of as many rows each.

    Args:
        scores: Calibrated scores in [0, 1], ``(n,)``.
        gold: Labels in [0, 1], ``(n,)``.
        bins: Number of bins; each holds neighbours in the order of the scores.

    Returns:
        The mean over bins, weighted by their rows, of the absolute difference of the mean label
        and the mean score, in [0, 1]; 0 is perfect. NaN without rows.

    Example:
        >>> calibration_error([0.0, 0.5, 0.5, 1.0], [0.0, 0.0, 1.0, 0.5], bins=2)
        0.125
    """
    values, labels = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if values.shape != labels.shape or values.ndim != 1 or bins < 1:
        raise InputError(
            "Calibration needs as many labels as scores, and one bin or more; got scores of shape "
            f"{values.shape}, labels of shape {labels.shape}, {bins} bins."
        )
    if not values.size:
        return math.nan
    _, tied = np.unique(values, return_inverse=True)
    # Otherwise their order would count.
    labels = (np.bincount(tied, labels) / np.bincount(tied))[tied]
    parts = np.array_split(np.argsort(values, kind="stable"), min(bins, values.size))
    return float(sum(abs((values[rows] - labels[rows]).sum()) for rows in parts) / values.size)


def applicability(scorer: EmbeddingScorer, files: Sequence[Path], work: Path) -> Iterator[str]:
    """Lines of the table of applicability, a data set each."""
    yield "| set | rows | AUROC |"
    yield "|---|---:|---:|"
    for path in files:
        drawn = work / f"applies-{path.parent.name}.csv"
        if not write_absent([path], drawn, rows=_APPLIES, exclude=held_out_texts([])):
            continue
        task = load_applicability(drawn, require_both=False)
        chance = scorer.applicability(task.sentences1, task.sentences2, task.conditions or "")
        area = auroc(chance, task.labels > 0, np.arange(len(task)))
        yield f"| {path.parent.name} | {len(task)} | {area.value:.2f} |"


app = typer.Typer(add_completion=False)


@app.command()
def main(
    models: Annotated[list[str], typer.Option("--model", help="Model, as LABEL=NAME; repeatable.")],
    data: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("../shared/data"),
    runs: Annotated[Path, typer.Option(help="Folder for rows drawn.")] = Path("runs/domains"),
    output: Annotated[Path, typer.Option(help="The page to write.")] = PAGE,
) -> None:
    """Measure models on texts of many domains; the first is looked at more closely."""
    runs.mkdir(parents=True, exist_ok=True)
    scorers = [named_scorer(name) for name in models]
    folder, written = data / "criteria", ROOT / "data" / "written" / "test.txt"
    with long_work() as progress:
        (criteria, sets), (pairs, domains) = suites(scorers, folder, written, progress)
        first = scorers[0].open()
        if not isinstance(first, EmbeddingScorer):
            raise InputError("The first --model must be a bi-encoder.")
        files = sorted(folder.glob("*/dev.jsonl.gz"))
        page = PAGE_TEXT.format(
            criteria=criteria,
            written=pairs,
            calibration="\n".join(calibration(first, [*sets, *domains])),
            applicability="\n".join(applicability(first, files, runs)),
        )
    write_text(output, page)
    typer.echo(str(output))


PAGE_TEXT = """# Texts beyond captions

Results of the default model on texts of many kinds, next to a former default model
(of captions alone), plain sentence embeddings with the condition put in front of the text, the
share of words two texts have in common, and a regression on the condition alone. In both suites
rows are drawn so that the condition alone tells nothing. `python -m papers.domains --model
LABEL=NAME`, once for each model, makes this page.

## Open sets of labelled texts

{criteria}
- "Trained on": the training texts of the set were; the rows here are of other texts. "Left out of
  training": none of its texts. "Evaluation only": the same, because its licence asks for it; 147
  domains of reviews that were written for condsim cover the kind of text (reviews of laptops,
  medicines, courses, hotels, and neighbourhoods), not the data.

## Written pairs

Pairs of domains that no part of the training had (`data/written/test.txt`).

{written}
## Calibration by domain

A score says which label people would give: 0 for the lowest, 1 for the highest. The calibration
error is the mean distance of score and label over ten bins of neighbouring scores, 0 to 1; with
few rows it is above 0 by chance.

{calibration}

## Whether a condition applies

Criteria that a text says nothing about, against those that both texts tell of, as many of each
under every criterion: AUROC of `model.applicability`; 0.5 is chance.

{applicability}
"""


if __name__ == "__main__":
    run_app(app)
