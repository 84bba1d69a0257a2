"""``condsim build``: builds your own data set the way C-STS was built."""

from __future__ import annotations

from condsim.cli.build import annotate, candidates, criteria, dataset, weak

app = candidates.app
# Without a name, so that their commands stand beside the others.
app.add_typer(annotate.app)
app.add_typer(dataset.app)
app.add_typer(criteria.app)
app.add_typer(weak.app)
