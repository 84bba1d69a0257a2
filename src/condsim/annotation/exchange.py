"""Exchange with a Label Studio server: push items, pull annotations, progress of a stage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from condsim.annotation.label_studio import ITEM, LabelStudioServer, Prediction, RemoteTask
from condsim.annotation.outcome import UNKNOWN, stage_outcome
from condsim.annotation.stages import DEFAULT_ANNOTATORS, NO_HINTS, Item, Stage, hints_of
from condsim.annotation.store import Annotation, AnnotationStore, Project
from condsim.cache import sole_process
from condsim.errors import InputError

_PREDICTIONS_PER_REQUEST = 500

MTURK = "mturk"
"""Server and source of annotations from Mechanical Turk."""


class PushReport(NamedTuple):
    """Number of the project, all items of the stage, and counts of the push."""

    project: int
    is_new: bool
    items: int
    added: int
    repeated: int
    predictions: int


def push_items(
    store: AnnotationStore,
    server: LabelStudioServer,
    stage: Stage,
    items: Iterable[Item],
    *,
    title: str | None = None,
    annotators: int | None = None,
    anyone: bool = False,
    again: bool = False,
) -> PushReport:
    """Push items to the project of a stage; tasks that are there stay.

    Args:
        items: See `items_to_annotate`.
        title: Title of a new project; the folder's name and the stage if None.
        annotators: Answers for each item; that of the project or the stage if None.
        anyone: Whether answers of people outside the pool count.
        again: Whether to create a new project for the unfinished items.
    """
    items = list(items)
    with sole_process(store.path.parent / "push"):
        check_push(store, stage, items, annotators=annotators, anyone=anyone, again=again)
        earlier = store.project(stage)
        is_new = earlier is None or again
        if is_new:
            answers = annotators or (earlier.annotators if earlier else DEFAULT_ANNOTATORS[stage])
            project = _create_project(store, server, stage, title, answers, anyone=anyone)
        else:
            project = project_on(store, server, stage)
        with store.changes():
            fresh = store.add_items(stage, items)
        added = _add_missing_tasks(store, server, stage, project.project)
        predictions = _send_proposals(store, server, stage, project.project)
    return PushReport(
        project.project,
        is_new,
        items=len(store.items(stage)),
        added=added,
        repeated=len(items) - fresh,
        predictions=predictions,
    )


def _create_project(
    store: AnnotationStore,
    server: LabelStudioServer,
    stage: Stage,
    title: str | None,
    annotators: int,
    *,
    anyone: bool,
) -> Project:
    title = (title or f"{store.path.resolve().parent.name}: {stage}")[:50]
    number = server.create_project(stage, title=title, annotators=annotators)
    source = f"{server.url}#{number}"
    # A server that was reinstalled gives the same number again.
    while source in store.sources():
        source += "'"
    everyone = anyone or stage == "qualification"
    project = Project(server.url, number, source, annotators, everyone)
    with store.changes():
        store.set_project(stage, project)
        store.set_tasks(stage, [(item, None) for item in store.items(stage)])
    return project


def check_push(
    store: AnnotationStore,
    stage: Stage,
    items: Sequence[Item],
    *,
    annotators: int | None,
    anyone: bool,
    again: bool = False,
) -> None:
    """Reject items that no answer could count for."""
    project = store.project(stage)
    if not items and not store.items(stage):
        raise InputError(f"There is nothing to annotate: the input of {stage!r} has no rows.")
    if project is not None and not again and annotators not in (None, project.annotators):
        raise InputError(
            f"The stage {stage!r} was pushed for {project.annotators} annotators an item, not "
            f"{annotators}. Omit the number, or push with --again."
        )
    if stage == "qualification" or anyone or (project is not None and project.anyone):
        return
    if not any(member.accepted for member in store.pool().values()):
        raise InputError(
            "The pool is empty, so no answer would count. Score the test with 'condsim build "
            "qualify', accept people with its --accept, or push with --anyone."
        )


def project_on(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> Project:
    """Return the project of a stage, after a check that it is on this server."""
    project = store.project(stage)
    if project is None:
        raise InputError(
            f"The stage {stage!r} was not pushed from {store.path.parent}; run 'condsim build push "
            f"{stage}' first."
        )
    if project.server != server.url:
        raise InputError(
            f"The stage {stage!r} was pushed to {project.server}, not to {server.url}. Use that "
            "--server, or push with --again."
        )
    # Raises an error if the project was deleted.
    server.count_annotations(project.project)
    return project


def _add_missing_tasks(
    store: AnnotationStore, server: LabelStudioServer, stage: Stage, project: int
) -> int:
    """Add unfinished items that the project lacks, and store the task of each item."""
    outcome = stage_outcome(store, stage)
    items = store.items(stage)
    present = {task.item for task in server.tasks(project)}
    missing = [
        {ITEM: item_id, **item.shown}
        for item_id, item in items.items()
        if item_id not in present and not outcome.has_enough(item_id)
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
    unsent = []
    for proposal in store.proposals(stage):
        task = items[proposal.item].task if proposal.item in items else None
        if not proposal.sent and task is not None:
            unsent.append((proposal, task))
    for start in range(0, len(unsent), _PREDICTIONS_PER_REQUEST):
        batch = unsent[start : start + _PREDICTIONS_PER_REQUEST]
        server.add_predictions(
            project,
            stage,
            [Prediction(task, proposal.model, proposal.answer) for proposal, task in batch],
        )
        # Marking each batch prevents sending it again after an interruption.
        with store.changes():
            store.put_proposals(stage, [proposal._replace(sent=True) for proposal, _ in batch])
    return len(unsent)


class PullReport(NamedTuple):
    """Counts of a pull; foreign annotations are those of tasks that condsim did not push."""

    annotations: int
    new: int
    changed: int
    removed: int
    foreign: int


def store_annotations(
    store: AnnotationStore,
    stage: Stage,
    source: str,
    annotations: Mapping[str, Annotation],
    *,
    removed: Sequence[str],
    foreign: int,
) -> PullReport:
    """Store what a source has, by the ids of the annotations; call it inside `changes`."""
    before = {row.annotation: row for row in store.annotations(stage, source=source)}
    differing = [row for key, row in annotations.items() if before.get(key) != row]
    store.put_annotations(stage, differing)
    store.set_removed(stage, source, removed)
    new = len(annotations.keys() - before.keys())
    changed = len(differing) - new
    return PullReport(len(annotations), new, changed, len(removed), foreign)


def pull_annotations(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> PullReport:
    """Fetch the annotations of a stage into the store, all of them or, on an error, none."""
    project = project_on(store, server, stage)
    items = store.items(stage)
    tasks = server.tasks(project.project)
    own_tasks = [task for task in tasks if task.item in items]
    names = _account_names(own_tasks, server.accounts(), server.url)
    with store.changes():
        before = {row.annotation: row for row in store.annotations(stage, source=project.source)}
        annotations: dict[str, Annotation] = {}
        for task in own_tasks:
            for answer in task.answers:
                # An account that was deleted keeps the name that it had.
                name = names.get(answer.account) if answer.account is not None else None
                if name is None:
                    name = before[answer.key].annotator if answer.key in before else UNKNOWN
                annotations[answer.key] = Annotation(
                    project.source, answer.key, str(task.item), name, *answer[2:]
                )
        own_items = {task.item for task in own_tasks}
        removed = [
            key for key, row in before.items() if key not in annotations and row.item in own_items
        ]
        foreign = sum(len(task.answers) for task in tasks if task.item not in items)
        return store_annotations(
            store, stage, project.source, annotations, removed=removed, foreign=foreign
        )


def _account_names(tasks: list[RemoteTask], accounts: dict[int, str], url: str) -> dict[int, str]:
    """Return the names of the accounts that gave answers; they must differ."""
    active = {answer.account for task in tasks for answer in task.answers}
    by_name: dict[str, list[int]] = defaultdict(list)
    for account in sorted(accounts.keys() & active):
        by_name[accounts[account]].append(account)
    for name, numbers in by_name.items():
        if len(numbers) > 1:
            raise InputError(
                f"Accounts {' and '.join(map(str, numbers))} on {url} both have the name {name!r}. "
                "Give one of them another e-mail address in Label Studio and pull again; nothing "
                "was changed."
            )
    return {numbers[0]: name for name, numbers in by_name.items()}


def show_hints(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> int:
    """Show hints about pulled conditions on the pages of their pairs; return the pages changed."""
    if stage != "conditions":
        raise InputError(f"Hints are about written conditions; the stage {stage!r} has none.")
    project_on(store, server, stage)
    counted = stage_outcome(store, stage).counted
    changed = 0
    for item_id, item in store.items(stage).items():
        sentences = item.shown["sentence1"], item.shown["sentence2"]
        lines = []
        for annotation in counted[item_id]:
            for text in (annotation.answer.high or "", annotation.answer.low or ""):
                lines += [f"“{text}”: {hint.text}" for hint in hints_of(text, *sentences)]
        texts = dict(item.shown) | {"hints": "\n".join(lines) or NO_HINTS}
        if item.task is None or texts == item.shown:
            continue
        server.change_task(item.task, {ITEM: item_id, **texts})
        with store.changes():
            store.set_shown(stage, item_id, texts)
        changed += 1
    return changed


class StageStatus(NamedTuple):
    """Progress of a stage.

    Attributes:
        target: Answers for each item; 0 for no limit.
        done: Items with that many.
        counted: Answers that count.
        set_aside: Answers that do not count: (reason, number).
        proposals: (model, items it has answered).
        waiting: Annotations on the server that were not pulled; None if it was not asked.
    """

    items: int
    target: int
    done: int
    counted: int
    people: int
    set_aside: tuple[tuple[str, int], ...]
    proposals: tuple[tuple[str, int], ...]
    waiting: int | None


def stage_status(
    store: AnnotationStore, stage: Stage, server: LabelStudioServer | None
) -> StageStatus:
    """Measure the progress of a stage; the server, if given, counts annotations not pulled."""
    outcome = stage_outcome(store, stage)
    counted = [row for rows in outcome.counted.values() for row in rows]
    waiting, project = None, store.project(stage)
    if server is not None and project is not None and project.server != MTURK:
        project = project_on(store, server, stage)
        pulled = store.annotations(stage, source=project.source)
        finished = sum(not row.cancelled for row in pulled)
        waiting = max(0, server.count_annotations(project.project) - finished)
    models = Counter(proposal.model for proposal in store.proposals(stage))
    return StageStatus(
        items=len(outcome.counted),
        target=outcome.target,
        done=outcome.done,
        counted=len(counted),
        people=len({row.annotator for row in counted}),
        set_aside=outcome.set_aside,
        proposals=tuple(sorted(models.items())),
        waiting=waiting,
    )
