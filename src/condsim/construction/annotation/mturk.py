"""The same tasks for Amazon Mechanical Turk: a CSV of items, and the CSV of results read back."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from html import escape
from pathlib import Path

from condsim.construction.annotation.mturk_form import mturk_form
from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.pull import Pulled
from condsim.construction.annotation.push import ANNOTATORS, check_push
from condsim.construction.annotation.remote import ITEM
from condsim.construction.annotation.results import rating_of, text_of
from condsim.construction.annotation.stages import VERDICTS, Answer, Stage, Work
from condsim.construction.annotation.store import Store
from condsim.construction.annotation.store_rows import Annotation, Project
from condsim.errors import InputError
from condsim.files import replacing
from condsim.tasks.files import scan_rows
from condsim.tasks.row import Cell, Row, place, shown

__all__ = ["MTURK", "export_mturk", "import_mturk"]

MTURK = "mturk"
"""Source of annotations from Mechanical Turk."""

_HIDDEN = ("hints",)  # variables of a Label Studio page that a form does not need
_ANSWERS = (
    "Answer.high",
    "Answer.low",
    "Answer.rating",
    *(f"Answer.rating.{verdict.label}" for verdict in VERDICTS),
)
_KEYS = ("AssignmentId", "WorkerId", f"Input.{ITEM}")
_TIMES = ("AcceptTime", "SubmitTime", "WorkTimeInSeconds", "AssignmentStatus")
_ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}  # hours


def export_mturk(
    store: Store,
    stage: Stage,
    works: Iterable[Work],
    folder: Path,
    *,
    annotators: int | None = None,
    anyone: bool = False,
) -> tuple[Path, Path, int]:
    """Writes the items that are not done as a CSV file, and the form that shows them.

    Args:
        store: The store; the items are added to it.
        stage: The stage.
        works: The items.
        folder: An existing folder for both files.
        annotators: Answers wanted for each item; `ANNOTATORS` if None.
        anyone: Whether answers count whoever gives them; else only those of the pool.

    Returns:
        The CSV file, the HTML file and the number of items written.

    Raises:
        InputError: As `condsim.construction.annotation.push.push`, or if a file cannot be written.
    """
    works = list(works)
    check_push(store, stage, works, annotators=annotators, anyone=anyone)
    with store.changes():
        if store.project(stage) is None:
            everyone = anyone or stage == "qualification"
            wanted = annotators or ANNOTATORS[stage]
            store.set_project(stage, Project(MTURK, 0, MTURK, wanted, everyone))
        store.add_items(stage, works)
    outcome = outcome_of(store, stage)
    items = store.items(stage)
    open_items = [stored.work for item, stored in items.items() if not outcome.has_enough(item)]
    variables = next(iter(items.values())).work.shown
    names = [name for name in variables if name not in _HIDDEN]
    table, form = folder / f"mturk-{stage}.csv", folder / f"mturk-{stage}.html"
    with replacing(table) as partial, partial.open("w", encoding="ascii", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow([ITEM, *names])
        for work in open_items:
            writer.writerow([work.item_id, *(_as_html(work.shown[name]) for name in names)])
    with replacing(form) as partial:
        partial.write_text(mturk_form(stage), encoding="utf-8")
    return table, form, len(open_items)


def import_mturk(store: Store, stage: Stage, path: Path) -> Pulled:
    """Reads a file of results into the store; twice the same file changes nothing.

    Args:
        store: The store.
        stage: The stage.
        path: The CSV file that Mechanical Turk gives for a batch. Rejected assignments are skipped.

    Returns:
        What changed; assignments of items that condsim did not hand out are foreign.

    Raises:
        InputError: If the file breaks a rule; nothing is changed then.
    """
    items = store.items(stage)
    if not items:
        raise InputError(
            f"The stage {stage!r} was not handed out: 'condsim build mturk form {stage}' comes "
            "first."
        )
    found: dict[str, Annotation] = {}
    foreign = 0
    for row in scan_rows(path, columns=_KEYS, optional=(*_ANSWERS, *_TIMES)):
        if str(row.cells["AssignmentStatus"] or "").casefold() == "rejected":
            continue
        one = _annotation(path, row)
        if one.item not in items:
            foreign += 1
        elif found.setdefault(one.annotation, one) != one:
            where = place(path, row=row.number, line=row.line, column="AssignmentId")
            raise InputError(
                f"{where}: {one.annotation!r} stands twice with different answers. Download the "
                "results again."
            )
    with store.changes():
        before = {one.annotation: one for one in store.annotations(stage) if one.source == MTURK}
        store.put_annotations(stage, found.values())
    return Pulled(
        annotations=len(found),
        new=sum(key not in before for key in found),
        changed=sum(key in before and before[key] != one for key, one in found.items()),
        removed=0,
        foreign=foreign,
    )


def _annotation(path: Path, row: Row) -> Annotation:
    cells = row.cells
    for key in _KEYS:
        if cells[key] in (None, ""):
            where = place(path, row=row.number, line=row.line, column=key)
            raise InputError(f"{where}: must not be empty. Download the results again.")
    submitted = _iso(str(cells["SubmitTime"] or ""))
    return Annotation(
        source=MTURK,
        annotation=str(cells["AssignmentId"]),
        item=str(cells[f"Input.{ITEM}"]),
        annotator=str(cells["WorkerId"]).casefold(),
        answer=Answer(
            high=text_of(_text(cells["Answer.high"])),
            low=text_of(_text(cells["Answer.low"])),
            rating=_rating(cells),
        ),
        seconds=_seconds(path, row),
        created=submitted,
        updated=submitted,
    )


def _seconds(path: Path, row: Row) -> float | None:
    """The time it took; None where the file does not tell."""
    cell = row.cells["WorkTimeInSeconds"]
    if cell in (None, ""):
        return None
    try:
        return float(str(cell))
    except ValueError:
        where = place(path, row=row.number, line=row.line, column="WorkTimeInSeconds")
        raise InputError(
            f"{where}: must be a number, got {shown(cell)}. Download the results again."
        ) from None


def _rating(cells: Mapping[str, Cell]) -> int | None:
    """The rating, which comes as one column, or as one column a choice with true in one of them."""
    if cells["Answer.rating"] not in (None, ""):
        return rating_of(cells["Answer.rating"])
    chosen: Sequence[int] = [
        verdict.label
        for verdict in VERDICTS
        if str(cells[f"Answer.rating.{verdict.label}"] or "").casefold() == "true"
    ]
    return chosen[0] if len(chosen) == 1 else None


def _text(value: Cell) -> str | None:
    return None if value is None else str(value)


def _as_html(text: str) -> str:
    """Text as it stands in a page: Mechanical Turk puts it there as it is, and takes no emoji."""
    return escape(text).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _iso(time: str) -> str:
    """Such as ``Fri Nov 20 09:30:00 PST 2026`` as ISO 8601 in UTC; other texts as they are."""
    parts = time.split()
    if len(parts) != 6 or parts[4] not in _ZONES:
        return time
    try:
        local = datetime.strptime(" ".join(parts[1:4] + parts[5:]), "%b %d %H:%M:%S %Y")
    except ValueError:
        return time
    zone = timezone(timedelta(hours=_ZONES[parts[4]]))
    return local.replace(tzinfo=zone).astimezone(UTC).isoformat()
