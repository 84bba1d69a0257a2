"""The tables and figures of the papers, each run by one command and set beside the paper's numbers.

An experiment is a file of ``catalogue/``: what the paper claims, its numbers, and the runs that
repeat them. `reproduce` trains what is not finished and writes the table; a finished table is
rebuilt from the reports on disk and imports no torch.
"""

from __future__ import annotations

from condsim.experiments.catalogue import Experiment, Published, Row, load_experiment, names
from condsim.experiments.naming import run_folder
from condsim.experiments.plan import Options, PlannedLine, PlannedRun, plan, unique_runs
from condsim.experiments.run import Outputs, reproduce

__all__ = [
    "Experiment",
    "Options",
    "Outputs",
    "PlannedLine",
    "PlannedRun",
    "Published",
    "Row",
    "load_experiment",
    "names",
    "plan",
    "reproduce",
    "run_folder",
    "unique_runs",
]
