"""The rows of the annotation store."""

from __future__ import annotations

from typing import NamedTuple

from condsim.construction.annotation.stages import Answer, Work

__all__ = ["Annotation", "PoolMember", "Project", "Proposal", "StoredWork"]


class Project(NamedTuple):
    """Where a stage is annotated.

    Attributes:
        server: Base URL of the Label Studio server.
        project: Number of the project there.
        source: What its annotations are kept under; two projects never share one, even where a
            server that was set up anew gives the same number.
        annotators: Answers wanted for each item.
        anyone: Whether answers count whoever gives them; else only those of the pool.
    """

    server: str
    project: int
    source: str
    annotators: int
    anyone: bool


class StoredWork(NamedTuple):
    """An item that was given out.

    Attributes:
        work: The item.
        task: Its number on the server; None where it is not known to be there.
    """

    work: Work
    task: int | None


class Annotation(NamedTuple):
    """One answer of one annotator to one item.

    Attributes:
        source: The project on a server, or ``"mturk"``.
        annotation: Its id there.
        item: The item.
        annotator: Who gave it.
        answer: What.
        seconds: Time it took; None where it is not known.
        created: When it was first given, ISO 8601.
        updated: When it was last changed.
        prefilled_by: The model whose answer was on the page, changed or not; empty for none.
        cancelled: Whether the annotator skipped the item.
    """

    source: str
    annotation: str
    item: str
    annotator: str
    answer: Answer
    seconds: float | None
    created: str
    updated: str
    prefilled_by: str = ""
    cancelled: bool = False


class Proposal(NamedTuple):
    """What a model says of an item, for annotators to start from."""

    item: str
    model: str
    answer: Answer
    sent: bool = False


class PoolMember(NamedTuple):
    """Whether the answers of an annotator are taken, and why."""

    annotator: str
    accepted: bool
    decided_by: str
    condition_score: float | None = None
    rating_score: float | None = None
