"""Scorers and data sets in, one table out: the evaluation of SSBC §4 on any scorer.

```python
from condsim.evaluation.suite import evaluate_suite
from condsim.evaluation.suite_data import load_suite
from condsim.evaluation.suite_tables import suite_markdown

report = evaluate_suite(["default"], load_suite("data", "sts"))
print(suite_markdown(report))
```
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from condsim import __version__
from condsim.errors import InputError, unknown_name
from condsim.evaluation.aggregation import Aggregation
from condsim.evaluation.suite_cache import SuiteCache
from condsim.evaluation.suite_data import SuiteTask
from condsim.evaluation.suite_figures import figure_names
from condsim.evaluation.suite_result import Column, SuiteReport
from condsim.evaluation.suite_rows import suite_rows
from condsim.evaluation.suite_scores import LEARNT
from condsim.evaluation.suite_work import Stage, SuiteWork
from condsim.scorers.named import UNFITTED_BASELINES, NamedScorer, named_scorer
from condsim.scorers.precision import Precision, check_precision
from condsim.types import Scorer

__all__ = ["evaluate_suite"]


def evaluate_suite(
    scorers: Sequence[Scorer | NamedScorer | str],
    tasks: Sequence[SuiteTask],
    *,
    against: str | None = None,
    condition: str | None = None,
    aggregation: Aggregation = "all",
    resamples: int = 0,
    seed: int = 0,
    cache: Path | None = None,
    precision: Precision = "auto",
    progress: Stage | None = None,
) -> SuiteReport:
    """Measures scorers on data sets, with the baselines that cost nothing beside them.

    TF-IDF cosine and word overlap are on every data set, condition-only and sentences-only on those
    with conditions. Figures are of raw similarities: for encoders the cosine.

    Args:
        scorers: Scorers, or names as `condsim.scorers.named` reads them.
        tasks: What `condsim.evaluation.suite_data.load_suite` found.
        against: Name of the scorer that the others are compared with, given a bootstrap; the first
            of ``scorers`` by default, or the first baseline.
        condition: What pairs of data without conditions are compared with respect to; nothing if
            None. A tri-encoder needs one.
        aggregation: How the subsets of a year become one number.
        resamples: Bootstrap resamples of the sentence pairs, for intervals and p-values; 0 for
            none.
        seed: Seed of the resamples and of the folds of baselines.
        cache: Folder that keeps scores by version of the model and contents of the rows. Scorers
            whose version cannot be told, such as objects without a ``revision``, are not kept.
        precision: What encoders of sentence-transformers compute in; see
            `condsim.scorers.precision.Precision`. The packaged model is int8 in any case.
        progress: Is told of a stage, what is done of it and what there is.

    Returns:
        The report.

    Raises:
        InputError: If there is no data set, two scorers have one name, ``against`` is none of
            them, ``resamples`` is negative, the precision is unknown, or a scorer refuses the rows.
        ModelError: If a model cannot be loaded or gives no finite score.
        MissingExtraError: If a model needs a library that is not installed.
    """
    if not tasks:
        raise InputError("A suite needs at least one data set. Got none.")
    if resamples < 0:
        raise InputError(f"The number of resamples must be 0 or more. Got {resamples}.")
    check_precision(precision)
    chosen = [_as_named(scorer) for scorer in scorers]
    names = _names(chosen, tasks)
    if against is not None and against not in names:
        raise unknown_name("scorer to compare with", against, names)
    report = progress or (lambda stage, done, total: None)
    work = SuiteWork(tasks, SuiteCache(cache), condition, seed, report, precision)
    entrants = [*work.baselines(), *(work.scored(name, one) for name, one in chosen)]
    reference = None
    if resamples:
        models = [entrant.name for entrant in entrants if not entrant.baseline]
        reference = against or next(iter(models), entrants[0].name)
    draws = {
        task.key: work.draws(entrants, task, how=aggregation, resamples=resamples)
        for task in (tasks if resamples else ())
    }
    return SuiteReport(
        columns=tuple(_column(task) for task in tasks),
        rows=suite_rows(entrants, tasks, draws, how=aggregation, reference=reference),
        against=reference,
        aggregation=aggregation,
        condition=condition,
        resamples=resamples,
        seed=seed,
        versions={"condsim": __version__, "python": platform.python_version()},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


_Named = tuple[str, NamedScorer | Scorer]


def _as_named(scorer: Scorer | NamedScorer | str) -> _Named:
    named = named_scorer(scorer) if isinstance(scorer, str) else scorer
    return named.name, named


def _names(chosen: Sequence[_Named], tasks: Sequence[SuiteTask]) -> list[str]:
    """The names of all rows; an error if two are the same."""
    learnt = LEARNT if any(task.task.conditions is not None for task in tasks) else ()
    names = [*UNFITTED_BASELINES, *learnt]
    for name, _ in chosen:
        if name in names:
            raise InputError(
                f"Two scorers are called {name!r}, and a table needs a name for each. Give one as "
                "LABEL=NAME; the baselines are there anyway."
            )
        names.append(name)
    return names


def _column(task: SuiteTask) -> Column:
    rows = len(task.task) // 2 if task.triplets else len(task.task)
    return Column(
        key=task.key,
        title=task.title,
        figure=figure_names(task)[0],
        revision=task.revision,
        rows=rows,
        subsets=dict(zip(task.names, task.subsets, strict=True)),
        published=task.published,
    )
