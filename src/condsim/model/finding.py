"""Finding: the verdict that counts where a new text is judged against several known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from condsim.model.judge import CANNOT_TELL, MERGED, VERDICTS, Judge, Verdict

_UNKNOWN = Verdict("new", {name: float(name == "new") for name in VERDICTS})
_UNREAD = Verdict(CANNOT_TELL, {}, reason="The judge cannot read the text.")


@dataclass(frozen=True)
class Finding:
    """Verdict on a new text against the known ones.

    Attributes:
        verdict: The verdict against the known text that decided.
        known: That text; None if there is no candidate.
        row: Its row in the collection, counted from 0, or its key in an index.
        candidates: Findings against each known text that the judge read, the nearest first.
    """

    verdict: Verdict
    known: str | None = None
    row: int | str | None = None
    candidates: tuple[Finding, ...] = ()


def decide(verdicts: Sequence[Verdict]) -> int:
    """Choose which verdict on one new text counts, by its place.

    It is the likeliest that asks for something to be done: that the new text repeats, replaces or
    denies a known one. If none does, it is the likeliest related one, then the nearest. A known
    text that the judge cannot read counts only where it can tell about none.
    """

    def weight(verdict: Verdict) -> tuple[int, float]:
        if verdict.verdict in MERGED:
            return 3, verdict.merge
        if verdict.verdict == "contradiction":
            return 3, verdict.probability
        rank = {"related": 2, "new": 1}.get(verdict.verdict, 0)
        return rank, verdict.probability if rank == 2 else 0.0

    return max(range(len(verdicts)), key=lambda place: weight(verdicts[place]))


def find_verdict(
    text: str,
    candidates: Sequence[tuple[int | str, str]],
    judge: Judge,
    condition: str | None = None,
    *,
    merged_from: float = 0.0,
    about: bool = False,
) -> Finding:
    """Judge a new text against the row or key and the text of each candidate, nearest first."""
    if not candidates:
        return Finding(_UNKNOWN if judge.reads(text) else _UNREAD)
    verdicts = judge.verdict([known for _, known in candidates], text, condition)
    read = tuple(
        Finding(verdict.merged_from(merged_from), known, row)
        for verdict, (row, known) in zip(verdicts, candidates, strict=True)
    )
    chosen = replace(read[decide([one.verdict for one in read])], candidates=read)
    if about and chosen.known is not None:
        words = judge.verdict(chosen.known, text, condition, about=True)
        chosen = replace(chosen, verdict=words.merged_from(merged_from))
    return chosen
