"""Commands of ``condsim build``: labeling functions, teachers, candidates, annotators, releases."""

import typer

from condsim_annotation.cli import annotate, candidates, dataset, teach, weak

app = typer.Typer()
for _module in (weak, teach, candidates, annotate, dataset):
    app.add_typer(_module.app)
