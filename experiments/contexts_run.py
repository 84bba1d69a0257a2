"""An experiment of similarity from contexts from its plan to its table."""

from __future__ import annotations

from condsim.errors import require
from condsim.progress import Progress, silent
from experiments.contexts_cases import cases
from experiments.contexts_execute import Measuring
from experiments.contexts_plan import measurements, plan_contexts
from experiments.contexts_results import collect_contexts
from experiments.experiment import Experiment
from experiments.plan import Options
from experiments.results import Results


def measured(
    experiment: Experiment,
    options: Options,
    *,
    report_only: bool = False,
    progress: Progress | None = None,
) -> tuple[Results, list[str], int, int]:
    """Measures what is missing and reads what there is.

    Args:
        experiment: The experiment.
        options: What was chosen.
        report_only: Whether to measure nothing.
        progress: Told how far each step is.

    Returns:
        The results, lines of Markdown to stand below the tables, and how many measurements are
        finished of how many.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended it; the same call goes on from there.
        InputError: If data, inputs or recipes break a rule.
        ModelError: If a training diverged.
        MissingExtraError: If the ``contexts`` extra is not installed.
    """
    require("matplotlib", extra="train")  # rather now than after hours
    planned = plan_contexts(experiment, options)
    every = measurements(planned)
    if not report_only:
        Measuring(every, options.runs, progress=progress or silent).finish()
    results = collect_contexts(experiment, planned, options)
    below = cases(planned) if experiment.kind == "cases" else []
    return results, below, sum(one.finished for one in every), len(every)
