"""How good the models behind the rows are by themselves, on documents that were held out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from condsim.contexts import COHERENCE, GENERATORS, REPORT, CoherenceReport, GeneratorReport
from experiments.contexts_plan import ContextsLine, Measurement


def model_notes(planned: Sequence[ContextsLine]) -> list[str]:
    """Says what the coherence models and generators reach, each once.

    Args:
        planned: The lines of an experiment.

    Returns:
        A sentence for each model behind the finished lines; where there are several of a kind, with
        the rows that it is behind.

    Raises:
        InputError: If a report cannot be read.
    """
    behind: dict[str, dict[str, dict[str, None]]] = {COHERENCE: {}, GENERATORS: {}}
    for line in planned:
        if line.measurement is None or not line.measurement.finished:
            continue
        label = ", ".join(filter(None, line.row.cells.values()))
        for stage, summary in _summaries(line.measurement):
            behind[stage].setdefault(summary, {})[label] = None
    return [
        summary if len(found) == 1 else f"{summary}; behind {' / '.join(rows)}"
        for found in behind.values()
        for summary, rows in found.items()
    ]


def _summaries(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """The stage and the summary of each model that a measurement was made by."""
    for stage, read in ((COHERENCE, CoherenceReport.read), (GENERATORS, GeneratorReport.read)):
        folder = measurement.part_folder / stage
        if (folder / REPORT).is_file():
            yield stage, read(folder).summary()
