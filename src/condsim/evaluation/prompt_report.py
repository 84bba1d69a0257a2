"""What a prompted model reached, and how many of its answers were no answer (C-STS A.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from condsim.errors import InputError
from condsim.evaluation.measuring import FEWEST_ROWS, evaluate
from condsim.evaluation.report import Report, read_json, write_json
from condsim.prompting import PromptScorer, likert_range
from condsim.types import BoolArray, FloatArray, Scorer, Task

FORMAT = 1


@dataclass(frozen=True)
class PromptReport:
    """The result of prompting a model.

    Attributes:
        settings: What was asked of which model: `condsim.prompting.PromptSettings` as plain values.
        invalid: Labelled rows whose answer is no number, in %; they count with a random value.
        out_of_range: Labelled rows whose answer is a number that is not on the scale, in %.
        expected: Labelled rows whose score is an expected value, in %.
        usage: Requests, tokens and rows answered from the store, of the run that made the report.
        notes: What a reader must know of how the model was asked; such as that it was sampled.
        report: All labelled rows.
        valid_only: The rows with a valid answer alone; None if they are too few for figures.
    """

    settings: Mapping[str, Any]
    invalid: float
    out_of_range: float
    expected: float
    usage: Mapping[str, int]
    notes: tuple[str, ...]
    report: Report
    valid_only: Report | None

    def to_json(self, path: str | Path) -> None:
        """Writes the report; an earlier file of that name is replaced in one step.

        Args:
            path: The file to write. NaN is written as null.

        Raises:
            InputError: If the folder does not exist.
        """
        reports = {
            "report": self.report.to_dict(),
            "valid_only": None if self.valid_only is None else self.valid_only.to_dict(),
        }
        rest = {
            name: value
            for name, value in vars(self).items()
            if name not in ("report", "valid_only")
        }
        write_json({"prompt_format": FORMAT, **rest, **reports}, Path(path))

    @classmethod
    def from_json(cls, path: str | Path) -> PromptReport:
        """Reads a report that :meth:`to_json` wrote.

        Args:
            path: The file to read.

        Returns:
            The same report.

        Raises:
            InputError: If the file is missing, no such report, or of an unknown format version.
        """
        content = read_json(Path(path))
        if not isinstance(content, dict) or content.get("prompt_format") != FORMAT:
            raise InputError(
                f"{path} is no report of a prompted model that this condsim reads. Run the same "
                "'condsim prompt' again; stored answers are not asked for again."
            )
        fields = {name: value for name, value in content.items() if name != "prompt_format"}
        for name in ("report", "valid_only"):
            if fields.get(name) is not None:
                fields[name] = Report.from_dict(fields[name], source=str(path))
        try:
            fields["notes"] = tuple(fields["notes"])
            return cls(**fields)
        except (KeyError, TypeError) as error:
            raise InputError(f"{path} is not a whole report: {error!r}.") from error


@dataclass(frozen=True, eq=False)
class _Read:
    """Scores that are already there, as a scorer."""

    name: str
    scores: FloatArray

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        return self.scores


def evaluate_prompt(
    scorer: PromptScorer,
    task: Task,
    *,
    settings: Mapping[str, Any],
    condition_only: Scorer | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PromptReport:
    """Prompts a model for the labelled rows of a task and measures what it answered.

    Args:
        scorer: The model.
        task: The data.
        settings: What the scorer was made of, for the report.
        condition_only: See `condsim.evaluation.measuring`; not used for the valid rows alone.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.
        seed: Seed of the resamples.

    Returns:
        The report.

    Raises:
        InputError: If fewer than 3 rows have a label, or the instruction's scale is not that of
            the labels.
        BackendError: If the model does not answer or the budget is used up; run again to go on.
    """
    rows = task.labelled()
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"{task.name}: {FEWEST_ROWS} rows with a label are needed, got {len(rows)} among "
            f"{len(task)}. Give a labelled file."
        )
    scale = likert_range(conditional=rows.conditions is not None)
    if scale != rows.label_range:
        raise InputError(
            f"{task.name}: the labels are from {rows.label_range[0]:g} to {rows.label_range[1]:g} "
            f"and the instruction asks for {scale[0]:g} to {scale[1]:g}. Give C-STS or STS-B data."
        )
    predictions = scorer.predict(rows.sentences1, rows.sentences2, rows.conditions)
    scores = predictions.unit
    report = evaluate(
        _Read(scorer.name, scores),
        rows,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
    )
    valid_only = None
    kept = np.flatnonzero(predictions.valid)
    if len(kept) >= FEWEST_ROWS:
        valid_only = evaluate(
            _Read(scorer.name, scores[kept]), rows.take(kept), resamples=resamples, seed=seed
        )
    return PromptReport(
        settings=settings,
        invalid=_percent(~predictions.valid),
        out_of_range=_percent(predictions.valid & ~predictions.in_range),
        expected=_percent(predictions.expected),
        usage=asdict(scorer.asker.usage),
        notes=scorer.asker.notes,
        report=report,
        valid_only=valid_only,
    )


def _percent(rows: BoolArray) -> float:
    return 100.0 * float(rows.mean())
