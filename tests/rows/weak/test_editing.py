"""Counter-edits: copies of a text that differ in one respect."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("text_to_num", exc_type=ImportError)
pytest.importorskip("vaderSentiment")

from condsim.cli.main import app
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


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["build", "counter-edits", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


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


def test_build_counter_edits_rows_that_train_reads(texts: Path, tmp_path: Path) -> None:
    made, again = tmp_path / "edits.csv", tmp_path / "again.csv"
    said = _run(texts, "--output", made, "--json", tmp_path / "report.json")
    rows = _rows(made)
    assert f"{len(rows)} rows" in said
    assert len(load_csts(made, require_labels=True)) == len(rows)
    groups = {row["group"] for row in rows}
    assert len(groups) == len(TEXTS)
    for group in groups:
        own = [row for row in rows if row["group"] == group]
        assert len({(row["sentence1"], row["sentence2"]) for row in own}) == 1
        labels = [float(row["label"]) for row in own]
        assert min(labels) < 5
        assert max(labels) == 5
        assert {row["origin"] for row in own} == {f"counter-edit:{group.split('-')[0]}"}
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["groups"] == len(TEXTS)
    _run(texts, "--output", again)
    assert again.read_bytes() == made.read_bytes()


def test_build_counter_edits_exclude_leaves_texts_and_copies_out(
    texts: Path, tmp_path: Path
) -> None:
    barred = [TEXTS[0], *(edit.text for edit in counter_edits(TEXTS[1]))]
    (tmp_path / "out.csv").write_text("text\n" + "\n".join(barred) + "\n", encoding="utf-8")
    made = tmp_path / "edits.csv"
    assert "(1 left out" in _run(texts, "--output", made, "--exclude", tmp_path / "out.csv")
    written = {row[name] for row in _rows(made) for name in ("sentence1", "sentence2")}
    assert not written & {*barred, TEXTS[1]}
    assert TEXTS[2] in written


def test_build_counter_edits_output_is_the_input_raises(texts: Path) -> None:
    with pytest.raises(InputError, match="is the input itself"):
        _run(texts, "--output", texts)
