"""How far each stage is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.pushing import project_on
from condsim.construction.annotation.remote import AnnotationServer
from condsim.construction.annotation.stages import Stage
from condsim.construction.annotation.store import Store


@dataclass(frozen=True)
class StageProgress:
    """How far a stage is.

    Attributes:
        stage: The stage.
        items: Items that were given out.
        wanted: Answers wanted for each; 0 for no limit.
        done: Items with as many.
        counted: Answers that count.
        people: Annotators who gave them.
        set_aside: Answers that do not count: (reason, number), the most frequent first.
        proposals: (model, items it has answered), by name.
        waiting: Annotations on the server beyond those that were pulled; None if it was not asked.
    """

    stage: Stage
    items: int
    wanted: int
    done: int
    counted: int
    people: int
    set_aside: tuple[tuple[str, int], ...]
    proposals: tuple[tuple[str, int], ...]
    waiting: int | None


def progress_of(store: Store, stage: Stage, server: AnnotationServer | None) -> StageProgress:
    """Tells how far a stage is.

    Args:
        store: The store.
        stage: The stage.
        server: Asked for annotations that were not pulled; not asked if None.

    Returns:
        The state.

    Raises:
        InputError: If the project is gone, or on another server.
        BackendError: If the server does not answer.
    """
    outcome = outcome_of(store, stage)
    counted = [one for given in outcome.counted.values() for one in given]
    waiting = None
    if server is not None and store.project(stage) is not None:
        project = project_on(store, server, stage)
        pulled = sum(
            one.source == project.source and not one.cancelled for one in store.annotations(stage)
        )
        waiting = max(0, server.state(project.project).annotations - pulled)
    return StageProgress(
        stage=stage,
        items=len(outcome.counted),
        wanted=outcome.wanted,
        done=outcome.done,
        counted=len(counted),
        people=len({one.annotator for one in counted}),
        set_aside=tuple(Counter(one.reason for one in outcome.set_aside).most_common()),
        proposals=tuple(sorted(Counter(one.model for one in store.proposals(stage)).items())),
        waiting=waiting,
    )
