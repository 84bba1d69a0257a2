"""A server in memory and a store that hands out a few rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest

from condsim.annotation.exchange import push
from condsim.annotation.label_studio import ITEM, Prediction, RemoteAnswer, RemoteTask
from condsim.annotation.outcome import decide_by_hand
from condsim.annotation.stages import Answer, Stage, verification_items
from condsim.annotation.store import AnnotationStore
from condsim.errors import InputError
from condsim.rows.records import Condition


@dataclass
class FakeServer:
    """What condsim asks a server for, and what people do there; `names` are its accounts."""

    url: str = "http://localhost:8080"
    names: dict[int, str] = field(default_factory=lambda: {1: "ann", 2: "bob", 3: "cleo"})
    projects: dict[int, dict[int, RemoteTask]] = field(default_factory=dict)
    shown: dict[int, dict[str, str]] = field(default_factory=dict)  # by task
    predictions: list[Prediction] = field(default_factory=list)
    fails_after: int | None = None  # tasks added before the connection is lost
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def create_project(self, stage: Stage, *, title: str, annotators: int) -> int:
        number = next(self._numbers)
        self.projects[number] = {}
        return number

    def count_annotations(self, project: int) -> int:
        return sum(len(task.answers) for task in self.tasks(project))

    def tasks(self, project: int) -> list[RemoteTask]:
        if project not in self.projects:
            raise InputError(f"Project {project} is not on {self.url}")
        return copy.deepcopy(list(self.projects[project].values()))

    def add_tasks(self, project: int, tasks: Sequence[Mapping[str, str]]) -> None:
        for place, task in enumerate(tasks):
            if place == self.fails_after:
                raise ConnectionError("lost")
            number = next(self._numbers)
            self.projects[project][number] = RemoteTask(number, task.get(ITEM), ())
            self.shown[number] = dict(task)

    def accounts(self) -> dict[int, str]:
        return dict(self.names)

    def add_predictions(
        self, project: int, stage: Stage, predictions: Sequence[Prediction]
    ) -> None:
        self.predictions += predictions

    def change_task(self, task: int, variables: Mapping[str, str]) -> None:
        self.shown[task] = dict(variables)

    def submit(
        self,
        task: int,
        account: int | None,
        answer: Answer,
        *,
        minute: int = 0,
        prefilled_by: str = "",
        cancelled: bool = False,
    ) -> str:
        """Somebody answers a task; gives the key of the annotation."""
        key = f"key-{next(self._numbers)}"
        at = f"2026-01-01T00:{minute:02}:00Z"
        one = RemoteAnswer(key, account, answer, 3.0, at, at, prefilled_by, cancelled)
        self._replace(task, lambda answers: (*answers, one))
        return key

    def edit(self, key: str, answer: Answer) -> None:
        for task in self._all():
            self._replace(
                task,
                lambda answers: tuple(
                    one._replace(answer=answer, updated="2026-02-01T00:00:00Z")
                    if one.key == key
                    else one
                    for one in answers
                ),
            )

    def delete(self, key: str) -> None:
        for task in self._all():
            self._replace(task, lambda answers: tuple(one for one in answers if one.key != key))

    def forget(self, account: int) -> None:
        """An account is deleted; its annotations stay without a name."""
        del self.names[account]
        for task in self._all():
            self._replace(
                task,
                lambda answers: tuple(
                    one._replace(account=None) if one.account == account else one for one in answers
                ),
            )

    def _all(self) -> list[int]:
        return [task for tasks in self.projects.values() for task in tasks]

    def _replace(self, task, change) -> None:
        for tasks in self.projects.values():
            if task in tasks:
                tasks[task] = tasks[task]._replace(answers=change(tasks[task].answers))


@pytest.fixture
def server():
    """A server with the accounts 1 ann, 2 bob, 3 cleo."""
    return FakeServer()


@pytest.fixture
def another_server():
    return FakeServer


@pytest.fixture
def store(tmp_path):
    with AnnotationStore(tmp_path / "annotation", make=True) as opened:
        yield opened


@pytest.fixture
def written():
    """Conditions by Ann for two pairs."""
    return [
        Condition(f"pair{pair}", "A man skis.", f"A dog swims {pair}.", text, intended, "Ann")
        for pair in (1, 2)
        for text, intended in (("The sport", "high"), ("The animal", "low"))
    ]


@pytest.fixture
def verification(store, server, written):
    """Those conditions handed out to two annotators each; gives the tasks in order."""
    decide_by_hand(store, accept=("ann", "bob", "cleo"))
    push(store, server, "verification", verification_items(written), annotators=2)
    return [stored.task for stored in store.items("verification").values()]
