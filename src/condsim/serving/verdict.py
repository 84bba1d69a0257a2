"""The route of verdicts: what the second text of each pair, or a new text, is to known ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from condsim.serving.errors import RequestError, faults_of_the_server
from condsim.serving.schemas import Condition, RequestBody, Strings
from condsim.serving.service import HeaderCondition, Service, SharedService

if TYPE_CHECKING:
    from condsim.model.finding import Finding
    from condsim.model.judge import Verdict
    from condsim.search.index import Index

router = APIRouter()


class VerdictRequest(RequestBody):
    """Pairs of a known text and a new one, or new texts against known ones."""

    pairs: Annotated[
        list[Annotated[list[str], Field(min_length=2, max_length=2)]] | None,
        Field(
            min_length=1,
            examples=[[["Staging listens on port 8080.", "Staging was moved to port 8090."]]],
        ),
    ] = None
    texts: Strings | None = Field(None, description="New texts, in place of pairs.")
    known: Strings | None = Field(
        None, description="Known texts, with `texts`; by default the server's index."
    )
    candidates: int = Field(
        8, ge=1, le=1000, description="Known texts that are read for each new one."
    )
    condition: Condition = None
    about: bool = Field(False, description="Also name the words that decided.")


class TextVerdict(BaseModel):
    """A verdict, the probability of each, and why the judge cannot tell, if it cannot.

    Against known texts also the one that decided, its position or key, and all that were read.
    """

    verdict: str
    probabilities: dict[str, float]
    about: list[str] | None = None
    reason: str | None = None
    known: str | None = None
    row: int | str | None = None
    candidates: list[TextVerdict] | None = None


class VerdictAnswer(BaseModel):
    """Verdicts in the order of the pairs or texts."""

    model: str
    verdicts: list[TextVerdict]


@router.post("/v1/verdict", response_model_exclude_none=True)
async def judge_texts(
    body: VerdictRequest, service: SharedService, header: HeaderCondition
) -> VerdictAnswer:
    """Say what the second text of each pair, or each new text, is to the known ones."""
    service.check_model(body.model)
    if (body.pairs is None) == (body.texts is None):
        raise RequestError(422, "Give either 'pairs', or 'texts' and perhaps 'known'.")
    if body.texts is None and body.known is not None:
        raise RequestError(422, "'known' goes with 'texts'.")
    known = [] if body.texts is None else _known(body, service)
    condition = service.condition(body.condition, header)
    if condition is not None and service.own_share(condition):
        raise RequestError(422, "A verdict takes a condition in words, not a learned criterion.")
    _check_size(body, service)
    if body.texts is None:
        judge, verdicts = await service.in_thread(_verdicts, body, condition, service)
    else:
        judge, verdicts = await service.in_thread(_findings, body, condition, service, known)
    return VerdictAnswer(model=judge, verdicts=verdicts)


def _check_size(body: VerdictRequest, service: Service) -> None:
    texts = body.texts or [text for pair in body.pairs or () for text in pair]
    words = max(len(text.split()) for text in texts) if body.about else 1
    if body.texts is None:
        rows, unit = len(texts) // 2 * words, "pairs, times words with about"
    else:
        rows = len(texts) * (body.candidates + words) + len(body.known or ())
        unit = "rows, texts times candidates"
    service.check_size(rows, unit, texts, body.known or ())


def _known(body: VerdictRequest, service: Service) -> list[str] | Index:
    known = service.index if body.known is None else body.known
    if known is None:
        raise RequestError(404, "Give 'known' texts; this server has no index (--index DIR).")
    return known


def _verdicts(
    body: VerdictRequest, condition: str | None, service: Service
) -> tuple[str, list[TextVerdict]]:
    judge = service.judge
    first, second = ([pair[side] for pair in body.pairs or ()] for side in (0, 1))
    found = judge.verdict(first, second, condition, about=body.about)
    return judge.name, [_text_verdict(one, about=body.about) for one in found]


def _findings(
    body: VerdictRequest, condition: str | None, service: Service, known: list[str] | Index
) -> tuple[str, list[TextVerdict]]:
    # Slow to import.
    from condsim.search.verdicts import find_verdicts

    judge = service.judge
    with faults_of_the_server():
        found = list(
            find_verdicts(
                body.texts or [],
                known,
                judge,
                scorer=service.queued_embedder if body.known is not None else None,
                condition=condition,
                candidates=body.candidates,
                about=body.about,
            )
        )
    return judge.name, [_finding(one, about=body.about) for one in found]


def _finding(finding: Finding, *, about: bool) -> TextVerdict:
    read = [
        _text_verdict(one.verdict, about=False).model_copy(
            update={"known": one.known, "row": one.row}
        )
        for one in finding.candidates
    ]
    return _text_verdict(finding.verdict, about=about).model_copy(
        update={"known": finding.known, "row": finding.row, "candidates": read}
    )


def _text_verdict(found: Verdict, *, about: bool) -> TextVerdict:
    return TextVerdict(
        verdict=found.verdict,
        probabilities={name: round(share, 4) for name, share in found.probabilities.items()},
        about=list(found.about) if about else None,
        reason=found.reason or None,
    )
