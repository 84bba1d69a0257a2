"""Commands of ``condsim build`` that involve annotators."""

import typer

from condsim_annotation.cli import annotate, candidates, dataset

app = typer.Typer()
for _module in (candidates, annotate, dataset):
    app.add_typer(_module.app)
