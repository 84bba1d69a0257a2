"""Decomposition: a sentence's short answer to the condition, as text to train on.

A condition is a question, and a sentence answers it ("number of people": "two"). Two sentences are
as similar under the condition as their answers are, so a row in which an answer stands in for its
sentence has the same label; and a sentence and its own answer are the same under the condition.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from condsim.construction.row_files import (
    TrainingRow,
    counted,
    in_blocks,
    revisions_of,
    write_provenance,
    write_rows,
)
from condsim.construction.weak.language import cut_sentence
from condsim.construction.weak.registry import REGISTRY, Registry
from condsim.errors import InputError
from condsim.files import check_not_input
from condsim.progress import Progress
from condsim.prompting import Asker
from condsim.tasks import CstsRow, iter_csts

ANSWER_TOKENS = 20
"""Longest answer of a language model in tokens."""

_MOST_WORDS = 8  # of an answer; more is talk

_PROMPT = """\
Answer from the sentence alone, in at most five words, and with no sentence of your own. If the \
sentence does not tell, answer: not said

Sentence: {1}
Question: {0}
Answer:"""

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_AROUND = re.compile(
    r"^(?:[-*•]\s+)?(?:answer:\s*)?[\"'“”*\s]*|[\"'“”*\s]*[.!]?[\"'“”*\s]*$", re.IGNORECASE
)
_REFUSAL = re.compile(
    r"(?:not (?:said|mentioned|told|stated|specified|given|clear|applicable)|unknown|unclear|n/?a\b"
    r"|(?:the|this) sentence\b)",
    re.IGNORECASE,
)


class Answerer(Protocol):
    """Answers conditions from sentences; its name is kept with the rows."""

    @property
    def name(self) -> str:
        """Short name."""

    def answer(self, questions: Sequence[tuple[str, str]]) -> list[str | None]:
        """Answers in a few words.

        Args:
            questions: A condition and a sentence each.

        Returns:
            One answer each, or None.
        """


def answers(condition: str, sentence: str, *, registry: Registry = REGISTRY) -> str | None:
    """Answers a condition from a sentence by the function that understands it.

    Example:
        >>> answers("The number of people.", "Two men talk to a girl.")
        'three'
    """
    function = registry.find(condition)
    return None if function is None else function.say(function.read(cut_sentence(sentence))) or None


class FunctionAnswerer:
    """Answers by labelling functions: what they read from a sentence, in words."""

    name = "functions"

    def __init__(self, registry: Registry = REGISTRY) -> None:
        """Takes the functions to ask."""
        self._registry = registry

    def answer(self, questions: Sequence[tuple[str, str]]) -> list[str | None]:
        """Answers; see `Answerer.answer`."""
        return [answers(*question, registry=self._registry) for question in questions]


class ModelAnswerer:
    """Answers by a prompted language model; each question is asked once."""

    def __init__(self, asker: Asker, *, name: str) -> None:
        """Settles who is asked; nothing is.

        Args:
            asker: Asks the model and stores what it answers.
        """
        self.name = name
        self._asker = asker

    def answer(self, questions: Sequence[tuple[str, str]]) -> list[str | None]:
        """Answers; see `Answerer.answer`.

        Raises:
            InputError: If a sentence is too long for the model.
            BackendError: If the model does not answer; what was answered is stored.
        """
        prompts = [_PROMPT.format(condition, sentence) for condition, sentence in questions]
        read: list[str | None] = [None] * len(questions)
        try:
            for row, answer in self._asker.answers(prompts.__getitem__, len(questions)):
                read[row] = read_answer(answer.text)
        except InputError:
            self._check_lengths(questions, prompts)
            raise
        return read

    def _check_lengths(self, questions: Sequence[tuple[str, str]], prompts: Sequence[str]) -> None:
        """Names the first sentence that is too long, if that is what was wrong."""
        for row, (condition, sentence) in enumerate(questions):
            try:
                self._asker.check_lengths(prompts.__getitem__, [row])
            except InputError:
                raise InputError(
                    f"{self.name} cannot take a sentence as long as {sentence[:60]!r}... under "
                    f"the condition {condition!r}. Leave the row out, or name a model that can."
                ) from None


def read_answer(text: str) -> str | None:
    """Reads a short answer out of what a model wrote.

    Example:
        >>> read_answer(' "Two people."')
        'Two people'
        >>> read_answer("Not said.")
    """
    lines = _THOUGHT.sub("", text).strip().splitlines()
    answer = _AROUND.sub("", lines[0]) if lines else ""
    said = _REFUSAL.match(answer) is None and len(answer.split()) <= _MOST_WORDS
    return answer if said and any(map(str.isalnum, answer)) else None


def with_answers(
    rows: Iterable[CstsRow], answerer: Answerer, *, seed: int = 0
) -> Iterator[TrainingRow]:
    """Adds to each labelled row what its answers tell, in bounded memory.

    After the row as it was come, where both sentences answer: the row with one sentence, drawn at
    random, replaced by its answer, with the same label; and the other sentence beside its own
    answer, in either order, with the label 5. So half of the rows that are added have a 5.
    """
    draw = random.Random(seed)
    origin = f"answers:{answerer.name}"
    for block in in_blocks((row, row.label) for row in rows if row.label is not None):
        asked = ((row.condition, text) for row, _ in block for text in (row[0], row[1]))
        questions = list(dict.fromkeys(asked))
        known = dict(zip(questions, answerer.answer(questions), strict=True))
        for (one, two, condition, _), label in block:
            yield TrainingRow(one, two, condition, label, "given")
            answer1, answer2 = known[condition, one], known[condition, two]
            if answer1 is None or answer2 is None or answer1 == one or answer2 == two:
                continue
            first = draw.random() < 0.5
            replaced = (answer1, two) if first else (one, answer2)
            own = (two, answer2) if first else (one, answer1)
            if draw.random() < 0.5:
                own = (own[1], own[0])
            yield TrainingRow(*replaced, condition, label, origin)
            yield TrainingRow(*own, condition, 5.0, origin)


def answer_file(
    file: Path,
    output: Path,
    answerer: Answerer,
    *,
    progress: Progress,
    seed: int = 0,
    functions: Sequence[Path] = (),
) -> Counter[str]:
    """Adds answers to a file of rows, into another with a manifest beside it.

    Args:
        file: Rows in the columns of C-STS; all are checked before any question is asked.
        output: A ``.csv`` or ``.parquet`` file that ``condsim train`` reads.
        answerer: Answers for the sentences of each row.
        progress: Called with the stage, the rows read and their number.
        seed: Seed of which sentence its answer replaces.
        functions: Files of labelling functions that answer, for the manifest.

    Returns:
        Rows written, by origin, and ``unlabelled``: those left out.

    Raises:
        InputError: If a row breaks a rule, no row has a label, or the output is the input.
        BackendError: If a language model does not answer; what was answered is stored.
    """
    check_not_input(output, file)
    labels = Counter(row.label is not None for row in iter_csts(file))
    if not labels[True]:
        raise InputError(
            f"{file}: answers are added to labelled rows, and none of its {labels.total()} rows "
            "has a label from 1 to 5. Label them first, such as with 'condsim build teach'."
        )
    total = labels.total()
    written = Counter(unlabelled=labels[False])

    def rows() -> Iterator[TrainingRow]:
        for row in with_answers(counted(iter_csts(file), total, progress), answerer, seed=seed):
            written[row.origin] += 1
            yield row

    write_rows(rows(), output, kind=TrainingRow)
    facts = {
        "functions": revisions_of(functions),
        "answerer": answerer.name,
        "seed": seed,
        "rows": dict(written),
    }
    write_provenance(output, kind="rows with answers", made_from=[file], facts=facts)
    return written
