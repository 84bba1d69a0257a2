"""``condsim build``: build training rows, or a data set the way C-STS was built."""

from __future__ import annotations

from importlib import import_module

import typer

from condsim.cli import criteria, weak

_ANNOTATION = ("candidates", "annotate", "dataset")

app = typer.Typer()
# The annotation package builds on the core, so its commands are found by name.
for _name in _ANNOTATION:
    app.add_typer(import_module(f"condsim.annotation.cli.{_name}").app)
app.add_typer(criteria.app)
app.add_typer(weak.app)
