"""A prompted language model as a scorer, and the report on its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from condsim.data.batch import BlankRows
from condsim.data.load import load_task
from condsim.errors import InputError, requires_extra
from condsim.evaluation.evaluate import FEWEST_ROWS, Scores, evaluate, labeled_rows
from condsim.evaluation.report import Report, ResultFile
from condsim.model.base import PairScorer, Rows, Scale, Texts, check_rows, rescaled
from condsim.types import BoolArray, FloatArray, Scorer, Task
from condsim_llm.ask import Asker, Progress
from condsim_llm.backend import Answer, Backend, PromptSettings, load_settings
from condsim_llm.prompt import Shots, instruction_text, parse_score, render, seeded


def likert_range(*, conditional: bool) -> tuple[float, float]:
    """Return the lowest and highest score that the instructions name."""
    return (1.0, 5.0) if conditional else (0.0, 5.0)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Scores read out of answers, each array ``(n,)``.

    Attributes:
        values: Scores on the scale of the instruction; random where the answer is invalid.
        valid: Whether the answer is a number.
        in_range: Whether that number is on the scale.
        expected: Whether the score is an expected value.
        label_range: Lowest and highest score of the scale.
        answers: Texts of the answers.
    """

    values: FloatArray
    valid: BoolArray
    in_range: BoolArray
    expected: BoolArray
    label_range: tuple[float, float]
    answers: tuple[str, ...]

    @property
    def unit(self) -> FloatArray:
        """The scores mapped linearly so that the scale becomes [0, 1], ``(n,)``; not clipped."""
        low, high = self.label_range
        return ((self.values - low) / (high - low)).astype(np.float32)


class PromptScorer(PairScorer):
    """Scores rows by asking a language model.

    The raw score is the number as the model gave it. A number outside the instruction's scale stays
    outside [0, 1] too, and an invalid answer becomes a random number on the scale.

    Attributes:
        name: Model, instruction and number of examples.
        asker: Asks the model; its ``usage`` counts requests and tokens.
    """

    def __init__(
        self,
        settings: PromptSettings,
        backend: Backend,
        *,
        shots: Shots | None = None,
        progress: Progress = lambda done, rows: None,
    ) -> None:
        count = 0 if shots is None else shots.count
        self.name = f"{backend.name}, {settings.instruction} instruction, {count}-shot"
        self.asker = _asker(settings, backend, progress)
        self._settings = settings
        self._shots = shots

    def prompts(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts | None
    ) -> Callable[[int], str]:
        """Return the function from a row's number to its prompt."""
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        conditional = rows.conditions is not None
        instruction = instruction_text(self._settings.instruction, conditional=conditional)
        shots, gap = self._shots, self.asker.backend.answer_gap
        if shots is not None and shots.count and shots.conditional != conditional:
            lacking = "rows" if shots.conditional else "examples"
            raise InputError(
                f"The {lacking} have no conditions. Give a training file of the same kind as the "
                "data."
            )

        def prompt(row: int) -> str:
            condition = None if rows.conditions is None else rows.conditions[row]
            query = rows.sentences[0][row], rows.sentences[1][row], condition
            examples = () if shots is None else shots.for_query(*query)
            return render(*query, instruction=instruction, examples=examples, gap=gap)

        return prompt

    def predict(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts | None
    ) -> Predictions:
        """Ask for every row that is not stored, and read the answers.

        If the model fails or the budget is used up, the answers so far are stored, and the same
        call continues from there.
        """
        rows = len(check_rows(conditions, sentences1=sentences1, sentences2=sentences2))
        prompt = self.prompts(sentences1, sentences2, conditions)
        low, high = likert_range(conditional=conditions is not None)
        values = np.full(rows, np.nan, np.float32)
        expected = np.zeros(rows, np.bool_)
        answers = [""] * rows
        for row, answer in self.asker.answers(prompt, rows):
            answers[row] = answer.text
            value = parse_score(answer.text, parsing=self._settings.parsing)
            if value is None:
                continue
            values[row] = value
            # A text outside the scale is not one of the possible answers, and counts as such.
            if low <= value <= high and self._settings.scoring == "expected":
                mean = _expected_score(answer, low, high)
                if mean is not None:
                    values[row], expected[row] = mean, True
        valid = ~np.isnan(values)
        in_range = valid & (values >= low) & (values <= high)
        for row in np.flatnonzero(~valid).tolist():
            values[row] = seeded(self._settings.seed, prompt(row)).uniform(low, high)
        return Predictions(values, valid, in_range, expected, (low, high), tuple(answers))

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        sentences1, sentences2 = rows.sentences
        predictions = self.predict(sentences1, sentences2, rows.conditions)
        raw = predictions.values if scale == "raw" else predictions.unit
        return rescaled(raw, None, scale)


def _expected_score(answer: Answer, low: float, high: float) -> float | None:
    """Return the mean of the numbers on the scale; None without probabilities."""
    total = mass = 0.0
    for number, probability in (answer.probabilities or {}).items():
        if low <= number <= high:
            total += number * probability
            mass += probability
    return total / mass if mass else None


def open_backend(settings: PromptSettings) -> Backend:
    """Open the model that settings name; nothing is sent to a server."""
    if settings.backend == "server":
        from condsim_llm.server import ServerBackend

        return ServerBackend(settings)
    with requires_extra("llm"):
        from condsim_llm.local import LocalBackend
    return LocalBackend(settings)


def _asker(settings: PromptSettings, backend: Backend, progress: Progress) -> Asker:
    return Asker(
        backend,
        settings.answers,
        max_requests=settings.max_requests,
        max_tokens=settings.max_tokens,
        probabilities=settings.scoring == "expected",
        progress=progress,
    )


def open_asker(
    file: Path, *, new_tokens: int, progress: Progress = lambda done, rows: None
) -> tuple[Asker, str]:
    """Open a language model for other questions than similarity, and return its name too.

    Answers may have ``new_tokens`` at least; settings about scoring have no effect.
    """
    if file.suffix not in (".yaml", ".yml"):
        raise InputError(
            "Only a language model answers in words: give the YAML file that 'condsim prompt "
            f"--save' writes; got {str(file)!r}."
        )
    settings = load_settings(file)
    max_new_tokens = max(settings.max_new_tokens, new_tokens)
    settings = settings.replaced(max_new_tokens=max_new_tokens, scoring="text")
    backend = open_backend(settings)
    return _asker(settings, backend, progress), backend.name


def open_prompt_scorer(
    settings: PromptSettings,
    *,
    load: Callable[[Path], Task] | None = None,
    progress: Progress = lambda done, rows: None,
) -> PromptScorer:
    """Open a scorer from settings; nothing is asked.

    ``load`` reads the file of examples; by default, `load_task` without the rows that lack a text.
    """
    shots = None
    if settings.shots and settings.train is not None:
        load = load or partial(load_task, require_labels=True, blank=BlankRows())
        shots = Shots(load(Path(settings.train)), settings.shots, seed=settings.seed)
    return PromptScorer(settings, open_backend(settings), shots=shots, progress=progress)


def open_scorer(file: Path) -> PromptScorer:
    """Open the scorer of a file of settings; the entry point of `load_scorer`."""
    return open_prompt_scorer(load_settings(file))


class PromptReport(ResultFile):
    """The result of prompting a model.

    Attributes:
        settings: The model and its prompt: `PromptSettings` as plain values.
        invalid: Labeled rows whose answer is not a number, in %; they count with a random value.
        out_of_range: Labeled rows whose answer is a number outside the scale, in %.
        expected: Labeled rows whose score is an expected value, in %.
        usage: Requests, tokens and rows answered from the store, of the run that made the report.
        notes: Deviations from the usual prompting, such as sampled answers.
        report: All labeled rows.
        valid_only: The rows with a valid answer alone; None if they are too few.
    """

    subject = "prompt report"

    prompt_format: Literal[1] = 1
    settings: Mapping[str, Any]
    invalid: float
    out_of_range: float
    expected: float
    usage: Mapping[str, int]
    notes: tuple[str, ...]
    report: Report
    valid_only: Report | None


def evaluate_prompt(
    scorer: PromptScorer,
    task: Task,
    *,
    settings: Mapping[str, Any],
    condition_only: Scorer | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PromptReport:
    """Prompt a model for the labeled rows of a task and measure its answers.

    Args:
        scorer: The prompted model.
        task: The rows, at least 3 of them with a label.
        settings: The settings of the scorer, for the report.
        condition_only: See `evaluate`; not used for the valid rows alone.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.

    Raises:
        InputError: If fewer than 3 rows have a label, or the instruction has another scale
            than the labels.
        BackendError: If the model does not answer or the budget is used up; run again to go on.
    """
    rows = labeled_rows(task)
    scale = likert_range(conditional=rows.conditions is not None)
    if scale != rows.label_range:
        raise InputError(
            f"{task.name}: the labels are from {rows.label_range[0]:g} to {rows.label_range[1]:g} "
            f"and the instruction asks for {scale[0]:g} to {scale[1]:g}. Give C-STS or STS-B data."
        )
    predictions = scorer.predict(rows.sentences1, rows.sentences2, rows.conditions)
    report = evaluate(
        Scores(scorer.name, predictions.unit),
        rows,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
    )
    valid_only = None
    valid_rows = np.flatnonzero(predictions.valid)
    if len(valid_rows) >= FEWEST_ROWS:
        valid_scores = Scores(scorer.name, predictions.unit[valid_rows])
        valid_only = evaluate(valid_scores, rows.take(valid_rows), resamples=resamples, seed=seed)
    return PromptReport(
        settings=settings,
        invalid=_percent(~predictions.valid),
        out_of_range=_percent(predictions.valid & ~predictions.in_range),
        expected=_percent(predictions.expected),
        usage=asdict(scorer.asker.usage),
        notes=scorer.asker.backend.notes,
        report=report,
        valid_only=valid_only,
    )


def _percent(rows: BoolArray) -> float:
    return 100.0 * float(rows.mean())
