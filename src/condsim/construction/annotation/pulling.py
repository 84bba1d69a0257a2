"""Which annotations count, and why the others do not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from condsim.construction.annotation.hints import NO_HINTS, hints_of
from condsim.construction.annotation.outcome import UNKNOWN, outcome_of
from condsim.construction.annotation.pushing import project_on
from condsim.construction.annotation.remote import ITEM, AnnotationServer, RemoteTask
from condsim.construction.annotation.stages import Stage
from condsim.construction.annotation.store import Annotation, Store
from condsim.errors import InputError


@dataclass(frozen=True)
class Pulled:
    """What a pull brought.

    Attributes:
        annotations: Annotations on the server, of items of the stage.
        new: Those that were not in the store.
        changed: Those that were edited since.
        removed: Annotations that were deleted on the server; they stay in the store and do not
            count.
        foreign: Annotations of tasks that condsim did not push; left alone.
    """

    annotations: int
    new: int
    changed: int
    removed: int
    foreign: int


def pull(store: Store, server: AnnotationServer, stage: Stage) -> Pulled:
    """Fetches the annotations of a stage into the store, all of them or, on an error, none.

    Args:
        store: The store.
        server: The server.
        stage: The stage.

    Returns:
        What changed.

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
        before = {
            one.annotation: one for one in store.annotations(stage) if one.source == project.source
        }
        found = {
            one.annotation: one
            for item, task in ours
            for one in _annotations(item, task, project.source, names, before)
        }
        standing = {item for item, _ in ours}
        gone = [key for key, one in before.items() if key not in found and one.item in standing]
        store.put_annotations(stage, (one for key, one in found.items() if before.get(key) != one))
        store.set_removed(stage, project.source, gone)
    return Pulled(
        annotations=len(found),
        new=sum(key not in before for key in found),
        changed=sum(key in before and before[key] != one for key, one in found.items()),
        removed=len(gone),
        foreign=sum(len(task.answers) for task in tasks if task.item not in items),
    )


def give_hints(store: Store, server: AnnotationServer, stage: Stage) -> int:
    """Shows the hints at written conditions on the pages of their pairs, where they can be edited.

    Args:
        store: The store, just pulled.
        server: The server.
        stage: ``"conditions"``.

    Returns:
        Pairs whose hints changed.

    Raises:
        InputError: If the stage has no conditions to write, or its project is gone.
        BackendError: If the server does not answer.
    """
    if stage != "conditions":
        raise InputError(f"Hints are about written conditions; the stage {stage!r} shows none.")
    project_on(store, server, stage)
    counted = outcome_of(store, stage).counted
    changed = 0
    for item, (work, task) in store.items(stage).items():
        lines = [
            f"“{text}”: {hint.text}"
            for one in counted[item]
            for text in (one.answer.high, one.answer.low)
            for hint in hints_of(text or "", work.shown["sentence1"], work.shown["sentence2"])
        ]
        shown = dict(work.shown) | {"hints": "\n".join(lines) or NO_HINTS}
        if task is None or shown == work.shown:
            continue
        server.change_task(task, {ITEM: item, **shown})
        with store.changes():
            store.set_shown(stage, item, shown)
        changed += 1
    return changed


def _names(tasks: list[RemoteTask], accounts: dict[int, str], url: str) -> dict[int, str]:
    """The names of the accounts that gave answers; two accounts must not share one."""
    active = {answer.account for task in tasks for answer in task.answers} - {None}
    by_name: dict[str, list[int]] = defaultdict(list)
    for account in sorted(account for account in active if account is not None):
        if account in accounts:
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


def _annotations(
    item: str, task: RemoteTask, source: str, names: dict[int, str], before: dict[str, Annotation]
) -> list[Annotation]:
    found = []
    for one in task.answers:
        name = names.get(one.account) if one.account is not None else None
        if name is None:  # the account is gone: keep the name that was known
            name = before[one.key].annotator if one.key in before else UNKNOWN
        found.append(
            Annotation(
                source,
                one.key,
                item,
                name,
                one.answer,
                one.seconds,
                one.created,
                one.updated,
                one.prefilled_by,
                one.cancelled,
            )
        )
    return found
