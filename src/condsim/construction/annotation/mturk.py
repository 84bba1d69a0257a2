"""The same tasks for Amazon Mechanical Turk: a CSV of items, and the CSV of results read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone
from html import escape
from pathlib import Path

from condsim.construction.annotation.hints import HINT_RULES
from condsim.construction.annotation.labelling import guidelines
from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.pulling import Pulled
from condsim.construction.annotation.pushing import ANNOTATORS, check_push
from condsim.construction.annotation.remote import ITEM
from condsim.construction.annotation.results import rating_of, text_of
from condsim.construction.annotation.stages import VERDICTS, Answer, Stage, Work
from condsim.construction.annotation.store import Annotation, Project, Store
from condsim.errors import InputError
from condsim.files import replacing
from condsim.tasks import Cell, Row, iter_rows, place, shown

_STYLE = """
<style>
  body { font-family: sans-serif; max-width: 50em; margin: 1em auto; line-height: 1.4; }
  .pair, .given { border: 1px solid #d0d0d8; border-radius: 6px; padding: .2em 1em; }
  .pair, .given { margin: .7em 0; }
  .given { border-left: 4px solid #617ada; }
  label { display: block; margin: .5em 0; }
  input[type=text] { width: 100%; box-sizing: border-box; padding: .4em; }
  .hint { background: #fff8e1; color: #6b4e00; margin: .2em 0; padding: .1em .6em; }
</style>"""

_SCRIPT = """
<script>
  // The rules of condsim.construction.annotation.hints; hints never block.
  const RULES = %s;
  const matches = (pattern, text) => new RegExp(pattern, "i").test(text);
  const sentence = (name) => document.getElementById(name).textContent;
  for (const field of document.querySelectorAll("input[type=text]")) {
    field.addEventListener("input", () => {
      const text = field.value.trim().replace(/\\s+/g, " ");
      const both = [sentence("sentence1"), sentence("sentence2")];
      const seen = new Set();
      const hints = document.getElementById("hints-" + field.name);
      hints.replaceChildren();
      if (!text) return;
      for (const rule of RULES) {
        if (seen.has(rule.rule) || !matches(rule.pattern, text)) continue;
        if (rule.needed && both.every((one) => matches(rule.needed, one))) continue;
        seen.add(rule.rule);
        const line = document.createElement("p");
        line.className = "hint";
        line.textContent = rule.rule + ". " + rule.text;
        hints.append(line);
      }
    });
  }
</script>"""


def _pair(first: str, second: str) -> str:
    return (
        f'<div class="pair"><p><b>Sentence 1</b>: <span id="{first}">${{{first}}}</span></p>'
        f'<p><b>Sentence 2</b>: <span id="{second}">${{{second}}}</span></p></div>'
    )


def _text(name: str, title: str) -> str:
    return (
        f'<label>{title}<input type="text" name="{name}" required maxlength="200" '
        f'autocomplete="off"></label><div id="hints-{name}"></div>'
    )


_WRITE = _text("high", "<b>High</b>: a condition under which they are alike") + _text(
    "low", "<b>Low</b>: a condition under which they differ"
)


def _rate(shown: str) -> str:
    choices = "".join(
        f'<label><input type="radio" name="rating" value="{verdict.label}" required> '
        f"<b>{f'{verdict.label}: ' if verdict.label > 0 else ''}{escape(verdict.name)}.</b> "
        f"{escape(verdict.meaning)}</label>"
        for verdict in VERDICTS
    )
    return (
        f'<div class="given"><p><b>Condition</b>: <span id="{shown}">${{{shown}}}</span></p></div>'
        f"<p><b>How similar are they under this condition alone?</b></p>{choices}"
    )


_FIELDS: Mapping[Stage, str] = {
    "qualification": (
        "<h3>Part 1. Write two conditions</h3>"
        + _pair("sentence1", "sentence2")
        + _WRITE
        + "<h3>Part 2. Rate another pair</h3>"
        + _pair("test_sentence1", "test_sentence2")
        + _rate("test_condition")
    ),
    "conditions": _pair("sentence1", "sentence2") + _WRITE,
    "verification": _pair("sentence1", "sentence2") + _rate("condition"),
}


def mturk_form(stage: Stage) -> str:
    """Makes the page of a stage."""
    rules = json.dumps([asdict(rule) for rule in HINT_RULES])
    return (
        '<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>'
        f'{_STYLE}\n<crowd-form answer-format="flatten-objects">\n'
        f"<details open><summary><b>Instructions</b></summary>{guidelines(stage)}</details>\n"
        f"{_FIELDS[stage]}\n</crowd-form>"
        f"{'' if stage == 'verification' else _SCRIPT % rules}\n"
    )


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
        InputError: As `push`, or if a file cannot be written.
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
    for row in iter_rows(path, columns=_KEYS, optional=(*_ANSWERS, *_TIMES)):
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
            high=text_of(_mturk_text(cells["Answer.high"])),
            low=text_of(_mturk_text(cells["Answer.low"])),
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


def _mturk_text(value: Cell) -> str | None:
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
