"""Hands out the items of a stage on a server, fetches the answers, and counts the progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from condsim.annotation.label_studio import ITEM, LabelStudioServer, Prediction, RemoteTask
from condsim.annotation.outcome import UNKNOWN, outcome_of
from condsim.annotation.stages import NO_HINTS, Item, Stage, hints_of
from condsim.annotation.store import Annotation, AnnotationStore, Project
from condsim.cache import sole_process
from condsim.errors import InputError

_AT_ONCE = 500  # predictions in one request

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
    server.count_annotations(project.project)  # refuses one that is not there
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
    for start in range(0, len(new), _AT_ONCE):  # what was sent before a break is not sent again
        some = new[start : start + _AT_ONCE]
        server.add_predictions(
            project, stage, [Prediction(task, one.model, one.answer) for one, task in some]
        )
        with store.changes():
            store.put_proposals(stage, [one._replace(sent=True) for one, _ in some])
    return len(new)


MTURK = "mturk"
"""Server and source of annotations from Mechanical Turk."""


@dataclass(frozen=True)
class Pulled:
    """What a pull brought."""

    annotations: int  # on the server, of items of the stage
    new: int  # not in the store before
    changed: int  # edited since
    removed: int  # deleted on the server; they stay in the store and do not count
    foreign: int  # of tasks that condsim did not push; left alone

    @classmethod
    def between(
        cls,
        before: Mapping[str, Annotation],
        found: Mapping[str, Annotation],
        *,
        removed: int = 0,
        foreign: int = 0,
    ) -> Pulled:
        """Compares annotations by their ids."""
        return cls(
            annotations=len(found),
            new=len(found.keys() - before.keys()),
            changed=sum(before.get(key, one) != one for key, one in found.items()),
            removed=removed,
            foreign=foreign,
        )


def pull(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> Pulled:
    """Fetches the annotations of a stage into the store, all of them or, on an error, none.

    Args:
        server: The server, of `open_server`.

    Raises:
        InputError: If the project is gone, the token is refused, or two accounts that gave answers
            have the same name.
        BackendError: If the server does not answer.
    """
    project = project_on(store, server, stage)
    items = store.items(stage)
    tasks = server.tasks(project.project)
    ours = [(item, task) for task in tasks if (item := task.item) is not None and item in items]
    names = _names([task for _, task in ours], server.accounts(), server.url)
    with store.changes():
        before = {one.annotation: one for one in store.annotations(stage, source=project.source)}
        found = {
            one.key: Annotation(
                project.source, one.key, item, _annotator(one.key, names, one.account, before),
                *one[2:],
            )
            for item, task in ours
            for one in task.answers
        }  # fmt: skip
        on_server = {item for item, _ in ours}
        gone = [key for key, one in before.items() if key not in found and one.item in on_server]
        store.put_annotations(stage, (one for key, one in found.items() if before.get(key) != one))
        store.set_removed(stage, project.source, gone)
    foreign = sum(len(task.answers) for task in tasks if task.item not in items)
    return Pulled.between(before, found, removed=len(gone), foreign=foreign)


def give_hints(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> int:
    """Shows the hints at written conditions on the pages of their pairs, where they can be edited.

    Args:
        store: The store, just pulled.
        server: The server, of `open_server`.
        stage: ``"conditions"``.

    Raises:
        InputError: If the stage has no conditions to write, or its project is gone.
        BackendError: If the server does not answer.
    """
    if stage != "conditions":
        raise InputError(f"Hints are about written conditions; the stage {stage!r} shows none.")
    project_on(store, server, stage)
    counted = outcome_of(store, stage).counted
    changed = 0
    for item, one in store.items(stage).items():
        lines = [
            f"“{text}”: {hint.text}"
            for given in counted[item]
            for text in (given.answer.high, given.answer.low)
            for hint in hints_of(text or "", one.shown["sentence1"], one.shown["sentence2"])
        ]
        shown = dict(one.shown) | {"hints": "\n".join(lines) or NO_HINTS}
        if one.task is None or shown == one.shown:
            continue
        server.change_task(one.task, {ITEM: item, **shown})
        with store.changes():
            store.set_shown(stage, item, shown)
        changed += 1
    return changed


def _names(tasks: list[RemoteTask], accounts: dict[int, str], url: str) -> dict[int, str]:
    """The names of the accounts that gave answers; two accounts must not share one."""
    active = {answer.account for task in tasks for answer in task.answers}
    by_name: dict[str, list[int]] = defaultdict(list)
    for account in sorted(accounts.keys() & active):
        by_name[accounts[account]].append(account)
    for name, numbers in by_name.items():
        if len(numbers) > 1:
            listed = " and ".join(map(str, numbers))
            raise InputError(
                f"Accounts {listed} on {url} both have the name {name!r}, and each annotator must "
                "have one of their own. Give one of them another e-mail address in Label Studio "
                "and pull again; nothing was changed."
            )
    return {numbers[0]: name for name, numbers in by_name.items()}


def _annotator(
    key: str, names: dict[int, str], account: int | None, before: Mapping[str, Annotation]
) -> str:
    """Who gave an annotation; where the account is gone, the name that was known."""
    if account is not None and account in names:
        return names[account]
    return before[key].annotator if key in before else UNKNOWN


@dataclass(frozen=True)
class StageStatus:
    """How far a stage is."""

    items: int  # handed out
    wanted: int  # answers for each; 0 for no limit
    done: int  # items with as many
    counted: int  # answers that count
    people: int  # annotators who gave them
    set_aside: tuple[tuple[str, int], ...]  # answers that do not count: (reason, number)
    proposals: tuple[tuple[str, int], ...]  # (model, items it has answered), by name
    waiting: int | None  # annotations on the server that were not pulled; None if not asked


def stage_status(
    store: AnnotationStore, stage: Stage, server: LabelStudioServer | None
) -> StageStatus:
    """Measures how far a stage is.

    Args:
        server: Asked for annotations that were not pulled, unless the stage is on Mechanical Turk;
            not asked if None.

    Raises:
        InputError: If the project is gone, or on another server.
        BackendError: If the server does not answer.
    """
    outcome = outcome_of(store, stage)
    counted = [one for given in outcome.counted.values() for one in given]
    waiting, project = None, store.project(stage)
    if server is not None and project is not None and project.server != MTURK:
        project = project_on(store, server, stage)
        pulled = store.annotations(stage, source=project.source)
        known = sum(not one.cancelled for one in pulled)
        waiting = max(0, server.count_annotations(project.project) - known)
    return StageStatus(
        items=len(outcome.counted),
        wanted=outcome.wanted,
        done=outcome.done,
        counted=len(counted),
        people=len({one.annotator for one in counted}),
        set_aside=outcome.set_aside,
        proposals=tuple(sorted(Counter(one.model for one in store.proposals(stage)).items())),
        waiting=waiting,
    )
