"""The judge: a cross-encoder that says what the second of two texts is to the first.

The definitions and the borderline rules are in ``docs/verdicts.md``, the training in
``papers/judge``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field
from tokenizers import Tokenizer

from condsim.errors import InputError, ModelError, one_line
from condsim.model.base import Conditions, Texts, check_rows
from condsim.model.inputs import token_batches
from condsim.model.legibility import Legibility, suspects
from condsim.model.session import (
    DOWNLOAD_AGAIN,
    MAX_BATCH_TOKENS,
    TOKENIZER_FILE,
    open_session,
    run_batches,
)
from condsim.model.settings import MODEL_FILE, weights_folder
from condsim.paths import asset, expanded
from condsim.types import Float64Array, FloatArray, IntArray

VERDICTS = ("duplicate", "update", "contradiction", "related", "new")
"""What the second text may be to the first."""

MERGED = ("duplicate", "update")
"""Verdicts after which one entry stands for both texts."""

CANNOT_TELL = "cannot tell"
"""Verdict on texts that the judge cannot read, or not as a whole."""

SETTINGS_FILE = "judge.json"

LARGE_PACKAGE = "condsim_judge"

_MOST_ABOUT = 3
_WORD = re.compile(r"\w+(?:[-.,:/'\u2019]\w+)*")


@dataclass(frozen=True)
class Verdict:
    """Answer to what the second text is to the first.

    Attributes:
        verdict: One of `VERDICTS`, or ``cannot tell``.
        probabilities: Probability of each of `VERDICTS`, which add up to 1; empty for ``cannot
            tell``.
        about: Words of the texts that decided, the most decisive first; empty unless asked for.
        reason: Why the judge cannot tell; empty otherwise.
    """

    verdict: str
    probabilities: Mapping[str, float]
    about: tuple[str, ...] = ()
    reason: str = ""

    @property
    def probability(self) -> float:
        """Probability of the verdict, in [0, 1]; 0 for ``cannot tell``."""
        return self.probabilities.get(self.verdict, 0.0)

    @property
    def merge(self) -> float:
        """Probability of a merge, a duplicate or an update; 0 if the verdict is another."""
        if self.verdict not in MERGED:
            return 0.0
        return sum(self.probabilities[name] for name in MERGED)

    def dated(self, known: datetime, new: datetime) -> Verdict:
        """Use the times for which the known and the new text hold; naive ones are UTC.

        What contradicts a known text is an update if it holds later, and what updates it is a
        contradiction if it holds at the same time. If it holds earlier, it is an old value and
        neither of the two: related. A duplicate stays one.
        """
        if not self.probabilities:
            return self
        first, second = (time if time.tzinfo else time.replace(tzinfo=UTC) for time in (known, new))
        if second > first:
            possible = "update"
        else:
            possible = "contradiction" if second == first else "related"
        shares = dict(self.probabilities)
        for name in sorted({"update", "contradiction"} - {possible}):
            shares[possible] += shares[name]
            shares[name] = 0.0
        return replace(self, verdict=max(shares, key=shares.__getitem__), probabilities=shares)

    def merged_from(self, least: float) -> Verdict:
        """Withdraw a merge less probable than ``least``: the next best verdict holds."""
        if self.verdict not in MERGED or self.merge >= least:
            return self
        kept = [name for name in VERDICTS if name not in MERGED]
        return replace(self, verdict=max(kept, key=self.probabilities.__getitem__), about=())


class _Settings(BaseModel):
    """Content of ``judge.json``."""

    name: str
    max_tokens: int = Field(ge=1)
    temperature: float = Field(gt=0)
    bias: tuple[float, ...] = Field(min_length=len(VERDICTS), max_length=len(VERDICTS))


class _Input(NamedTuple):
    """Condition or "", both texts, their token ids, and how many of these are not the second's."""

    condition: str
    first: str
    second: str
    ids: list[int]
    start: int


class Judge:
    """Cross-encoder of two texts and an optional condition.

    Attributes:
        name: Its name.
    """

    def __init__(self, folder: Path | str) -> None:
        """Load a judge.

        Raises:
            ModelError: If a file is missing or damaged.
        """
        path = expanded(folder)
        settings = path / SETTINGS_FILE
        if not settings.is_file():
            raise ModelError(f"{settings} is missing; the folder is not a judge.")
        with one_line(f"{settings} is damaged", OSError, ValueError, kind=ModelError):
            self._settings = _Settings.model_validate_json(settings.read_bytes())
        self.name = self._settings.name
        file = path / TOKENIZER_FILE
        with one_line(f"{file} cannot be read", Exception, advice=DOWNLOAD_AGAIN, kind=ModelError):
            self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # "[SEP]" in a text is four characters and no mark.
        self._tokenizer.encode_special_tokens = True
        start, end = (self._tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))
        if start is None or end is None:
            raise ModelError(f"{file} must have the tokens [CLS] and [SEP].")
        self._start, self._end = start, end
        self._legibility = Legibility(self._tokenizer)
        self._session = open_session(path / MODEL_FILE, "verdict")

    @overload
    def verdict(
        self, first: str, second: str, condition: str | None = None, *, about: bool = False
    ) -> Verdict: ...

    @overload
    def verdict(
        self,
        first: list[str],
        second: Texts,
        condition: Conditions | None = None,
        *,
        about: bool = False,
    ) -> list[Verdict]: ...

    @overload
    def verdict(
        self,
        first: Texts,
        second: Texts,
        condition: Conditions | None = None,
        *,
        about: bool = False,
    ) -> list[Verdict] | Verdict: ...

    def verdict(
        self,
        first: Texts,
        second: Texts,
        condition: Conditions | None = None,
        *,
        about: bool = False,
    ) -> list[Verdict] | Verdict:
        """Say what the second text is to the first, which is the one already known.

        The same text twice is a duplicate. Where the judge cannot read a text, or not as a whole,
        the verdict is ``cannot tell``, so that nothing is merged silently: less than 0.7 of the
        words are known to it, the texts are too long, or what it cannot read differs.

        Args:
            first: The known text, or a column of n.
            second: The new text, or a column of n; a single text is repeated for every row.
            condition: What the texts are compared in; None for all that they say.
            about: Whether to name the words that decided, which takes a run for each word.

        Returns:
            The verdict, or n of them if any argument is a column.

        Raises:
            InputError: If a text is empty or not a str, or lengths differ.
        """
        rows = check_rows(condition, first=first, second=second)
        if rows.criterion is not None:
            raise InputError("A verdict takes a condition in words, not a learned criterion.")
        conditions = rows.conditions or [""] * len(rows.sentences[0])
        tokens = self._tokens(chain(conditions, *rows.sentences))
        inputs = [self._input(row, tokens) for row in zip(conditions, *rows.sentences, strict=True)]
        found = self._verdicts(inputs)
        if about:
            found = [
                self._explained(*pair) if pair[1].probability < 1 else pair[1]
                for pair in zip(inputs, found, strict=True)
            ]
        return found[0] if rows.single else found

    def reads(self, text: str) -> bool:
        """Check that the judge reads a text: most of its words, and as a whole."""
        unread = self._legibility.unread_parts(suspects([text])).get(text) == text
        if unread or not _WORD.search(text):
            return False
        return len(self._tokens([text])[text]) <= self._settings.max_tokens

    def _tokens(self, texts: Iterable[str]) -> dict[str, list[int]]:
        """Return the token ids of each text."""
        unique = list(dict.fromkeys(texts))
        encodings = self._tokenizer.encode_batch_fast(unique, add_special_tokens=False)
        return {text: item.ids for text, item in zip(unique, encodings, strict=True)}

    def _input(self, row: tuple[str, str, str], tokens: Mapping[str, list[int]]) -> _Input:
        condition, first, second = (tokens[text] for text in row)
        head = [*condition, self._end] if row[0] else []
        start = [self._start, *head, *first, self._end]
        return _Input(*row, [*start, *second, self._end], len(start))

    def _verdicts(self, inputs: Sequence[_Input]) -> list[Verdict]:
        texts = chain.from_iterable(item[:3] for item in inputs)
        unread = self._legibility.unread_parts(suspects(filter(None, texts)))
        reasons = [self._reason(item, unread) for item in inputs]
        probabilities = np.zeros((len(inputs), len(VERDICTS)))
        probabilities[:, 0] = 1.0
        asked = [
            row
            for row, (item, reason) in enumerate(zip(inputs, reasons, strict=True))
            if not reason and not _are_equal(item)
        ]
        probabilities[asked] = self._probabilities([inputs[row] for row in asked])
        verdicts = []
        for item, reason, row in zip(inputs, reasons, probabilities.tolist(), strict=True):
            shares = dict(zip(VERDICTS, row, strict=True))
            name = max(shares, key=shares.__getitem__)
            differ = unread.get(item.first) != unread.get(item.second)
            if name in MERGED and differ and not _are_equal(item):
                reason = reason or "The texts differ in words that the judge cannot read."
            verdicts.append(
                Verdict(CANNOT_TELL, {}, reason=reason) if reason else Verdict(name, shares)
            )
        return verdicts

    def _reason(self, item: _Input, unread: Mapping[str, str]) -> str:
        """Say why the judge cannot tell; empty if it can."""
        if _are_equal(item):
            return ""
        for text, name in zip(item[:3], ("the condition", "a text", "a text"), strict=True):
            if text and unread.get(text) == text:
                return f"The judge cannot read most words of {name}."
            if text and not _WORD.search(text):
                return f"There are no words in {name}."
        if len(item.ids) > self._settings.max_tokens:
            return f"The texts have more than {self._settings.max_tokens} tokens."
        return ""

    def _probabilities(self, inputs: Sequence[_Input]) -> Float64Array:
        """Return calibrated probabilities, (m, 5)."""
        logits = np.empty((len(inputs), len(VERDICTS)))
        lengths = np.array([len(item.ids) for item in inputs], dtype=np.int64)

        def fill(batch: IntArray) -> None:
            logits[batch] = self._run([inputs[row] for row in batch])

        run_batches(fill, list(token_batches(lengths, tokens=MAX_BATCH_TOKENS)))
        return calibrated(logits, self._settings.temperature, self._settings.bias)

    def _run(self, inputs: Sequence[_Input]) -> FloatArray:
        shape = (3, len(inputs), max(len(item.ids) for item in inputs))
        arrays: IntArray = np.zeros(shape, np.int64)
        for row, item in enumerate(inputs):
            arrays[0, row, : len(item.ids)] = item.ids
            arrays[1, row, : len(item.ids)] = 1
            arrays[2, row, item.start : len(item.ids)] = 1
        names = ("input_ids", "attention_mask", "token_type_ids")
        with one_line(f"The judge {self.name!r} cannot run", Exception, kind=ModelError):
            logits: FloatArray = self._session.run(None, dict(zip(names, arrays, strict=True)))[0]
        return logits

    def _explained(self, item: _Input, verdict: Verdict) -> Verdict:
        """Name the words without which the verdict is least likely."""
        if not verdict.probabilities:
            return verdict
        words, without = [], []
        for side, text in enumerate((item.first, item.second), start=1):
            matches = list(_WORD.finditer(text))
            # A text of one word has nothing left without it.
            for match in matches if len(matches) > 1 else ():
                row = [item.condition, item.first, item.second]
                row[side] = f"{text[: match.start()]}{text[match.end() :]}"
                words.append(match.group())
                without.append(row)
        if not words:
            return verdict
        tokens = self._tokens(chain.from_iterable(without))
        inputs = [self._input((row[0], row[1], row[2]), tokens) for row in without]
        left = self._probabilities(inputs)[:, VERDICTS.index(verdict.verdict)]
        order = np.argsort(left, kind="stable").tolist()
        decisive = dict.fromkeys(words[n] for n in order if left[n] < verdict.probability)
        return replace(verdict, about=tuple(decisive)[:_MOST_ABOUT])


def _are_equal(item: _Input) -> bool:
    return item.first.split() == item.second.split()


def calibrated(
    logits: FloatArray | Float64Array, temperature: float, bias: ArrayLike
) -> Float64Array:
    """Turn logits, (n, 5), into probabilities."""
    scaled = logits / temperature + np.asarray(bias)
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    result: Float64Array = powers / powers.sum(axis=1, keepdims=True)
    return result


@cache
def load_judge(judge: Path | str | None = None) -> Judge:
    """Load a judge once.

    Args:
        judge: None for the one that comes with condsim, ``"large"`` for the larger one of the
            package condsim-judge, or a folder.

    Raises:
        ModelError: If there is no such judge, or a file is damaged.
        MissingExtraError: If it is ``"large"`` and condsim-judge is not installed.
    """
    if judge == "large":
        return Judge(weights_folder(LARGE_PACKAGE, "judge"))
    return Judge(asset("judge") if judge is None else judge)


def verdict(
    first: str, second: str, condition: str | None = None, *, about: bool = False
) -> Verdict:
    """Say what the second text is to the first: see `Judge.verdict`.

    Example:
        >>> import condsim
        >>> condsim.verdict("Staging listens on port 8080.", "Staging was moved to 8090.").verdict
        'update'
    """
    return load_judge().verdict(first, second, condition, about=about)
