"""The same tasks for Amazon Mechanical Turk: a CSV of items, and the CSV of results read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone
from html import escape
from pathlib import Path

from condsim.annotation.exchange import ANNOTATORS, MTURK, Pulled, check_push
from condsim.annotation.label_studio import ITEM
from condsim.annotation.outcome import outcome_of
from condsim.annotation.stages import (
    HINT_RULES,
    VERDICTS,
    Answer,
    Item,
    Stage,
    fields_of,
    guidelines,
    page,
    rating_of,
    text_of,
)
from condsim.annotation.store import Annotation, AnnotationStore, Project
from condsim.data.reading import iter_rows
from condsim.data.row import Cell, Row, shown
from condsim.errors import InputError
from condsim.io import replacing, write_text


def mturk_form(stage: Stage) -> str:
    """Makes the page of a stage."""
    choices = "\n".join(
        f'<label><input type="radio" name="rating" value="{one.label}" required> '
        f"<b>{f'{one.label}: ' if one.label > 0 else ''}{escape(one.name)}.</b> "
        f"{escape(one.meaning)}</label>"
        for one in VERDICTS
    )
    form = page("mturk.html").replace("{guidelines}", guidelines(stage))
    form = form.replace("{fields}", fields_of(stage, "html", choices))
    if stage != "verification":
        rules = json.dumps([asdict(rule) for rule in HINT_RULES])
        form += "\n" + page("mturk-hints.html").replace("{rules}", rules)
    return form + "\n"


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
    store: AnnotationStore,
    stage: Stage,
    items: Iterable[Item],
    folder: Path,
    *,
    annotators: int | None = None,
    anyone: bool = False,
) -> tuple[Path, Path, int]:
    """Writes the items that are not done as a CSV file, and the form that shows them.

    Args:
        store: The store; the items are added to it.
        items: The items, of `items_to_annotate`.
        folder: An existing folder for both files.
        annotators: Answers wanted for each item; 1 for conditions and 3 for verification if None.
        anyone: Whether everybody's answers count, or only those of the pool.

    Returns:
        The CSV file, the HTML file and the number of items written.

    Raises:
        InputError: As `push`, or if a file cannot be written.
    """
    items = list(items)
    check_push(store, stage, items, annotators=annotators, anyone=anyone)
    with store.changes():
        if store.project(stage) is None:
            everyone = anyone or stage == "qualification"
            wanted = annotators or ANNOTATORS[stage]
            store.set_project(stage, Project(MTURK, 0, MTURK, wanted, everyone))
        store.add_items(stage, items)
    outcome = outcome_of(store, stage)
    handed_out = store.items(stage)
    open_items = [one for item, one in handed_out.items() if not outcome.has_enough(item)]
    names = [name for name in next(iter(handed_out.values())).shown if name not in _HIDDEN]
    table, form = folder / f"mturk-{stage}.csv", folder / f"mturk-{stage}.html"
    with replacing(table) as partial, partial.open("w", encoding="ascii", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow([ITEM, *names])
        for one in open_items:
            writer.writerow([one.item_id, *(_as_html(one.shown[name]) for name in names)])
    write_text(form, mturk_form(stage))
    return table, form, len(open_items)


def import_mturk(store: AnnotationStore, stage: Stage, path: Path) -> Pulled:
    """Reads a file of results into the store; twice the same file changes nothing.

    Args:
        path: The CSV file of a batch. Assignments that were rejected do not count.

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
    rejected: set[str] = set()
    foreign = 0
    for row in iter_rows(path, columns=_KEYS, optional=(*_ANSWERS, *_TIMES)):
        if str(row.cells["AssignmentStatus"] or "").casefold() == "rejected":
            rejected.add(str(row.cells["AssignmentId"]))
            continue
        one = _annotation(row)
        if one.item not in items:
            foreign += 1
        elif found.setdefault(one.annotation, one) != one:
            raise InputError(
                f"{row.place('AssignmentId')}: {one.annotation!r} stands twice with "
                "different answers. Download the results again."
            )
    with store.changes():
        before = {one.annotation: one for one in store.annotations(stage, source=MTURK)}
        gone = before.keys() & rejected  # they were read before the requester rejected them
        store.put_annotations(stage, found.values())
        store.set_removed(stage, MTURK, gone)
    return Pulled.between(before, found, removed=len(gone), foreign=foreign)


def _annotation(row: Row) -> Annotation:
    cells = row.cells
    for key in _KEYS:
        if cells[key] in (None, ""):
            raise InputError(f"{row.place(key)}: must not be empty. Download the results again.")
    submitted = _iso(str(cells["SubmitTime"] or ""))
    return Annotation(
        source=MTURK,
        annotation=str(cells["AssignmentId"]),
        item=str(cells[f"Input.{ITEM}"]),
        annotator=str(cells["WorkerId"]).casefold(),
        answer=Answer(
            high=text_of(cells["Answer.high"]),
            low=text_of(cells["Answer.low"]),
            rating=_rating(cells),
        ),
        seconds=_seconds(row),
        created=submitted,
        updated=submitted,
    )


def _seconds(row: Row) -> float | None:
    """The time it took; None where the file does not tell."""
    cell = row.cells["WorkTimeInSeconds"]
    if cell in (None, ""):
        return None
    try:
        return float(str(cell))
    except ValueError:
        raise InputError(
            f"{row.place('WorkTimeInSeconds')}: must be a number, got {shown(cell)}. "
            "Download the results again."
        ) from None


def _rating(cells: Mapping[str, Cell]) -> int | None:
    """The rating, which comes as one column, or as one column a choice with true in one of them."""
    if cells["Answer.rating"] not in (None, ""):
        return rating_of(cells["Answer.rating"])
    chosen = [
        verdict.label
        for verdict in VERDICTS
        if str(cells[f"Answer.rating.{verdict.label}"] or "").casefold() == "true"
    ]
    return chosen[0] if len(chosen) == 1 else None


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
