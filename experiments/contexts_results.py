"""What rows of similarity from contexts reached on each test set, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from condsim.contexts import ContextsRecipe
from condsim.evaluation import Report, Scores, measure
from experiments.backbones import Backbone
from experiments.contexts_execute import Counted, counted, finished_scores
from experiments.contexts_models import model_notes
from experiments.contexts_plan import ContextsLine, Measurement, measurements
from experiments.experiment import Comparison, Experiment
from experiments.gold_sets import GOLD_SETS
from experiments.plan import Options
from experiments.results import NOT_RUN, Difference, Line, Results
from experiments.seeds import Interval, over_seeds

_SEED = 0


def collect_contexts(
    experiment: Experiment, planned: Sequence[ContextsLine], options: Options
) -> Results:
    """Reads what is measured.

    Args:
        experiment: An experiment of the kind ``contexts`` or ``cases``.
        planned: What it measures.
        options: What was chosen.

    Returns:
        The results.

    Raises:
        InputError: If a report cannot be read.
    """
    every = measurements(planned)
    found = {one.folder: Report.from_json(one.report) for one in every if one.finished}
    counts = {one.folder: counted(one) for one in every if one.finished}
    return Results(
        experiment,
        options,
        tuple(_line(experiment, line, found, counts) for line in planned),
        tuple(_differences(experiment, planned)),
        (),
        (*_notes(every, options, counts), *model_notes(planned)),
    )


def _line(
    experiment: Experiment,
    planned: ContextsLine,
    found: Mapping[Path, Report],
    counts: Mapping[Path, Counted],
) -> Line:
    row, one = planned.row, planned.measurement
    report = found.get(one.folder) if one else None
    ours = {}
    for metric in experiment.metrics:
        figures = [report.model.metrics[metric]] if report else []
        if (summary := over_seeds(figures, planned=1)) is not None:
            ours[metric] = summary
    count = counts[one.folder] if one and report else None
    there = {} if count is None else asdict(count)
    return Line(
        row=row,
        cells=row.cells if count is None else _measured_cells(row.cells, experiment, count),
        backbone=_column(planned.gold),
        paper={
            metric: number
            for metric in experiment.metrics
            if (number := experiment.paper(row.key, metric, planned.gold)) is not None
        },
        ours=ours,
        status=NOT_RUN if one and report is None else "",
        seeds=(_SEED,) if report else (),
        planned=(_SEED,) if one else (),
        counts={name: value for name, value in there.items() if value is not None},
    )


def _column(gold: str) -> Backbone:
    """A test set in the part of a backbone: a column of the table."""
    return Backbone(gold, GOLD_SETS[gold], gold)


def _measured_cells(
    cells: Mapping[str, str], experiment: Experiment, count: Counted
) -> Mapping[str, str]:
    """Puts what was counted on the axis, in the place of what was expected."""
    head = experiment.x
    measured = {"tokens": count.corpus_tokens, "pairs": count.training_pairs}.get(head or "")
    return cells if head is None or measured is None else {**cells, head: _short(measured)}


def _short(number: int) -> str:
    """Such as ``7.62M`` or ``980``."""
    for suffix, unit in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if number >= unit:
            return f"{number / unit:.3g}{suffix}"
    return str(number)


def _differences(experiment: Experiment, planned: Sequence[ContextsLine]) -> Iterator[Difference]:
    """Differences of rows with a paired bootstrap interval."""
    by_row = {(line.row.key, line.gold): line for line in planned if _finished(line)}
    for comparison in experiment.comparisons:
        for gold in GOLD_SETS:
            first, second = (by_row.get((key, gold)) for key in _pair(comparison))
            if first is not None and second is not None:
                yield from _difference(experiment, first, second)


def _pair(comparison: Comparison) -> tuple[str, str]:
    return comparison.row, comparison.minus


def _finished(line: ContextsLine) -> bool:
    return line.measurement is not None and line.measurement.finished


def _difference(
    experiment: Experiment, first: ContextsLine, second: ContextsLine
) -> Iterator[Difference]:
    if first.measurement is None or second.measurement is None:
        return
    one, other = (
        Scores(line.row.key, finished_scores(measurement))
        for line, measurement in ((first, first.measurement), (second, second.measurement))
    )
    report = measure(one, first.measurement.gold.task, against=other)
    for metric in experiment.metrics:
        found = report.comparison[metric]
        yield Difference(
            row=first.row,
            minus=second.row,
            backbone=_column(first.gold),
            metric=metric,
            interval=Interval(found.value, found.low, found.high),
            ratio=None,
            seeds=1,
            bootstrap=True,
        )


def _notes(
    every: Sequence[Measurement],
    options: Options,
    counts: Mapping[Path, Counted],
) -> Iterator[str]:
    """Where the figures come from."""
    for gold in {one.gold.key: one.gold for one in every}.values():
        drawn = "" if gold.rows is None else ", drawn with seed 0"
        yield (
            f"{gold.label}: {gold.source} (revision {gold.task.revision}), {len(gold.task):,} "
            f"pairs{drawn}."
        )
    recipes: dict[str, ContextsRecipe] = {}
    for one in every:
        recipes.setdefault(one.recipe.name, one.recipe)
    for name, recipe in recipes.items():
        scoring, chosen = recipe.scoring, recipe.selection
        weights = ", ".join(f"{value:g}" for value in scoring.weights.values)
        yield (
            f"Recipe `{name}`, which says what its settings were chosen on; no label was seen by "
            "any model. Where no row says otherwise: λ of coherence, centre, left and right "
            f"{weights}; centring `{scoring.center}`; |C_s| = {chosen.size}, chosen from "
            f"{round(chosen.candidates * chosen.size)} in {chosen.chunks} chunks."
        )
    done = [counts[one.folder] for one in every if one.folder in counts]
    tokens = sorted({count.corpus_tokens for count in done if count.corpus_tokens})
    if tokens:
        yield f"Corpus: {', '.join(f'{number:,}' for number in tokens)} tokens."
    contexts = sorted({round(count.contexts) for count in done if count.contexts})
    if contexts:
        yield (
            "Contexts of a pair, C_s1 and C_s2 together: "
            f"{', '.join(f'{number:,}' for number in contexts)}."
        )
    if lost := max((count.without_contexts or 0 for count in done), default=0):
        yield f"Sentences that share no word with the corpus and got random contexts: {lost}."
    if options.overrides and every:
        changed = ", ".join(f"`{text}`" for text in options.overrides)
        yield f"Changed in every recipe: {changed}."
