"""A server in memory and a store that hands out a few rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from tests.commands import succeed

from condsim.errors import InputError
from condsim_annotation.exchange import ITEM, PushOptions, RemoteTask, push_items
from condsim_annotation.outcome import decide_by_hand
from condsim_annotation.records import Condition
from condsim_annotation.stages import TaskAnswer, verification_items
from condsim_annotation.store import Annotation, AnnotationStore, Proposal


@dataclass
class FakeServer:
    """The requests of condsim, and actions of people; `names` are the accounts."""

    url: str = "http://localhost:8080"
    names: dict[int, str] = field(default_factory=lambda: {1: "ann", 2: "bob", 3: "cleo"})
    projects: dict[int, dict[int, RemoteTask]] = field(default_factory=dict)
    shown: dict[int, dict[str, str]] = field(default_factory=dict)
    predictions: list[tuple[int, Proposal]] = field(default_factory=list)
    # Tasks, or batches of predictions, before the connection is lost.
    fails_after: int | None = None
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def create_project(self, stage, *, title, annotators):
        number = next(self._numbers)
        self.projects[number] = {}
        return number

    def count_annotations(self, project):
        return sum(len(task.answers) for task in self.tasks(project))

    def tasks(self, project):
        if project not in self.projects:
            raise InputError(f"Project {project} is not on {self.url}")
        return copy.deepcopy(list(self.projects[project].values()))

    def add_tasks(self, project, tasks):
        for index, task in enumerate(tasks):
            if index == self.fails_after:
                raise ConnectionError("lost")
            number = next(self._numbers)
            self.projects[project][number] = RemoteTask(number, task.get(ITEM), ())
            self.shown[number] = dict(task)

    def accounts(self):
        return {str(account): name for account, name in self.names.items()}

    def add_predictions(self, project, stage, proposals):
        if len(self.predictions) == self.fails_after:
            raise ConnectionError("lost")
        self.predictions += proposals

    def change_task(self, task, variables):
        self.shown[task] = dict(variables)

    def submit(self, task, account, answer, *, minute=0, prefilled_by="", canceled=False):
        """Answer a task; return the key of the annotation."""
        key = f"key-{next(self._numbers)}"
        time = f"2026-01-01T00:{minute:02}:00Z"
        name = "" if account is None else str(account)
        row = Annotation("", key, "", name, answer, 3.0, time, time, prefilled_by, canceled)
        for tasks in self.projects.values():
            if task in tasks:
                new = replace(row, item=str(tasks[task].item))
                tasks[task] = tasks[task]._replace(answers=(*tasks[task].answers, new))
        return key

    def change_answers(self, change):
        """Replace each answer by ``change(answer)``; None deletes it."""
        for tasks in self.projects.values():
            for number, task in tasks.items():
                answers = [new for row in task.answers if (new := change(row)) is not None]
                tasks[number] = task._replace(answers=tuple(answers))

    def edit(self, key: str, answer: TaskAnswer) -> None:
        new = {"answer": answer, "updated": "2026-02-01T00:00:00Z"}
        self.change_answers(lambda row: replace(row, **new) if row.annotation == key else row)

    def delete(self, key: str) -> None:
        self.change_answers(lambda row: None if row.annotation == key else row)

    def forget(self, account: int) -> None:
        """Delete an account; its annotations stay without a name."""
        name = str(account)
        del self.names[account]
        self.change_answers(
            lambda row: replace(row, annotator="") if row.annotator == name else row
        )


@pytest.fixture
def server():
    """A server with the accounts 1 ann, 2 bob, 3 cleo."""
    return FakeServer()


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
    """Those conditions pushed for two annotators each; the tasks in order."""
    decide_by_hand(store, accept=("ann", "bob", "cleo"))
    options = PushOptions(annotators=2)
    push_items(store, server, "verification", verification_items(written), options)
    return [item.task for item in store.items("verification").values()]


@pytest.fixture
def build() -> Callable[..., str]:
    """Runs `condsim build`; returns what it prints, and raises the error that ends it."""
    return lambda *words: " ".join(succeed("build", *words).output.split())
