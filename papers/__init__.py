"""The tables and figures of the papers, each run by one command and set beside the paper's numbers.

An experiment is a file of ``catalogue/``: what the paper claims, its numbers, and the runs that
repeat them. `reproduce` makes the runs that are not finished and writes the table; a finished one
is written from the reports on disk. On the command line: ``python -m papers NAME``.
"""

from __future__ import annotations

import papers.baselines  # noqa: F401 - registers the prefixes of two baselines
from papers.catalogue import Experiment, Row, load_experiment, names
from papers.engine import Outputs, Work, finish, open_work, reproduce
from papers.options import ContextsOptions, Options, PromptOptions

__all__ = [
    "ContextsOptions",
    "Experiment",
    "Options",
    "Outputs",
    "PromptOptions",
    "Row",
    "Work",
    "finish",
    "load_experiment",
    "names",
    "open_work",
    "reproduce",
]
