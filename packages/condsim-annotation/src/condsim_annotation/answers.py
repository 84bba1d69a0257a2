"""Short answers to conditions, from labeling functions or a language model, as training rows."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from condsim.console import Progress
from condsim.data.batch import ROWS_PER_BATCH, in_blocks
from condsim.data.csts import CstsRow, iter_csts
from condsim.errors import InputError
from condsim.io import check_not_input
from condsim.rows.records import counted, revisions_of, write_provenance, write_rows
from condsim_annotation.tables import TrainingRow
from condsim_annotation.weak.language import cut_sentence
from condsim_annotation.weak.registry import REGISTRY, Registry
from condsim_llm.ask import Asker

Reader = Callable[[Sequence[tuple[str, str]]], Sequence[str | None]]
"""Answers conditions from texts, each in a few words or None; see `function_answers`."""

_MAX_ANSWER_WORDS = 8

ANSWER_TOKENS = 20
"""Maximum length of a language model's answer in tokens."""

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


def answers(condition: str, sentence: str, *, registry: Registry = REGISTRY) -> str | None:
    """Answer a condition from a sentence by the labeling function that understands it.

    Example:
        >>> answers("The number of people.", "Two men talk to a girl.")
        'three'
    """
    function = registry.find(condition)
    return None if function is None else function.say(function.read(cut_sentence(sentence))) or None


def function_answers(questions: Sequence[tuple[str, str]]) -> list[str | None]:
    """Answer conditions, each from a sentence, by labeling functions; see `answers`."""
    return [answers(condition, sentence) for condition, sentence in questions]


def model_answers(
    questions: Sequence[tuple[str, str]], *, asker: Asker, name: str
) -> list[str | None]:
    """Answer conditions, each from a sentence, by a language model, called ``name`` in errors."""
    prompts = [_PROMPT.format(condition, sentence) for condition, sentence in questions]
    results: list[str | None] = [None] * len(questions)
    for row, (condition, sentence) in enumerate(questions):
        try:
            asker.check_lengths(prompts.__getitem__, [row])
        except InputError:
            raise InputError(
                f"{name} cannot take a sentence as long as {sentence[:60]!r}... under the "
                f"condition {condition!r}."
            ) from None
    for row, answer in asker.answers(prompts.__getitem__, len(questions)):
        results[row] = read_answer(answer.text)
    return results


def read_answer(text: str) -> str | None:
    """Extract a short answer from the output of a model."""
    lines = _THOUGHT.sub("", text).strip().splitlines()
    answer = _AROUND.sub("", lines[0]) if lines else ""
    if _REFUSAL.match(answer) or len(answer.split()) > _MAX_ANSWER_WORDS:
        return None
    return answer if any(map(str.isalnum, answer)) else None


def with_answers(
    rows: Iterable[CstsRow], answer: Reader, *, name: str, seed: int = 0
) -> Iterator[TrainingRow]:
    """Return each labeled row, and rows with an answer for a sentence, in bounded memory.

    If both sentences yield an answer, two rows are added: the row with one random sentence
    replaced by its answer, with the same label; and the other sentence with its own answer, in
    either order, with the label 5. So half of the added rows have a 5.
    """
    draw = random.Random(seed)
    origin = f"answers:{name}"
    labeled = ((row, row.label) for row in rows if row.label is not None)
    for block in in_blocks(labeled, ROWS_PER_BATCH):
        all_questions = ((row.condition, text) for row, _ in block for text in row[:2])
        questions = list(dict.fromkeys(all_questions))
        answer_of = dict(zip(questions, answer(questions), strict=True))
        for (sentence1, sentence2, condition, _), label in block:
            yield TrainingRow(sentence1, sentence2, condition, label, "given")
            answer1, answer2 = answer_of[condition, sentence1], answer_of[condition, sentence2]
            if answer1 in (None, sentence1) or answer2 in (None, sentence2):
                continue
            first = draw.random() < 0.5
            replaced = (answer1, sentence2) if first else (sentence1, answer2)
            own = (sentence2, answer2) if first else (sentence1, answer1)
            if draw.random() < 0.5:
                own = own[::-1]
            yield TrainingRow(*replaced, condition, label, origin)
            yield TrainingRow(*own, condition, 5.0, origin)


def answer_file(
    file: Path,
    output: Path,
    answer: Reader,
    *,
    name: str,
    progress: Progress,
    seed: int = 0,
    functions: Sequence[Path] = (),
) -> Counter[str]:
    """Add answers to a file of C-STS rows; return the number of rows by origin.

    All rows are checked before any question is asked; ``unlabeled`` ones are left out. The output
    is a ``.csv`` or ``.parquet`` file with a manifest, which has the name of the answerer, as the
    column ``origin`` does, and the files of labeling functions.
    """
    check_not_input(output, file)
    labels = Counter(row.label is not None for row in iter_csts(file))
    if not labels[True]:
        raise InputError(
            f"{file}: answers are added to labeled rows, and none of its {labels.total()} rows "
            "has a label from 1 to 5; label them first, such as with 'condsim build teach'."
        )
    written = Counter(unlabeled=labels[False])

    def rows() -> Iterator[TrainingRow]:
        source = counted(iter_csts(file), progress, total=labels.total())
        for row in with_answers(source, answer, name=name, seed=seed):
            written[row.origin] += 1
            yield row

    write_rows(rows(), output, kind=TrainingRow)
    facts = {"functions": revisions_of(functions), "answerer": name, "seed": seed}
    facts["rows"] = dict(written)
    write_provenance(output, kind="rows with answers", made_from=[file], facts=facts)
    return written
