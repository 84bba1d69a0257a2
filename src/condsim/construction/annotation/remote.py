"""What condsim asks of an annotation server: the few calls, and what they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from condsim.construction.annotation.stages import Answer, Stage

ITEM = "condsim_item"
"""Name of the task variable that holds the id of an item."""


class RemoteAnswer(NamedTuple):
    """One annotation on the server.

    Attributes:
        key: Its id, the same after an edit and unlike any other.
        account: Number of the account that gave it; None where the account is gone.
        answer: What.
        seconds: Time it took; None where it is not known.
        created: ISO 8601.
        updated: ISO 8601.
        prefilled_by: The model whose prediction was on the page, changed or not; empty for none.
        cancelled: Whether the annotator skipped the task.
    """

    key: str
    account: int | None
    answer: Answer
    seconds: float | None
    created: str
    updated: str
    prefilled_by: str
    cancelled: bool


class RemoteTask(NamedTuple):
    """One task on the server; ``item`` is None for a task that condsim did not push."""

    task: int
    item: str | None
    answers: tuple[RemoteAnswer, ...]


@dataclass(frozen=True)
class Prediction:
    """What annotators of a task start from.

    Attributes:
        task: The task.
        model: Name of the model.
        answer: Its answer.
    """

    task: int
    model: str
    answer: Answer


class ProjectState(NamedTuple):
    """What the server says of a project.

    Attributes:
        title: Its title.
        tasks: Number of tasks.
        annotations: Number of annotations, skipped ones left out.
    """

    title: str
    tasks: int
    annotations: int


class AnnotationServer(Protocol):
    """A server on which people annotate. Every call may raise InputError or BackendError."""

    @property
    def url(self) -> str:
        """Base URL, without a slash at its end."""

    def create_project(self, stage: Stage, *, title: str, annotators: int) -> int:
        """Makes the project of a stage and gives its number."""

    def state(self, project: int) -> ProjectState:
        """Asks for the state of a project."""

    def tasks(self, project: int) -> list[RemoteTask]:
        """Fetches all tasks of a project with their annotations."""

    def add_tasks(self, project: int, tasks: Sequence[Mapping[str, str]]) -> None:
        """Adds tasks: the variables of each, `ITEM` among them."""

    def accounts(self) -> dict[int, str]:
        """Fetches the names of the accounts by number."""

    def add_predictions(
        self, project: int, stage: Stage, predictions: Sequence[Prediction]
    ) -> None:
        """Adds predictions and shows those of the last one's model to annotators."""

    def change_task(self, task: int, variables: Mapping[str, str]) -> None:
        """Replaces the variables of a task."""
