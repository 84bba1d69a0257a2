"""Commands of ``condsim build``: labeling functions, candidates, annotators, data sets."""

import typer

from condsim_annotation.cli import annotate, candidates, dataset, weak

app = typer.Typer()
for _module in (weak, candidates, annotate, dataset):
    app.add_typer(_module.app)
