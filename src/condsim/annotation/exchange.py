"""Exchange with a Label Studio server: push items, pull annotations, progress of a stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import NamedTuple

from condsim.annotation.label_studio import ITEM, LabelStudioServer, RemoteTask
from condsim.annotation.outcome import UNKNOWN, stage_outcome
from condsim.annotation.stages import DEFAULT_ANNOTATORS, NO_HINTS, Item, Stage, hints_of
from condsim.annotation.store import Annotation, AnnotationStore, Project
from condsim.cache import sole_process
from condsim.errors import InputError

_PREDICTIONS_PER_REQUEST = 500

MTURK = "mturk"
"""Server and source of annotations from Mechanical Turk."""


class PushOptions(NamedTuple):
    """Title of a new project, and answers for each item; defaults depend on the stage.

    ``anyone``: answers of people outside the pool count; ``again``: make a new project.
    """

    title: str | None = None
    annotators: int | None = None
    anyone: bool = False
    again: bool = False


DEFAULT_OPTIONS = PushOptions()


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
    options: PushOptions = DEFAULT_OPTIONS,
) -> PushReport:
    """Push items, see `items_to_annotate`, to the project of a stage; tasks that are there stay."""
    items = list(items)
    with sole_process(store.path.parent / "push"):
        check_push(store, stage, items, options)
        earlier = store.project(stage)
        is_new = earlier is None or options.again
        if is_new:
            default = earlier.annotators if earlier else DEFAULT_ANNOTATORS[stage]
            answers = options.annotators or default
            title = (options.title or f"{store.path.resolve().parent.name}: {stage}")[:50]
            number = server.create_project(stage, title=title, annotators=answers)
            everyone = options.anyone or stage == "qualification"
            # A server that was reinstalled gives the same number again.
            source = f"{server.url}#{number}#{token_hex(4)}"
            project = Project(server.url, number, source, answers, everyone)
            unsent = [replace(proposal, sent=False) for proposal in store.proposals(stage)]
            store.write(stage, [project, *unsent])
        else:
            number = project_on(store, server, stage).project
        fresh = store.add_items(stage, items)
        added = _add_missing_tasks(store, server, stage, number)
        predictions = _send_proposals(store, server, stage, number)
    total = len(store.items(stage))
    return PushReport(number, is_new, total, added, len(items) - fresh, predictions)


def check_push(
    store: AnnotationStore, stage: Stage, items: Sequence[Item], options: PushOptions
) -> None:
    """Reject items that no answer could count for."""
    project, annotators = store.project(stage), options.annotators
    if not items and not store.items(stage):
        raise InputError(f"There is nothing to annotate: the input of {stage!r} has no rows.")
    if project is not None and not options.again and annotators not in (None, project.annotators):
        raise InputError(
            f"The stage {stage!r} was pushed for {project.annotators} annotators an item, not "
            f"{annotators}. Omit the number, or push with --again."
        )
    if stage == "qualification" or options.anyone or (project is not None and project.anyone):
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
    store.write(stage, [replace(item, task=tasks.get(item.item_id)) for item in items.values()])
    return len(missing)


def _send_proposals(
    store: AnnotationStore, server: LabelStudioServer, stage: Stage, project: int
) -> int:
    tasks = {item.item_id: item.task for item in store.items(stage).values()}
    unsent = []
    for proposal in store.proposals(stage):
        task = tasks.get(proposal.item)
        if not proposal.sent and task is not None:
            unsent.append((task, proposal))
    for start in range(0, len(unsent), _PREDICTIONS_PER_REQUEST):
        batch = unsent[start : start + _PREDICTIONS_PER_REQUEST]
        server.add_predictions(project, stage, batch)
        # Marking each batch prevents sending it again after an interruption.
        store.write(stage, [replace(proposal, sent=True) for _, proposal in batch])
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
    annotations: Mapping[str, Annotation],
    before: Mapping[str, Annotation],
    *,
    removed: Iterable[str],
    foreign: int,
) -> PullReport:
    """Store what a source has by the ids of the annotations, before and now, in one step."""
    differing = [row for key, row in annotations.items() if before.get(key) != row]
    gone = [replace(before[key], removed=True) for key in removed]
    store.write(stage, [*differing, *gone])
    new = len(annotations.keys() - before.keys())
    return PullReport(len(annotations), new, len(differing) - new, len(gone), foreign)


def pull_annotations(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> PullReport:
    """Fetch the annotations of a stage into the store, all of them or, on an error, none."""
    project = project_on(store, server, stage)
    source, items = project.source, store.items(stage)
    tasks = server.tasks(project.project)
    own_tasks = {task.item: task for task in tasks if task.item in items}
    names = _account_names(own_tasks.values(), server.accounts(), server.url)
    before = {row.annotation: row for row in store.annotations(stage, source=source)}
    annotations: dict[str, Annotation] = {}
    for task in own_tasks.values():
        for row in task.answers:
            # An account that was deleted keeps the name that it had.
            earlier = before[row.annotation].annotator if row.annotation in before else UNKNOWN
            name = names.get(row.annotator, earlier)
            annotations[row.annotation] = replace(row, source=source, annotator=name)
    removed = [key for key in before.keys() - annotations.keys() if before[key].item in own_tasks]
    foreign = sum(len(task.answers) for task in tasks if task.item not in items)
    return store_annotations(store, stage, annotations, before, removed=removed, foreign=foreign)


def _account_names(
    tasks: Iterable[RemoteTask], accounts: Mapping[str, str], url: str
) -> dict[str, str]:
    """Return the names of the accounts that gave answers; they must differ."""
    active = {answer.annotator for task in tasks for answer in task.answers}
    by_name: dict[str, str] = {}
    for account in sorted(accounts.keys() & active):
        name = accounts[account]
        twin = by_name.setdefault(name, account)
        if twin != account:
            raise InputError(
                f"Accounts {twin} and {account} on {url} both have the name {name!r}. Give one of "
                "them another e-mail address in Label Studio and pull again; nothing was changed."
            )
    return {account: name for name, account in by_name.items()}


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
        texts = {**item.shown, "hints": "\n".join(lines) or NO_HINTS}
        if item.task is not None and texts != item.shown:
            server.change_task(item.task, {ITEM: item_id, **texts})
            store.write(stage, [replace(item, shown=texts)])
            changed += 1
    return changed


def count_waiting(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> int | None:
    """Count the annotations on the server that were not pulled; None without a project there."""
    project = store.project(stage)
    if project is None or project.server == MTURK:
        return None
    pulled = store.annotations(stage, source=project_on(store, server, stage).source)
    finished = sum(not row.cancelled for row in pulled)
    return max(0, server.count_annotations(project.project) - finished)
