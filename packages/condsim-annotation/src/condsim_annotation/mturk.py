"""Amazon Mechanical Turk: a CSV file of items with their form, and the CSV file of results."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from html import escape
from pathlib import Path

from condsim.data.files import iter_rows
from condsim.data.row import Cell, Row
from condsim.errors import InputError
from condsim.io import replacing, write_text
from condsim_annotation import stages
from condsim_annotation.exchange import (
    ITEM,
    MTURK,
    PullReport,
    PushOptions,
    check_push,
    store_annotations,
)
from condsim_annotation.outcome import stage_outcome
from condsim_annotation.stages import Item, Stage, TaskAnswer
from condsim_annotation.store import Annotation, AnnotationStore, Project

_KEY_COLUMNS = ("AssignmentId", "WorkerId", f"Input.{ITEM}")
_OTHER_COLUMNS = (
    *("Answer.high", "Answer.low", "Answer.rating"),
    *(f"Answer.rating.{verdict.label}" for verdict in stages.SCALE),
    *("SubmitTime", "WorkTimeInSeconds", "AssignmentStatus"),
)


def mturk_form(stage: Stage) -> str:
    """Return the page of a stage."""
    choices = "\n".join(
        f'<label><input type="radio" name="rating" value="{label}" required> '
        f"<b>{f'{label}: ' if label > 0 else ''}{escape(name)}.</b> {escape(meaning)}</label>"
        for label, name, meaning in stages.SCALE
    )
    form = stages.page("mturk.html").replace("{guidelines}", stages.guidelines(stage))
    form = form.replace("{fields}", stages.fields_of(stage, "html", choices))
    if stage != "verification":
        rules = json.dumps([rule._asdict() for rule in stages.HINT_RULES])
        form += "\n" + stages.page("mturk-hints.html").replace("{rules}", rules)
    return form + "\n"


def export_mturk(
    store: AnnotationStore,
    stage: Stage,
    items: Iterable[Item],
    folder: Path,
    options: PushOptions,
) -> tuple[Path, Path, int]:
    """Add items to the store; write the unfinished ones, whose number is returned, and a form."""
    items = list(items)
    check_push(store, stage, items, options)
    if store.project(stage) is None:
        everyone = options.anyone or stage == "qualification"
        answers = options.annotators or stages.DEFAULT_ANNOTATORS[stage]
        store.write(stage, [Project(MTURK, 0, MTURK, answers, everyone)])
    store.add_items(stage, items)
    outcome, stored = stage_outcome(store, stage), store.items(stage)
    open_items = [item for item_id, item in stored.items() if not outcome.has_enough(item_id)]
    # Hints are shown by a script of the form.
    names = [name for name in next(iter(stored.values())).shown if name != "hints"]
    table, form = folder / f"mturk-{stage}.csv", folder / f"mturk-{stage}.html"
    # Mechanical Turk takes ASCII only.
    with (
        replacing(table) as partial,
        partial.open("w", encoding="ascii", newline="", errors="xmlcharrefreplace") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow([ITEM, *names])
        for item in open_items:
            writer.writerow([item.item_id, *(escape(item.shown[name]) for name in names)])
    write_text(form, mturk_form(stage))
    return table, form, len(open_items)


def import_mturk(store: AnnotationStore, stage: Stage, path: Path) -> PullReport:
    """Read the results of a batch into the store; reading a file twice changes nothing.

    Rejected assignments do not count; assignments of items that condsim did not write are foreign.
    """
    items = store.pushed_items(stage)
    annotations: dict[str, Annotation] = {}
    rejected: set[str] = set()
    foreign = 0
    for row in iter_rows(path, columns=_KEY_COLUMNS, optional=_OTHER_COLUMNS):
        if str(row.cells["AssignmentStatus"] or "").casefold() == "rejected":
            rejected.add(str(row.cells["AssignmentId"]))
            continue
        annotation = _read_annotation(row)
        if annotation.item not in items:
            foreign += 1
        elif annotations.setdefault(annotation.annotation, annotation) != annotation:
            raise InputError(
                f"{row.location('AssignmentId')}: {annotation.annotation!r} appears twice with "
                "different answers."
            )
    before = {row.annotation: row for row in store.annotations(stage, source=MTURK)}
    # Assignments may be rejected after an earlier import.
    removed = before.keys() & rejected
    return store_annotations(store, stage, annotations, before, removed=removed, foreign=foreign)


def _read_annotation(row: Row) -> Annotation:
    cells = row.cells | {column: row.value(column) for column in _KEY_COLUMNS}
    submitted = _iso_time(str(cells["SubmitTime"] or ""))
    try:
        seconds = float(cells["WorkTimeInSeconds"] or "nan")
    except ValueError:
        raise InputError(f"{row.location('WorkTimeInSeconds')}: must be a number.") from None
    return Annotation(
        source=MTURK,
        annotation=str(cells["AssignmentId"]),
        item=str(cells[f"Input.{ITEM}"]),
        annotator=str(cells["WorkerId"]).casefold(),
        answer=TaskAnswer(
            high=stages.text_of(cells["Answer.high"]),
            low=stages.text_of(cells["Answer.low"]),
            rating=_read_rating(cells),
        ),
        seconds=seconds if math.isfinite(seconds) else None,
        created=submitted,
        updated=submitted,
    )


def _read_rating(cells: Mapping[str, Cell]) -> int | None:
    """Read a rating from one column, or from one column for each choice, one of them true."""
    if cells["Answer.rating"] not in (None, ""):
        return stages.rating_of(cells["Answer.rating"])
    choices = [
        verdict.label
        for verdict in stages.SCALE
        if str(cells[f"Answer.rating.{verdict.label}"]).casefold() == "true"
    ]
    return choices[0] if len(choices) == 1 else None


def _iso_time(time: str) -> str:
    """Convert ``Fri Nov 20 09:30:00 PST 2026`` to ISO 8601 in UTC; other texts stay."""
    parts = parsedate_tz(time)
    if parts is None or parts[9] is None:
        return time
    return datetime.fromtimestamp(mktime_tz(parts), UTC).isoformat()
