"""The tables and figures of the papers, each run by one command and set beside the paper's numbers.

An experiment is a file of ``catalogue/``: what the paper claims, its numbers, and the runs that
repeat them. `reproduce` trains, or asks a language model, what is not finished and writes the
table; a finished one is rebuilt from the reports on disk and imports no torch (those of similarity
from contexts do, for their recipes).
"""

from __future__ import annotations

from experiments.catalogue import load_experiment, names
from experiments.experiment import Experiment, Published, Row
from experiments.gold_sets import ContextsOptions
from experiments.naming import run_folder
from experiments.plan import Options, PlannedLine, PlannedRun, PromptOptions, plan, unique_runs
from experiments.prompt_plan import PromptLine, PromptRun, plan_prompts, prompt_runs
from experiments.run import Outputs, reproduce

__all__ = [
    "ContextsOptions",
    "Experiment",
    "Options",
    "Outputs",
    "PlannedLine",
    "PlannedRun",
    "PromptLine",
    "PromptOptions",
    "PromptRun",
    "Published",
    "Row",
    "load_experiment",
    "names",
    "plan",
    "plan_prompts",
    "prompt_runs",
    "reproduce",
    "run_folder",
    "unique_runs",
]
