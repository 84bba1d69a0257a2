"""The engine of all experiments: rows become runs, runs leave reports, reports become a page."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from condsim.console import Progress, silent
from condsim.errors import CondSimError, InputError, require, requires_extra
from condsim.io import write_text
from papers.catalogue import Experiment
from papers.label_histogram import write_label_histogram
from papers.options import Options
from papers.pages import kept_notes, results_page, write_csv
from papers.provenance import command
from papers.results import Results

_LOGGER = logging.getLogger("condsim")


class Run(Protocol):
    """Work that writes a report into a separate folder."""

    @property
    def folder(self) -> Path:
        """The folder, named after all that decides the run."""


RunType = TypeVar("RunType", bound=Run)


class Work(Protocol[RunType]):
    """A kind of work: encoders to train, language models to ask, or pairs to score by contexts."""

    @property
    def runs(self) -> Sequence[RunType]:
        """All runs, each once, in the order they are made."""

    def finished(self, run: RunType) -> bool:
        """True if a run has written its report."""

    def prepare(self, missing: Sequence[RunType]) -> Sequence[RunType]:
        """Check and open what runs need before the first; return those that can be made."""

    def make(self, run: RunType) -> None:
        """Make a run, or go on with it."""

    def results(self) -> Results:
        """Results of the finished runs."""

    def plot(self, results: Results, path: Path) -> None:
        """Draw the results as a PNG file."""


@dataclass(frozen=True)
class Outputs:
    """Written files, and the number of finished and planned runs."""

    page: Path
    table: Path
    plot: Path
    finished: int
    planned: int


def open_work(experiment: Experiment, options: Options, progress: Progress = silent) -> Work[Any]:
    """Plan the runs of an experiment; nothing is made."""
    if experiment.kind == "prompting":
        from papers.prompts import Prompts

        return Prompts(experiment, options, progress)
    if experiment.from_contexts:
        with requires_extra("contexts"):
            from papers.contexts import FromContextsWork

        return FromContextsWork(experiment, options, progress)
    with requires_extra("train"):
        from papers.trained import Trained

    return Trained(experiment, options)


def reproduce(
    experiment: Experiment,
    options: Options,
    output: Path,
    *,
    report_only: bool = False,
    progress: Progress = silent,
) -> Outputs:
    """Make the runs that are missing and write ``NAME.md``, ``NAME.csv`` and ``NAME.png``.

    What a person wrote below the line ``<!-- notes -->`` of an earlier page is kept. An error in a
    run is raised after the page is written with what there is.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; --output must be a folder.")
    # A fault is better found now than after hours.
    require("matplotlib", extra="train")
    page = output / f"{experiment.name}.md"
    outputs = Outputs(page, page.with_suffix(".csv"), page.with_suffix(".png"), 0, 0)
    notes, text = kept_notes(page), command(experiment.name, options)
    if experiment.kind == "label-histogram":
        write_text(page, write_label_histogram(experiment, options, text, notes, page))
        return outputs
    work = open_work(experiment, options, progress)
    stopped = None if report_only else finish(work)
    results = work.results()
    output.mkdir(parents=True, exist_ok=True)
    write_csv(results, outputs.table)
    work.plot(results, outputs.plot)
    write_text(page, results_page(results, text, notes))
    if stopped is not None:
        raise stopped
    finished = sum(work.finished(run) for run in work.runs)
    return Outputs(page, outputs.table, outputs.plot, finished, len(work.runs))


def finish(work: Work[RunType]) -> CondSimError | None:
    """Make the runs that are missing, until one fails; an InputError does not stop those after it.

    Returns:
        The first error of a run; None if all went well.
    """
    missing = [run for run in work.runs if not work.finished(run)]
    refused: CondSimError | None = None
    for run in work.prepare(missing) if missing else ():
        _LOGGER.info("%s", run.folder.name)
        try:
            work.make(run)
        except InputError as error:
            refused = refused or error
        except CondSimError as error:
            return error
    return refused
