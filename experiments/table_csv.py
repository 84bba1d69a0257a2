"""Results as CSV: one line for each row, backbone and metric."""

from __future__ import annotations

import csv
from pathlib import Path

from condsim.files import replacing
from experiments.experiment import FROM_CONTEXTS
from experiments.results import Line, Results

_COLUMNS = (
    "metric",
    "paper",
    "paper_std",
    "ours",
    "ours_std",
    "low",
    "high",
    "seeds",
    "status",
)


def write_csv(results: Results, path: Path) -> None:
    """Writes results as CSV.

    The columns of the experiment come first, then ``backbone``, ``metric``, the paper's number and
    its standard deviation, ours with its own or with the ends of the one seed's 95 % interval, the
    finished seeds, and why there is nothing of ours. For similarity from contexts the column
    ``backbone`` is called ``test set``, and the counts of the row come last.

    Args:
        results: The results.
        path: The file to write.

    Raises:
        InputError: If the folder does not exist.
    """
    heads = list(dict.fromkeys(head for line in results.lines for head in line.cells))
    counts = list(dict.fromkeys(name for line in results.lines for name in line.counts))
    model = "test set" if results.experiment.kind in FROM_CONTEXTS else "backbone"
    columns = [*heads, model, *_COLUMNS, *counts]
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n", restval="")
        writer.writeheader()
        for line in results.lines:
            for metric in results.experiment.metrics:
                if metric in line.paper or line.planned or line.status:
                    writer.writerow({model: line.backbone.label, **_record(line, metric)})
        for measured in results.measured:
            for metric in results.experiment.metrics:
                found = measured.report.model.metrics.get(metric) if measured.report else None
                if found is not None:
                    writer.writerow(
                        {heads[0]: "condition-only baseline", "metric": metric}
                        | {"ours": _cell(found.value), "low": _cell(found.low)}
                        | {"high": _cell(found.high)}
                    )


def _record(line: Line, metric: str) -> dict[str, str]:
    paper, ours = line.paper.get(metric), line.ours.get(metric)
    return {
        **line.cells,
        "metric": metric,
        "paper": paper.text.split()[0] if paper else "",
        "paper_std": _cell(paper.std if paper else None),
        "ours": _cell(ours.mean if ours else None),
        "ours_std": _cell(ours.std if ours else None),
        "low": _cell(ours.low if ours else None),
        "high": _cell(ours.high if ours else None),
        "seeds": " ".join(map(str, line.seeds)),
        "status": line.status,
        **{name: f"{count:.10g}" for name, count in line.counts.items()},
    }


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
