"""Hands out the items of a stage: a project on the server that holds each item once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from condsim.construction.annotation.server import ITEM, LabelStudioServer, Prediction
from condsim.construction.annotation.stages import Item, Stage
from condsim.construction.annotation.store import AnnotationStore, Project
from condsim.construction.annotation.written import outcome_of
from condsim.errors import InputError
from condsim.kept import sole_process

ANNOTATORS: dict[Stage, int] = {"qualification": 1000, "conditions": 1, "verification": 3}
"""Answers wanted for each item by default; in a qualification everyone answers everything."""


@dataclass(frozen=True)
class Pushed:
    """What a push did."""

    project: int  # number of the project
    made: bool  # whether the project was made now
    items: int  # of the stage, those of earlier pushes too
    added: int  # tasks added to the project
    repeated: int  # rows of the input that were already there, or twice in it
    predictions: int  # answers of models handed to annotators to start from


def push(
    store: AnnotationStore,
    server: LabelStudioServer,
    stage: Stage,
    items: Iterable[Item],
    *,
    title: str | None = None,
    annotators: int | None = None,
    anyone: bool = False,
    again: bool = False,
) -> Pushed:
    """Hands out items; what is there stays, so a push that was interrupted goes on.

    Args:
        server: The server, of `open_server`.
        stage: ``"qualification"``, ``"conditions"`` or ``"verification"``.
        items: The items, of `items_to_annotate`.
        title: Title of a new project; the folder's name and the stage if None.
        annotators: Answers wanted for each item; 1 for conditions and 3 for verification if None.
        anyone: Whether everybody's answers count, or only those of the pool.
        again: Whether to make a new project for the items that are not done.

    Raises:
        InputError: If there are no items, nobody is in the pool, or the stage was pushed to
            another server or with another number of annotators.
        BackendError: If the server does not answer.
    """
    items = list(items)
    with sole_process(store.path.parent / "push"):
        project = store.project(stage)
        check_push(store, stage, items, annotators=annotators, anyone=anyone, again=again)
        made = project is None or again
        if project is None or again:
            wanted = annotators or (project.annotators if project else ANNOTATORS[stage])
            number = server.create_project(
                stage,
                title=(title or f"{store.path.resolve().parent.name}: {stage}")[:50],
                annotators=wanted,
            )
            source = _source(store, server.url, number)
            everyone = anyone or stage == "qualification"
            project = Project(server.url, number, source, wanted, everyone)
            with store.changes():
                store.set_project(stage, project)
                store.set_tasks(stage, [(item, None) for item in store.items(stage)])
        else:
            project = project_on(store, server, stage)
        with store.changes():
            fresh = store.add_items(stage, items)
        added = _add_tasks(store, server, stage, project.project)
        predictions = _send_proposals(store, server, stage, project.project)
    return Pushed(
        project.project,
        made,
        items=len(store.items(stage)),
        added=added,
        repeated=len(items) - fresh,
        predictions=predictions,
    )


def project_on(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> Project:
    """Gives the project of a stage, made sure that it is on this server."""
    project = store.project(stage)
    if project is None:
        raise InputError(
            f"The stage {stage!r} was not pushed from {store.path.parent}: 'condsim build push "
            f"{stage}' comes first."
        )
    if project.server != server.url:
        raise InputError(
            f"The stage {stage!r} was pushed to {project.server}, not to {server.url}. Give that "
            "--server, or push with --again to make a new project for what is not done."
        )
    server.state(project.project)
    return project


def _source(store: AnnotationStore, url: str, number: int) -> str:
    """Names a project unlike any that annotations were taken from."""
    source, known = f"{url}#{number}", store.sources()
    while source in known:  # a server that was set up anew gives the same number
        source += "'"
    return source


def check_push(
    store: AnnotationStore,
    stage: Stage,
    items: Sequence[Item],
    *,
    annotators: int | None,
    anyone: bool,
    again: bool = False,
) -> None:
    """Refuses to hand out items that no answer could count for."""
    project = store.project(stage)
    if not items and not store.items(stage):
        raise InputError(f"There is nothing to annotate: the input of {stage!r} has no rows.")
    if project is not None and not again and annotators not in (None, project.annotators):
        raise InputError(
            f"The stage {stage!r} was pushed for {project.annotators} annotators an item, not "
            f"{annotators}. Leave the number out, or push with --again."
        )
    if stage == "qualification" or anyone or (project is not None and project.anyone):
        return
    if not any(member.accepted for member in store.pool().values()):
        raise InputError(
            "Nobody is in the pool, so no answer would count. Score the test with 'condsim build "
            "qualify', name people with its --accept, or push with --anyone."
        )


def _add_tasks(
    store: AnnotationStore, server: LabelStudioServer, stage: Stage, project: int
) -> int:
    """Adds the items that the project lacks, and writes which task each item is."""
    outcome = outcome_of(store, stage)
    items = store.items(stage)
    there = {task.item for task in server.tasks(project)}
    missing = [
        {ITEM: item, **one.shown}
        for item, one in items.items()
        if item not in there and not outcome.has_enough(item)
    ]
    server.add_tasks(project, missing)
    tasks = {task.item: task.task for task in server.tasks(project)}
    with store.changes():
        store.set_tasks(stage, [(item, tasks.get(item)) for item in items])
    return len(missing)


def _send_proposals(
    store: AnnotationStore, server: LabelStudioServer, stage: Stage, project: int
) -> int:
    items = store.items(stage)
    new = [
        (one, task)
        for one in store.proposals(stage)
        if not one.sent and one.item in items and (task := items[one.item].task) is not None
    ]
    server.add_predictions(
        project, stage, [Prediction(task, one.model, one.answer) for one, task in new]
    )
    with store.changes():
        store.put_proposals(stage, [one._replace(sent=True) for one, _ in new])
    return len(new)
