"""The page to label texts or pairs, and the requests that it sends: one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from condsim.labeling import Session
from condsim.pair_labeling import PairSession
from condsim.serving.errors import RequestError


class LabelAnswer(BaseModel):
    """The answer to a text, or a pair: its value, ``skip`` or ``does not say``."""

    model_config = ConfigDict(extra="forbid")

    texts: list[Annotated[str, Field(max_length=100_000)]] = Field(min_length=1, max_length=2)
    value: str = Field(max_length=200)


class LabelValue(BaseModel):
    """A value, and how many texts have it."""

    value: str
    texts: int


class LabelState(BaseModel):
    """The next text or pair, and what was learned so far; figures are percentages."""

    condition: str
    pairs: bool
    texts: list[str]
    values: list[LabelValue]
    labeled: int
    line: str
    enough: bool
    threshold: str
    files: list[str]
    history: list[tuple[int, float, float]]
    auc: float | None = None
    low: float | None = None
    high: float | None = None
    zero_shot: float | None = None


class LabelDesk:
    """A session that the requests of one page share; they wait for each other."""

    def __init__(self, session: Session[Any]) -> None:
        self._session = session
        self._lock = asyncio.Lock()
        self._key: Any = None

    async def run(self, work: Callable[[], None]) -> LabelState:
        """Do work on the session on another thread, and describe the session after it."""
        async with self._lock:
            await asyncio.to_thread(work)
            return await asyncio.to_thread(self._state)

    def answer(self, body: LabelAnswer) -> None:
        """Store an answer; a repeated request changes nothing.

        Raises:
            RequestError: If there is another answer, from another page; it is kept.
        """
        is_pairs = isinstance(self._session, PairSession)
        if len(body.texts) != 1 + is_pairs:
            raise RequestError(400, f"An answer here is about {1 + is_pairs} of 'texts'.")
        key = self._session.key_of(body.texts)
        value, mark = self._session.answers.get(key, (body.value, ""))
        if (value or mark) != body.value:
            self._key = None
            raise RequestError(409, f"Another page answered {value or mark!r}, and this stays.")
        if key not in self._session.answers:
            self._session.answer(key, body.value)
        self._key = None

    def undo(self) -> None:
        """Take the last answer back, and ask it again."""
        self._key = self._session.undo()

    def _state(self) -> LabelState:
        session, progress = self._session, self._session.progress()
        if self._key is None:
            self._key = session.next()
        state = LabelState(
            condition=session.condition,
            pairs=isinstance(session, PairSession),
            texts=list(() if self._key is None else session.texts_of(self._key)),
            values=[LabelValue(value=name, texts=count) for name, count in progress.values.items()],
            labeled=progress.labeled,
            line=progress.line,
            enough=progress.enough,
            threshold=progress.threshold,
            files=[session.output.name, session.criterion_file.name],
            history=[
                (labels, percent(figures.auc), percent(figures.zero_shot))
                for labels, figures in progress.history.items()
            ],
        )
        if progress.criterion is not None:
            figures = progress.criterion.figures
            for name in ("auc", "low", "high", "zero_shot"):
                setattr(state, name, percent(getattr(figures, name)))
        return state


def percent(share: float) -> float:
    """Return a share in percent, to a tenth."""
    return round(100 * share, 1)


def label_router(desk: LabelDesk) -> APIRouter:
    """Make the routes of a session."""
    router = APIRouter(prefix="/v1/label", include_in_schema=False)

    @router.get("")
    async def state() -> LabelState:
        return await desk.run(lambda: None)

    @router.post("")
    async def answer(body: LabelAnswer) -> LabelState:
        return await desk.run(lambda: desk.answer(body))

    @router.post("/undo")
    async def undo() -> LabelState:
        return await desk.run(desk.undo)

    return router
