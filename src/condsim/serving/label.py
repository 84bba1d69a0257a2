"""The page to label texts, and the requests that it sends: one text at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from condsim.labeling import LabelSession

T = TypeVar("T")


class LabelAnswer(BaseModel):
    """The answer to a text: its value, ``skip`` or ``does not say``."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=100_000)
    value: str = Field(max_length=200)


class LabelValue(BaseModel):
    """A value, and how many texts have it."""

    value: str
    texts: int


class LabelState(BaseModel):
    """The next text, and what was learned so far; figures are percentages."""

    condition: str
    text: str | None
    values: list[LabelValue]
    labeled: int
    remaining: int
    line: str
    enough: bool
    auc: float | None = None
    low: float | None = None
    high: float | None = None
    zero_shot: float | None = None


class LabelDesk:
    """A session that the requests of one page share; they wait for each other."""

    def __init__(self, session: LabelSession) -> None:
        self._session = session
        self._lock = asyncio.Lock()
        self._text: str | None = None

    async def run(self, work: Callable[[], T]) -> LabelState:
        """Do work on the session on another thread, and describe the session after it."""
        async with self._lock:
            await asyncio.to_thread(work)
            return await asyncio.to_thread(self._state)

    def answer(self, body: LabelAnswer) -> None:
        """Store an answer; a repeated request changes nothing."""
        self._session.answer(body.text, body.value)
        self._text = None

    def undo(self) -> None:
        """Take the last answer back, and show its text again."""
        self._text = self._session.undo()

    def _state(self) -> LabelState:
        session, progress = self._session, self._session.progress()
        if self._text is None:
            self._text = session.next()
        state = LabelState(
            condition=session.condition,
            text=self._text,
            values=[LabelValue(value=name, texts=count) for name, count in progress.values.items()],
            labeled=progress.labeled,
            remaining=progress.remaining,
            line=progress.line,
            enough=progress.enough,
        )
        if progress.criterion is not None:
            figures = progress.criterion.figures
            state.auc, state.zero_shot = (
                round(100 * figures.auc, 1),
                round(100 * figures.zero_shot, 1),
            )
            state.low, state.high = round(100 * figures.low, 1), round(100 * figures.high, 1)
        return state


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
