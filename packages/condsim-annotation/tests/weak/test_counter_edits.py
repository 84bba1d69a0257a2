"""Counter-edits: copies of a text that differ in one respect."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from tests.commands import rows_in

pytest.importorskip("text_to_num", exc_type=ImportError)
pytest.importorskip("vaderSentiment")

from condsim_annotation.weak.counter_edits import counter_edits

TEXTS = [
    f"{what} {rest}"
    for what in ("The staff was friendly", "Prices have increased", "We waited for six weeks")
    for rest in ("in May.", "at the harbor.", "before the fire.", "and the room is clean.")
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


def test_build_counter_edits_groups_have_one_pair_and_different_labels(
    texts, tmp_path, build
) -> None:
    output = tmp_path / "edits.csv"
    build("counter-edits", texts, "--output", output)
    groups = defaultdict(list)
    for row in rows_in(output):
        groups[row["group"]].append(row)
    assert len(groups) == len(TEXTS)
    for rows in groups.values():
        assert len({(row["sentence1"], row["sentence2"]) for row in rows}) == 1
        labels = [float(row["label"]) for row in rows]
        assert min(labels) < max(labels) == 5


def test_build_counter_edits_exclude_leaves_texts_and_copies_out(texts, tmp_path, build) -> None:
    barred = [TEXTS[0], *(edit.text for edit in counter_edits(TEXTS[1]))]
    held_out, output = tmp_path / "out.csv", tmp_path / "edits.csv"
    held_out.write_text("text\n" + "\n".join(barred) + "\n", encoding="utf-8")
    printed = build("counter-edits", texts, "--output", output, "--exclude", held_out)
    assert "(1 left out" in printed
    written = {row[name] for row in rows_in(output) for name in ("sentence1", "sentence2")}
    assert not written & {*barred, TEXTS[1]}
    assert TEXTS[2] in written
