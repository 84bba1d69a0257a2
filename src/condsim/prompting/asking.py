"""Asks each prompt once: stored answers first, then the model, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from condsim.errors import BackendError, BudgetError, InputError
from condsim.kept import locked
from condsim.prompting.backends import Answer, Backend
from condsim.prompting.store import AnswerStore, answer_key

PromptOf = Callable[[int], str]
"""Gives the prompt of a row; called anew when it is needed, so that only keys are held."""


@dataclass(frozen=True)
class Budget:
    """What a run may ask for; the rest is left for a later one.

    Attributes:
        requests: Prompts to send at most; no limit if None. A server's retries do not count.
        tokens: Tokens of prompts and answers together at most; no limit if None. A prompt that is
            under way counts with its estimate and the longest answer.
    """

    requests: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuses negative limits."""
        for name, limit in (("requests", self.requests), ("tokens", self.tokens)):
            if limit is not None and limit < 0:
                raise InputError(f"The budget of {name} must not be negative. Got {limit} instead.")


@dataclass
class Usage:
    """What was asked so far.

    Attributes:
        stored: Rows answered from the store, or by the answer to an equal row.
        requests: Prompts sent.
        prompt_tokens: Their tokens; estimated where the back end does not tell.
        new_tokens: Tokens of the answers.
    """

    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return self.prompt_tokens + self.new_tokens


class Asker:
    """Asks a back end through a file of stored answers.

    Attributes:
        backend: What answers.
        usage: What was asked so far, over all calls.
    """

    def __init__(
        self,
        backend: Backend,
        stored: Path | str,
        *,
        budget: Budget | None = None,
        probabilities: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Prepares; nothing is asked.

        Args:
            stored: File where answers are looked up and kept; see `AnswerStore`.
            budget: Limit over all calls; none by default.
            probabilities: Whether answers need the probabilities of the numbers. A stored answer
                that was asked for without them is asked for again.
            progress: Called with the rows answered and their number.
        """
        self.backend = backend
        self.usage = Usage()
        self._path = Path(stored)
        self._budget = budget or Budget()
        self._probabilities = probabilities
        self._progress = progress or (lambda done, rows: None)
        self._identity = backend.identity
        self._reserved = 0  # tokens of the prompts under way
        self._checked = False

    def missing(self, prompt_of: PromptOf, rows: int) -> list[int]:
        """Finds the rows that are still to be asked; nothing is asked.

        Args:
            prompt_of: Gives the prompt of a row; called anew when it is needed.
            rows: Number of rows.

        Returns:
            The first row of each prompt that has no stored answer, in order.
        """
        answered = {row for row, _ in self.stored(prompt_of, rows)}
        groups = self._rows_by_key(prompt_of, rows).values()
        return [group[0] for group in groups if group[0] not in answered]

    def count_tokens(self, prompt_of: PromptOf, rows: Iterable[int]) -> int:
        """Counts the tokens of prompts; exact for a local model, an estimate for a server.

        Args:
            prompt_of: Gives the prompt of a row.
        """
        return sum(self.backend.count_tokens(prompt_of(row)) for row in rows)

    def stored(self, prompt_of: PromptOf, rows: int) -> Iterator[tuple[int, Answer]]:
        """Gives the answers that are stored; nothing is asked.

        Args:
            prompt_of: Gives the prompt of a row.
            rows: Number of rows.

        Yields:
            Row and answer of those there are, in any order.
        """
        yield from self._from_store(self._rows_by_key(prompt_of, rows))

    def answers(self, prompt_of: PromptOf, rows: int) -> Iterator[tuple[int, Answer]]:
        """Answers rows: first those that are stored, then the others as they arrive.

        Args:
            prompt_of: Gives the prompt of a row; called anew when it is needed, so that only keys
                are held for all rows.
            rows: Number of rows.

        Yields:
            Row and answer, each row once.

        Raises:
            InputError: If another process is asking this model with the same file.
            BudgetError: If the budget does not reach for all rows; what was answered is stored.
            BackendError: If the back end fails for good; likewise.
        """
        sharing = self._rows_by_key(prompt_of, rows)
        done = 0
        for row, answer in self._from_store(sharing):
            self.usage.stored += 1
            done += 1
            yield row, answer
        self._progress(done, rows)
        if not sharing:
            return
        self.check_lengths(prompt_of, (group[0] for group in sharing.values()))
        if not self._checked:
            self.backend.check()
            self._checked = True
        path = self._path.resolve()  # the same file by another name has the same lock
        lock = Path(f"{path}.{answer_key('', self._identity).hex()[:8]}.lock")
        busy = (
            f"Another process is asking this model with {self._path}. Wait until it is done, or "
            "name another file for the answers."
        )
        with locked(lock, busy=busy), AnswerStore(self._path) as store:
            for row, answer in self._from_store(sharing):  # another process may just have asked
                self.usage.stored += 1
                done += 1
                yield row, answer
            while sharing:
                before = len(sharing)
                for key, answer in self._round(store, list(sharing.items()), prompt_of):
                    group = sharing.pop(key)
                    self.usage.stored += len(group) - 1
                    done += len(group)
                    self._progress(done, rows)
                    yield from ((row, answer) for row in group)
                # What was reserved for answers under way is free again: another round may follow.
                if len(sharing) == before:
                    raise self._used_up(prompt_of(next(iter(sharing.values()))[0]), done, rows)

    def check_lengths(self, prompt_of: PromptOf, rows: Iterable[int]) -> None:
        """Makes sure that the model takes prompts of this length.

        Args:
            prompt_of: Gives the prompt of a row.

        Raises:
            InputError: If one is too long.
        """
        longest = self.backend.longest_prompt
        for row in rows if longest is not None else ():
            tokens = self.backend.count_tokens(prompt_of(row))
            if longest is not None and tokens > longest:
                raise InputError(
                    f"Row {row + 1}: its prompt has {tokens:,} tokens, and {self.backend.name!r} "
                    f"takes {longest:,} beside an answer of {self.backend.max_new_tokens}. Give "
                    "fewer examples, a shorter instruction or another model."
                )

    def _from_store(self, sharing: dict[bytes, list[int]]) -> Iterator[tuple[int, Answer]]:
        """Rows that are answered in the file; their keys are taken out."""
        if not self._path.exists():
            return
        with AnswerStore(self._path) as store:
            for key, answer in store.read(list(sharing)):
                if not self._probabilities or answer.probabilities is not None:
                    yield from ((row, answer) for row in sharing.pop(key))

    def _round(
        self, store: AnswerStore, waiting: Sequence[tuple[bytes, list[int]]], prompt_of: PromptOf
    ) -> Iterator[tuple[bytes, Answer]]:
        """Sends prompts until the budget is reserved; each answer is stored as it comes."""
        sent: list[int] = []  # the estimate of each prompt
        prompts = self._within_budget((prompt_of(group[0]) for _, group in waiting), sent)
        answers = self.backend.answers(prompts, probabilities=self._probabilities)
        with closing(answers):
            try:
                for place, answer in answers:
                    key, group = waiting[place]
                    self._count(answer, estimate=sent[place])
                    prompt = prompt_of(group[0])
                    store.write(key, answer, prompt=prompt, identity=self._identity)
                    yield key, answer
            except BackendError as error:
                if error.place is None:
                    raise
                row = waiting[error.place][1][0]
                raise BackendError(f"Row {row + 1}: {error}", place=row) from error

    def _rows_by_key(self, prompt_of: PromptOf, rows: int) -> dict[bytes, list[int]]:
        sharing: dict[bytes, list[int]] = {}
        for row in range(rows):
            sharing.setdefault(answer_key(prompt_of(row), self._identity), []).append(row)
        return sharing

    def _within_budget(self, prompts: Iterator[str], sent: list[int]) -> Iterator[str]:
        """Passes prompts on until the budget is used up; the back end reads them one by one."""
        budget = self._budget
        for prompt in prompts:
            estimate = self.backend.count_tokens(prompt) if budget.tokens is not None else 0
            reserve = estimate + self.backend.max_new_tokens
            if budget.requests is not None and self.usage.requests >= budget.requests:
                return
            if budget.tokens is not None:
                if self.usage.tokens + self._reserved + reserve > budget.tokens:
                    return
            self.usage.requests += 1
            self._reserved += reserve
            sent.append(estimate)
            yield prompt

    def _used_up(self, prompt: str, done: int, rows: int) -> BudgetError:
        budget, usage = self._budget, self.usage
        if budget.requests is not None and usage.requests >= budget.requests:
            spent = f"{usage.requests} of {budget.requests} requests are used up"
        else:
            needed = self.backend.count_tokens(prompt) + self.backend.max_new_tokens
            spent = (
                f"{usage.tokens} of {budget.tokens} tokens are used up, and the next prompt with "
                f"its answer may need {needed}"
            )
        return BudgetError(
            f"The budget is reached: {spent}. {done} of {rows} rows are answered and kept; allow "
            "more and run the same again for the rest."
        )

    def _count(self, answer: Answer, *, estimate: int) -> None:
        longest, used = self.backend.max_new_tokens, self.usage
        self._reserved -= estimate + longest
        used.prompt_tokens += estimate if answer.prompt_tokens is None else answer.prompt_tokens
        used.new_tokens += longest if answer.new_tokens is None else answer.new_tokens
