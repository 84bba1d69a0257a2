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
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Protocol

from condsim.construction.rows import TableRow
from condsim.construction.tables import counted, in_blocks, revisions_of, write_manifest, write_rows
from condsim.construction.weak.language import Sentence
from condsim.construction.weak.registry import REGISTRY, Registry
from condsim.errors import InputError
from condsim.files import check_not_input, sha256_of
from condsim.progress import Progress
from condsim.prompting import Asker
from condsim.tasks import CstsRow, iter_csts

_RECENT = 1024  # sentences that are kept cut into words


def answers(condition: str, sentence: str, *, registry: Registry = REGISTRY) -> str | None:
    """Answers a condition from a sentence.

    Example:
        >>> answers("The number of people.", "Two men talk to a girl.")
        'three'
    """
    function = registry.find(condition)
    if function is None:
        return None
    return function.say(function.read(_cut(sentence))) or None


@lru_cache(maxsize=_RECENT)
def _cut(text: str) -> Sentence:
    return Sentence(text)


ANSWER_TOKENS = 20
"""Longest answer of a language model in tokens."""

_HIGHEST = 5.0  # label of a sentence and its own answer
_MOST_WORDS = 8  # of an answer; more is talk

_INSTRUCTION = """\
Answer from the sentence alone, in at most five words, and with no sentence of your own. If the \
sentence does not tell, answer: not said"""

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
    """Answers conditions from sentences."""

    @property
    def name(self) -> str:
        """Short name, kept with the rows."""

    def answer(self, questions: Sequence[tuple[str, str]]) -> list[str | None]:
        """Answers.

        Args:
            questions: A condition and a sentence each.

        Returns:
            A few words each; None where there is no answer.
        """


@dataclass(frozen=True, slots=True)
class AnswerRow(TableRow):
    """A row of training data, some of whose sentences are answers.

    Attributes:
        sentence1: A sentence, or a short answer.
        sentence2: Another.
        condition: The condition.
        label: 1 to 5.
        origin: ``given`` for a row as it was, else ``answers:`` and who answered.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    origin: str


class FunctionAnswerer:
    """Answers by labelling functions: what they read from a sentence, in words.

    Attributes:
        name: ``functions``.
    """

    name = "functions"

    def __init__(self, registry: Registry = REGISTRY) -> None:
        """Takes the functions.

        Args:
            registry: The functions to ask.
        """
        self._registry = registry

    def answer(self, questions: Sequence[tuple[str, str]]) -> list[str | None]:
        """Answers; see `condsim.construction.weak.answering`."""
        return [answers(*question, registry=self._registry) for question in questions]


class ModelAnswerer:
    """Answers by a prompted language model; each question is asked once.

    Attributes:
        name: Name of the model.
    """

    def __init__(self, asker: Asker, *, name: str) -> None:
        """Settles who is asked; nothing is.

        Args:
            asker: Asks the model and stores what it answers.
            name: Name of the model.
        """
        self.name = name
        self._asker = asker

    def answer(self, questions: Sequence[tuple[str, str]]) -> list[str | None]:
        """Answers; see `Answerer.answer`.

        Raises:
            InputError: If a sentence is too long for the model.
            BackendError: If the model does not answer; what was answered is stored.
        """
        prompts = [_prompt(*question) for question in questions]
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


def _prompt(condition: str, sentence: str) -> str:
    return f"{_INSTRUCTION}\n\nSentence: {sentence}\nQuestion: {condition}\nAnswer:"


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
) -> Iterator[AnswerRow]:
    """Adds to each labelled row what its answers tell; of any number of rows, in bounded memory.

    After the row as it was come, where both sentences answer: the row with one sentence, drawn at
    random, replaced by its answer, with the same label; and the other sentence beside its own
    answer, in either order, with the label 5. So half of the rows that are added have a 5.
    """
    draw = random.Random(seed)
    origin = f"answers:{answerer.name}"
    for block in in_blocks((row, row.label) for row in rows if row.label is not None):
        asked = chain.from_iterable(
            ((row.condition, row.sentence1), (row.condition, row.sentence2)) for row, _ in block
        )
        questions = list(dict.fromkeys(asked))
        known = dict(zip(questions, answerer.answer(questions), strict=True))
        for (one, two, condition, _), label in block:
            yield AnswerRow(one, two, condition, label, "given")
            answer1, answer2 = known[condition, one], known[condition, two]
            if answer1 in (None, one) or answer2 in (None, two):
                continue
            first = draw.random() < 0.5
            replaced = (answer1, two) if first else (one, answer2)
            own = (two, answer2) if first else (one, answer1)
            if draw.random() < 0.5:
                own = (own[1], own[0])
            yield AnswerRow(*replaced, condition, label, origin)
            yield AnswerRow(*own, condition, _HIGHEST, origin)


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
        file: Rows in the columns of C-STS; all are checked before any is asked of.
        output: A ``.csv`` or ``.parquet`` file that ``condsim train`` reads.
        answerer: See `with_answers`.
        progress: Told of the stage, the rows read and their number.
        seed: See `with_answers`.
        functions: Files that labelling functions which answer are from, for the manifest.

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

    def rows() -> Iterator[AnswerRow]:
        for row in with_answers(counted(iter_csts(file), total, progress), answerer, seed=seed):
            written[row.origin] += 1
            yield row

    write_rows(rows(), output, kind=AnswerRow)
    content = {
        "kind": "rows with answers",
        "sha256": sha256_of(output),
        "made_from": revisions_of([file]),
        "functions": revisions_of(functions),
        "answerer": answerer.name,
        "seed": seed,
        "rows": dict(written),
        "condsim": metadata.version("condsim"),
    }
    write_manifest(output, content)
    return written
