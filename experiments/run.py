"""One experiment from its name to its table: run what is missing, then write what there is."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from condsim.errors import CondSimError, InputError, require
from condsim.evaluation import predicted_against_gold
from condsim.files import replacing
from condsim.tasks import describe, load_task
from condsim.types import FloatArray
from experiments.cosines import dev_cosines
from experiments.execute import condition_only, finished_report, run_missing
from experiments.experiment import FROM_CONTEXTS, Experiment
from experiments.markdown import ending, heading, kept_notes, page, pipe_table
from experiments.plan import Options, PlannedLine, data_files, plan, unique_runs
from experiments.plots import plot_histogram, plot_results
from experiments.prompt_execute import Asking, Progress, finished_prompt
from experiments.prompt_plan import plan_prompts, prompt_runs
from experiments.prompt_results import collect_prompts
from experiments.provenance import command, facts
from experiments.results import Measured, Results, collect
from experiments.table_csv import write_csv

if TYPE_CHECKING:
    from condsim.progress import Progress as StageProgress


@dataclass(frozen=True)
class Outputs:
    """What was written.

    Attributes:
        page: The Markdown file.
        table: The CSV file.
        plot: The PNG file.
        finished: Number of runs that are finished.
        planned: Number of runs there are to be.
    """

    page: Path
    table: Path
    plot: Path
    finished: int
    planned: int


def reproduce(
    experiment: Experiment,
    options: Options,
    output: Path,
    *,
    defaults: Options,
    report_only: bool = False,
    progress: Progress | None = None,
    stages: StageProgress | None = None,
) -> Outputs:
    """Runs what is not finished and writes ``NAME.md``, ``NAME.csv`` and ``NAME.png``.

    What a person wrote below the line ``<!-- notes -->`` of an earlier page is kept.

    Args:
        experiment: The experiment.
        options: What was chosen.
        output: Folder of the three files; made if it is not there.
        defaults: What would have been chosen, for the command on the page.
        report_only: Whether to train and to ask nothing and write what is finished.
        progress: Shows how far the asking of a language model is.
        stages: Shows how far each step of similarity from contexts is.

    Returns:
        The files.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended a run; the same call goes on from there.
        InputError: If the data, an override or a folder break a rule.
        BackendError: If a language model does not answer, or the budget is used up; the files are
            written with what there is.
        ModelError: If a model is missing or damaged, or its training diverged.
        MissingExtraError: If the ``train`` extra is not installed, or ``llm`` to ask language
            models, or ``contexts``.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; --output must be a folder.")
    written = output / f"{experiment.name}.md"
    notes = kept_notes(written)
    text = command(experiment.name, options, defaults)
    if experiment.kind == "prompting":
        return _prompted(
            experiment, options, text, notes, written, report_only=report_only, progress=progress
        )
    if experiment.kind in FROM_CONTEXTS:
        return _from_contexts(
            experiment, options, text, notes, written, report_only=report_only, stages=stages
        )
    planned = plan(experiment, options)
    runs = unique_runs(planned)
    if experiment.kind == "label-histogram":
        data_files("c-sts", options)
    absent = frozenset() if report_only else run_missing(runs)
    output.mkdir(parents=True, exist_ok=True)
    if experiment.kind == "label-histogram":
        content = _label_histogram(experiment, options, text, notes, written)
    else:
        results = collect(experiment, planned, options, absent=absent)
        content = page(results, text, notes)
        write_csv(results, written.with_suffix(".csv"))
        if experiment.kind == "over-estimation":
            _scatter(planned, results, written.with_suffix(".png"))
        else:
            plot_results(results, written.with_suffix(".png"))
    with replacing(written) as partial:
        partial.write_text(content, encoding="utf-8")
    return Outputs(
        page=written,
        table=written.with_suffix(".csv"),
        plot=written.with_suffix(".png"),
        finished=sum(finished_report(run) is not None for run in runs),
        planned=len(runs),
    )


def _prompted(
    experiment: Experiment,
    options: Options,
    command_text: str,
    notes: str,
    written: Path,
    *,
    report_only: bool,
    progress: Progress | None,
) -> Outputs:
    """Asks language models and writes what there is, whether all were asked or not."""
    require("matplotlib", extra="train")  # rather now than when all is paid for
    planned = plan_prompts(experiment, options)
    runs = prompt_runs(planned)
    stopped: CondSimError | None = None
    if not report_only:
        asking = Asking(runs, options.prompts)
        try:
            asking.finish(progress)
        except CondSimError as error:
            stopped = error
    results = collect_prompts(experiment, planned, options)
    written.parent.mkdir(parents=True, exist_ok=True)
    outputs = Outputs(
        page=written,
        table=written.with_suffix(".csv"),
        plot=written.with_suffix(".png"),
        finished=sum(finished_prompt(run) is not None for run in runs),
        planned=len(runs),
    )
    write_csv(results, outputs.table)
    plot_results(results, outputs.plot)
    with replacing(written) as partial:
        partial.write_text(page(results, command_text, notes), encoding="utf-8")
    if stopped is not None:
        raise stopped
    return outputs


def _from_contexts(
    experiment: Experiment,
    options: Options,
    command_text: str,
    notes: str,
    written: Path,
    *,
    report_only: bool,
    stages: StageProgress | None,
) -> Outputs:
    """Measures by contexts what is not measured and writes what there is."""
    require("torch", extra="contexts")
    from experiments.contexts_run import measured

    results, below, finished, planned = measured(
        experiment, options, report_only=report_only, progress=stages
    )
    written.parent.mkdir(parents=True, exist_ok=True)
    outputs = Outputs(
        page=written,
        table=written.with_suffix(".csv"),
        plot=written.with_suffix(".png"),
        finished=finished,
        planned=planned,
    )
    write_csv(results, outputs.table)
    plot_results(results, outputs.plot)
    with replacing(written) as partial:
        partial.write_text(page(results, command_text, notes, below=below), encoding="utf-8")
    return outputs


def _label_histogram(
    experiment: Experiment, options: Options, command_text: str, notes: str, written: Path
) -> str:
    """Writes the label histogram of the training file and gives its page (C-STS, Figure 4)."""
    data = data_files("c-sts", options)
    found = describe(load_task(data.train, require_labels=True))
    counts = {f"{label:g}": rows for label, rows in found.label_histogram}
    shares = {label: 100 * rows / found.labelled_rows for label, rows in counts.items()}
    with (
        replacing(written.with_suffix(".csv")) as partial,
        partial.open("w", encoding="utf-8", newline="") as stream,
    ):
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["label", "rows", "percent"])
        table.writerows([label, rows, f"{shares[label]:.3f}"] for label, rows in counts.items())
    plot_histogram(shares, written.with_suffix(".png"), head="label")
    baseline = condition_only(data, options)
    measured = Measured("c-sts", data, baseline, baseline.valid_rows)
    lines = [
        *heading(experiment),
        *pipe_table(
            ["label", "rows, ours", "% of rows, ours", "paper"],
            [[label, f"{rows:,}", f"{shares[label]:.1f}", "-"] for label, rows in counts.items()],
        ),
        "",
        f"- {found.labelled_rows:,} labelled rows of {data.train.name}, mean label "
        f"{sum(float(label) * rows for label, rows in counts.items()) / found.labelled_rows:.2f}.",
    ]
    told = facts(Results(experiment, options, (), (), (measured,)), command_text)
    return ending(experiment, [*lines, *(f"- {fact}" for fact in told)], notes)


def _scatter(planned: tuple[PlannedLine, ...], results: Results, path: Path) -> None:
    """Draws the first finished seed of each row; the counts alone where there is none."""
    cosines: dict[str, FloatArray] = {}
    dev = None
    for line in planned:
        run = next((run for run in line.runs if finished_report(run) is not None), None)
        if run is None:
            continue
        dev = dev or load_task(run.data.dev)
        values = dev_cosines(run, dev)
        if values is not None:
            objective = [*line.row.cells.values()][-1]
            cosines[f"{objective}, {line.backbone.label}, seed {run.recipe.seed}"] = values
    if dev is None or not cosines:
        plot_results(results, path)
        return
    predicted_against_gold(cosines, dev, path)
