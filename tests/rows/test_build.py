"""From tables to a file, by the command and by the function."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest
from tests.commands import rows_in

from condsim.data.held_out import text_digest
from condsim.errors import InputError
from condsim.rows.build import build_criteria
from condsim.rows.settings import CriteriaSettings

_TEXTS = [(topic, mood) for topic in ("bill", "app", "parcel") for mood in ("good", "bad")] * 6


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    rows = [
        f"{topic} {mood} case {place},{topic},{mood},{place % 5}"
        for place, (topic, mood) in enumerate(_TEXTS)
    ]
    path.write_text("text,topic,mood,stars\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_command_settings_file_words_conditions(table, tmp_path, build) -> None:
    settings, output = tmp_path / "criteria.yaml", tmp_path / "rows.csv"
    settings.write_text(
        "rows: 80\nown_name: 0.0\ncriteria:\n  topic:\n    name: the topic\n    wordings: [what]\n"
        "  mood:\n    leave_out: true\n  stars:\n    order: [0, 1, 2, 3, 4]\n",
        encoding="utf-8",
    )
    options = ("--output", output, "--settings", settings)
    printed = build("criteria", table, *options, "--form", "pairs")
    rows = rows_in(output)
    assert {row["condition"] for row in rows if row["criterion"] == "topic"} == {"what"}
    assert {row["criterion"] for row in rows} == {"topic", "stars"}
    assert {row["label"] for row in rows} == {"1.0", "5.0"}
    assert "pair_id" in rows[0]
    assert "not used: mood" in printed
    build("criteria", table, *options, "--rows", 200)
    graded = {row["label"] for row in rows_in(output) if row["criterion"] == "stars"}
    assert {"1.0", "2.0", "4.0", "5.0"} <= graded


def test_command_exclude_leaves_texts_out(table, tmp_path, build) -> None:
    held_out = [row["text"] for row in rows_in(table)[:6]]
    listed, output = tmp_path / "held-out.sha256", tmp_path / "rows.csv"
    listed.write_text("\n".join(text_digest(text).hex() for text in held_out), encoding="utf-8")
    printed = build("criteria", table, "--output", output, "--bins", 5, "--exclude", listed)
    texts = {row[name] for row in rows_in(output) for name in ("sentence1", "sentence2")}
    assert "6 left out by --exclude" in printed
    assert len(texts) == 30
    assert not texts & {*held_out}


def test_build_several_tables_names_sets_after_folders(table, tmp_path) -> None:
    paths = []
    for name in ("cars", "boats"):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "train.jsonl.gz")
        lines = [
            json.dumps({"text": row["text"], "attributes": {"the topic": row["topic"]}})
            for row in rows_in(table)
        ]
        with gzip.open(paths[-1], "wt", encoding="utf-8") as stream:
            stream.write("\n".join(lines))
    output = tmp_path / "rows.parquet"
    report = build_criteria(paths, output, CriteriaSettings(rows=40))
    assert [table.name for table in report.sets] == ["cars", "boats"]
    assert report.rows == sum(table.rows for table in report.sets) <= 80
    manifest = json.loads((tmp_path / "rows.manifest.json").read_text("utf-8"))
    assert len(manifest["made_from"]) == 2
    with pytest.raises(InputError, match="two would be called 'cars'"):
        build_criteria([paths[0], paths[0]], output, CriteriaSettings())


def test_build_cells_of_several_values_are_compared_as_sets(tmp_path) -> None:
    path, output = tmp_path / "shop.csv", tmp_path / "rows.csv"
    values = ("red|blue", "blue|red", "red", "green", "green", "red|blue")
    lines = [f"thing {number},{value}\n" for number, value in enumerate(values)]
    path.write_text("text,color\n" + "".join(lines), "utf-8")
    build_criteria([path], output, CriteriaSettings(rows=40, own_name=1.0), separator="|")
    labels: dict[str, set[str]] = defaultdict(set)
    for row in rows_in(output):
        pair = sorted((row["sentence1"], row["sentence2"]))
        labels[row["label"]].add("".join(text[-1] for text in pair))
    assert labels["5.0"] <= {"01", "05", "15", "34"}
    assert labels["1.0"] <= {"03", "04", "13", "14", "23", "24", "35", "45"}


def test_build_ticket_numbers_are_not_used(table, tmp_path) -> None:
    path, output = tmp_path / "numbered.csv", tmp_path / "rows.csv"
    lines = [f"{1000 + n},{row['text']},{row['topic']}" for n, row in enumerate(rows_in(table))]
    path.write_text("\n".join(["ticket,text,topic", *lines]), "utf-8")
    (report,) = build_criteria([path], output, CriteriaSettings(rows=40)).sets
    assert (list(report.criteria), report.unused) == (["topic"], ("ticket",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the column 'stars' holds numbers.*grade them with --bins"),
        (("--column", "txt"), "column 'txt' is missing"),
        (("--criteria", "topics"), "'topics'. Did you mean 'topic'"),
        (("--criteria", "topic", "--settings", "wrong.yaml"), "in the settings: 'tpic'. Did you"),
        (("--settings", "key.yaml"), "key.yaml.*'skp'. Did you mean 'skip'"),
        (("--output", "tickets.csv"), "is the input itself"),
        (("--exclude", "tickets.csv", "--bins", "5"), "the 0 texts .36 left out"),
    ],
)
def test_command_bad_input_is_one_line(table, monkeypatch, build, options, message) -> None:
    monkeypatch.chdir(table.parent)
    Path("wrong.yaml").write_text("criteria:\n  tpic:\n    skip: [a]\n", encoding="utf-8")
    Path("key.yaml").write_text("criteria:\n  topic:\n    skp: [a]\n", encoding="utf-8")
    before = table.read_bytes()
    output = () if "--output" in options else ("--output", "rows.csv")
    with pytest.raises(InputError, match=message):
        build("criteria", "tickets.csv", *output, *options)
    assert table.read_bytes() == before
    assert not Path("rows.csv").exists()


def test_command_takes_an_encoding_and_leaves_blank_texts_out(tmp_path, build) -> None:
    file, output = tmp_path / "lyrics.csv", tmp_path / "rows.csv"
    rows = [f"Café {n}.,place\nIt rained on day {n}.,weather\n" for n in range(4)]
    file.write_text("text,topic\n" + "".join(rows) + ",place\n", "mac_roman")
    printed = build("criteria", file, "--output", output, "--encoding", "mac_roman")
    assert "1 row has no text and thus no row" in printed
    assert any("Café" in row["sentence1"] + row["sentence2"] for row in rows_in(output))
    with pytest.raises(InputError):
        build("criteria", file, "--output", output, "--encoding", "mac_roman", "--strict")
