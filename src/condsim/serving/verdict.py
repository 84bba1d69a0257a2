"""The route of verdicts: what the second text of each pair is to the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from condsim.serving.errors import RequestError
from condsim.serving.schemas import Condition, RequestBody
from condsim.serving.service import HeaderCondition, SharedService

if TYPE_CHECKING:
    from condsim.model.judge import Verdict

router = APIRouter()


class VerdictRequest(RequestBody):
    """Pairs of a known text and a new one, and the respect in which they are compared, if any."""

    pairs: Annotated[
        list[Annotated[list[str], Field(min_length=2, max_length=2)]],
        Field(
            min_length=1,
            examples=[[["Staging listens on port 8080.", "Staging was moved to port 8090."]]],
        ),
    ]
    condition: Condition = None
    about: bool = Field(False, description="Also name the words that decided.")


class TextVerdict(BaseModel):
    """A verdict, the probability of each, and why the judge cannot tell, if it cannot."""

    verdict: str
    probabilities: dict[str, float]
    about: list[str] | None = None
    reason: str | None = None


class VerdictAnswer(BaseModel):
    """Verdicts in the order of the pairs."""

    model: str
    verdicts: list[TextVerdict]


@router.post("/v1/verdict", response_model_exclude_none=True)
async def judge_pairs(
    body: VerdictRequest, service: SharedService, header: HeaderCondition
) -> VerdictAnswer:
    """Say what the second text of each pair is to the first."""
    service.check_model(body.model)
    condition = service.condition(body.condition, header)
    if condition is not None and service.own_share(condition):
        raise RequestError(422, "A verdict takes a condition in words, not a learned criterion.")
    words = max(len(text.split()) for pair in body.pairs for text in pair) if body.about else 1
    texts = [text for pair in body.pairs for text in pair]
    service.check_size(len(body.pairs) * words, "pairs, times words with about", texts)
    judge, found = await service.in_thread(_verdicts, body, condition)
    return VerdictAnswer(
        model=judge,
        verdicts=[
            TextVerdict(
                verdict=one.verdict,
                probabilities={name: round(p, 4) for name, p in one.probabilities.items()},
                about=list(one.about) if body.about else None,
                reason=one.reason or None,
            )
            for one in found
        ],
    )


def _verdicts(body: VerdictRequest, condition: str | None) -> tuple[str, list[Verdict]]:
    # Slow to import.
    from condsim.model.judge import load_judge

    judge = load_judge()
    first, second = ([pair[side] for pair in body.pairs] for side in (0, 1))
    return judge.name, judge.verdict(first, second, condition, about=body.about)
