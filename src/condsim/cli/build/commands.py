"""``condsim build``: a data set of one's own, made the way C-STS was."""

from __future__ import annotations

from condsim.cli.build import annotate, candidates, dataset, weak

app = candidates.app
# Without a name, so that their commands stand beside the others.
app.add_typer(annotate.app)
app.add_typer(dataset.app)
app.add_typer(weak.app)
