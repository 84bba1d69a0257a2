"""A prompted model as a scorer, opened from its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.load import load_task
from condsim.errors import InputError, requires_extra
from condsim.model.base import PairScorer, Rows, Scale, Texts, check_rows, rescaled
from condsim.prompting.ask import Asker, Budget
from condsim.prompting.backend import Answer, Backend
from condsim.prompting.prompt import Shots, instruction_text, parse_score, render, seeded
from condsim.prompting.settings import PromptSettings, load_settings
from condsim.types import BoolArray, FloatArray


def likert_range(*, conditional: bool) -> tuple[float, float]:
    """Gives the scale that the instructions name.

    Returns:
        Lowest and highest score: (1, 5) with conditions, (0, 5) without.
    """
    return (1.0, 5.0) if conditional else (0.0, 5.0)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What was read out of the answers, each ``(n,)``."""

    values: FloatArray  # on the scale of the instruction; random where the answer is invalid
    valid: BoolArray  # whether the answer is a number
    in_range: BoolArray  # whether that number lies on the scale
    expected: BoolArray  # whether the value is an expected value, not that of the text
    label_range: tuple[float, float]

    @property
    def unit(self) -> FloatArray:
        """The scores mapped linearly so that the scale becomes [0, 1], ``(n,)``; not clipped."""
        low, high = self.label_range
        return ((self.values - low) / (high - low)).astype(np.float32)


class PromptScorer(PairScorer):
    """Scores rows by asking a language model.

    The raw score is the number as the model gave it. A number that is not on the instruction's
    scale stays out of [0, 1] too, and an invalid answer is a random number on it.

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
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Prepares; nothing is asked.

        Args:
            settings: How to ask and how to read the answers, and the limits over all calls.
            shots: Draws the examples; none are shown without it, whatever the settings say.
            progress: Called with rows answered and rows in all.
        """
        count = 0 if shots is None else shots.count
        self.name = f"{backend.name}, {settings.instruction} instruction, {count}-shot"
        self.asker = Asker(
            backend,
            settings.answers,
            budget=Budget(settings.max_requests, settings.max_tokens),
            probabilities=settings.scoring == "expected",
            progress=progress,
        )
        self._settings = settings
        self._shots = shots

    def prompts(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts | None
    ) -> Callable[[int], str]:
        """Gives the function from a row to its prompt.

        Args:
            sentences1: First sentences, length n, or one for every row.
            sentences2: Second sentences, length n, or one for every row.
            conditions: Conditions, length n, or one for every row, or None.

        Returns:
            The prompt of the row of that number; it does not depend on other rows.

        Raises:
            InputError: If a text is empty, the lengths differ, or the examples have conditions
                and the rows have none, or the other way round.
        """
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        first, second = rows.sentences
        under = rows.conditions
        instruction = instruction_text(self._settings.instruction, conditional=under is not None)
        shots, gap = self._shots, self.asker.backend.answer_gap
        if shots is not None and shots.count and shots.conditional != (under is not None):
            has = ("conditions", "none") if shots.conditional else ("no conditions", "some")
            raise InputError(
                f"The examples have {has[0]} and the rows have {has[1]}. Give a training file of "
                "the same kind as the data."
            )

        def prompt(row: int) -> str:
            query = first[row], second[row], None if under is None else under[row]
            examples = () if shots is None else shots.for_query(*query)
            return render(*query, instruction=instruction, examples=examples, gap=gap)

        return prompt

    def predict(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts | None
    ) -> Predictions:
        """Asks for every row that is not stored, and reads the answers; columns as in `prompts`.

        Returns:
            The scores on the scale of the instruction.

        Raises:
            InputError: If the rows break a rule; see `prompts`.
            BackendError: If the model does not answer, or the budget is used up. What was answered
                is stored, and the same call goes on from there.
        """
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        prompt = self.prompts(sentences1, sentences2, conditions)
        label_range = likert_range(conditional=rows.conditions is not None)
        values = np.full(len(rows), np.nan, np.float32)
        expected = np.zeros(len(rows), np.bool_)
        for row, answer in self.asker.answers(prompt, len(rows)):
            value, expected[row] = self._read(answer, label_range)
            values[row] = np.nan if value is None else value
        valid = ~np.isnan(values)
        low, high = label_range
        in_range = valid & (values >= low) & (values <= high)
        for row in np.flatnonzero(~valid).tolist():
            values[row] = seeded(self._settings.seed, prompt(row)).uniform(low, high)
        return Predictions(values, valid, in_range, expected, label_range)

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        sentences1, sentences2 = rows.sentences
        predictions = self.predict(sentences1, sentences2, rows.conditions)
        raw = predictions.values if scale == "raw" else predictions.unit
        return rescaled(raw, None, scale)

    def _read(self, answer: Answer, label_range: tuple[float, float]) -> tuple[float | None, bool]:
        """The value of an answer, and whether it is an expected value."""
        value = parse_score(answer.text, parsing=self._settings.parsing)
        low, high = label_range
        if value is None or not low <= value <= high:
            return value, False  # no answer, or not one of those there are: counted as such
        if self._settings.scoring == "expected" and answer.probabilities:
            shares = answer.probabilities.items()
            on_scale = {number: share for number, share in shares if low <= number <= high}
            if mass := sum(on_scale.values()):
                return sum(number * share for number, share in on_scale.items()) / mass, True
        return value, False


def open_backend(settings: PromptSettings) -> Backend:
    """Makes the back end that settings name; nothing is sent."""
    if settings.backend == "server":
        from condsim.prompting.server import ServerBackend

        return ServerBackend(settings)
    with requires_extra("llm"):
        from condsim.prompting.local import LocalBackend
    return LocalBackend(settings)


def open_asker(
    file: Path, *, new_tokens: int, progress: Callable[[int, int], None] | None = None
) -> tuple[Asker, str]:
    """Makes what asks a language model for other things than scores; nothing is asked.

    Args:
        file: Settings of a prompted model; those about scoring do not count.
        new_tokens: Tokens that an answer may need; the settings may have more.
        progress: Called with questions answered and questions in all.

    Returns:
        The asker and the name of the model.

    Raises:
        InputError: If the file is no YAML file or breaks a rule.
        CondSimError: If the model cannot be opened; see `LocalBackend` and `ServerBackend`.
    """
    if file.suffix not in (".yaml", ".yml"):
        raise InputError(
            "Only a language model answers in words: give the YAML file that 'condsim prompt "
            f"--save' writes. Got {str(file)!r}."
        )
    settings = load_settings(file)
    settings = settings.replaced(max_new_tokens=max(settings.max_new_tokens, new_tokens))
    backend = open_backend(settings)
    budget = Budget(settings.max_requests, settings.max_tokens)
    return Asker(backend, settings.answers, budget=budget, progress=progress), backend.name


def open_prompt_scorer(
    settings: PromptSettings, *, progress: Callable[[int, int], None] | None = None
) -> PromptScorer:
    """Makes a scorer of settings, the likely mistakes first; nothing is asked.

    Args:
        progress: Called with rows answered and rows in all.

    Raises:
        InputError: If the training file breaks a rule.
        CondSimError: If the model cannot be opened; see `LocalBackend` and `ServerBackend`.
    """
    shots = None
    if settings.shots and settings.train is not None:
        train = load_task(Path(settings.train), require_labels=True)
        shots = Shots(train, settings.shots, seed=settings.seed)
    return PromptScorer(settings, open_backend(settings), shots=shots, progress=progress)
