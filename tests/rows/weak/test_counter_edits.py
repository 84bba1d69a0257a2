"""Counter-edits: copies of a text that differ in one respect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("text_to_num", exc_type=ImportError)
pytest.importorskip("vaderSentiment")

from condsim.data.csts import load_csts
from condsim.errors import InputError
from condsim.rows.weak.counter_edits import counter_edits

TEXTS = [
    f"{what} {rest}"
    for what in ("The staff was friendly", "Prices have increased", "We waited for six weeks")
    for rest in ("in May.", "at the harbour.", "before the fire.", "and the room is clean.")
]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("The door is open.", ["The door is not open.", "The door is closed."]),
        ("He was not a rude man.", ["He was a rude man.", "He was not a polite man."]),
        ("He cannot come.", ["He can come."]),
        ("Turn on the lamp on the table.", ["Turn off the lamp on the table."]),
        ("The hotel is on the corner.", ["The hotel is not on the corner."]),
        ("The lamp is on.", ["The lamp is not on.", "The lamp is off."]),
        ("We met at half past six on 3/4.", []),
        ("It didn't work.", []),
        ("Is he there?", []),
    ],
)  # fmt: skip
def test_counter_edits_change_one_thing(text: str, copies: list[str]) -> None:
    assert [edit.text for edit in counter_edits(text)] == copies


def test_counter_edits_number_stays_in_its_notation() -> None:
    (words,) = counter_edits("Six dogs bark")
    assert words.text.endswith(" dogs bark")
    assert words.text[0].isupper()
    assert words.text != "Six dogs bark"
    (digits,) = counter_edits("It weighs 40 kg")
    assert int(digits.text.split()[2]) in (20, 41, 80, 120)
    assert counter_edits("It weighs 40 kg") == [digits]


def test_build_counter_edits_rows_that_train_reads(texts, tmp_path, build, rows_of) -> None:
    output, again = tmp_path / "edits.csv", tmp_path / "again.csv"
    report = tmp_path / "report.json"
    printed = build("counter-edits", texts, "--output", output, "--json", report)
    rows = rows_of(output)
    assert f"{len(rows)} rows" in printed
    assert len(load_csts(output, require_labels=True)) == len(rows)
    groups = {row["group"] for row in rows}
    assert len(groups) == len(TEXTS) == json.loads(report.read_text())["groups"]
    for group in groups:
        own = [row for row in rows if row["group"] == group]
        assert len({(row["sentence1"], row["sentence2"]) for row in own}) == 1
        labels = [float(row["label"]) for row in own]
        assert min(labels) < max(labels) == 5
        assert {row["origin"] for row in own} == {f"counter-edit:{group.split('-')[0]}"}
    build("counter-edits", texts, "--output", again)
    assert again.read_bytes() == output.read_bytes()


def test_build_counter_edits_exclude_leaves_texts_and_copies_out(
    texts, tmp_path, build, rows_of
) -> None:
    barred = [TEXTS[0], *(edit.text for edit in counter_edits(TEXTS[1]))]
    held_out, output = tmp_path / "out.csv", tmp_path / "edits.csv"
    held_out.write_text("text\n" + "\n".join(barred) + "\n", encoding="utf-8")
    printed = build("counter-edits", texts, "--output", output, "--exclude", held_out)
    assert "(1 left out" in printed
    written = {row[name] for row in rows_of(output) for name in ("sentence1", "sentence2")}
    assert not written & {*barred, TEXTS[1]}
    assert TEXTS[2] in written


def test_build_counter_edits_output_is_the_input_raises(texts: Path, build) -> None:
    with pytest.raises(InputError, match="is the input itself"):
        build("counter-edits", texts, "--output", texts)
