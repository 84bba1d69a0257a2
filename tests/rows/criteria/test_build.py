"""From tables to a file, by the command and by the function."""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.data.csts import load_csts
from condsim.data.held_out import text_digest
from condsim.errors import InputError
from condsim.rows.criteria.build import build_criteria
from condsim.rows.criteria.settings import CriteriaSettings


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    rows = [
        f"{topic} {mood} case {place},{topic},{mood},{place % 5}"
        for place, (topic, mood) in enumerate(
            (topic, mood)
            for _ in range(6)
            for topic in ("bill", "app", "parcel")
            for mood in ("good", "bad")
        )
    ]
    path.write_text("text,topic,mood,stars\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["build", "criteria", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_command_table_rows_that_train_reads(table: Path, tmp_path: Path) -> None:
    made, report = tmp_path / "rows.csv", tmp_path / "report.json"
    options = ("--criteria", "topic", "--criteria", "mood", "--rows", 120, "--json", report)
    _, told = _run(table, "--output", made, *options)
    rows = _rows(made)
    assert list(rows[0]) == "sentence1 sentence2 condition label criterion set group".split()
    assert f"{len(rows)} rows" in told
    assert {row["set"] for row in rows} == {"tickets"}
    assert {row["criterion"] for row in rows} == {"topic", "mood"}
    assert len(load_csts(made, require_labels=True)) == len(rows) <= 120
    manifest = json.loads((tmp_path / "rows.manifest.json").read_text("utf-8"))
    assert manifest["kind"] == "criteria rows"
    assert manifest["report"] == json.loads(report.read_text("utf-8"))
    assert manifest["settings"]["rows"] == 120
    _run(table, "--output", tmp_path / "again.csv", *options)
    assert (tmp_path / "again.csv").read_bytes() == made.read_bytes()


def test_command_settings_file_words_conditions(table: Path, tmp_path: Path) -> None:
    settings = tmp_path / "criteria.yaml"
    settings.write_text(
        "rows: 80\nown_name: 0.0\ncriteria:\n  topic:\n    name: the topic\n    wordings: [what]\n"
        "  mood:\n    leave_out: true\n  stars:\n    order: [0, 1, 2, 3, 4]\n",
        encoding="utf-8",
    )
    made = tmp_path / "rows.csv"
    _, told = _run(table, "--output", made, "--settings", settings, "--form", "pairs")
    rows = _rows(made)
    assert {row["condition"] for row in rows if row["criterion"] == "topic"} == {"what"}
    assert {row["criterion"] for row in rows} == {"topic", "stars"}
    assert {row["label"] for row in rows} == {"1.0", "5.0"}
    assert "pair_id" in rows[0]
    assert "not used: mood" in told
    _run(table, "--output", made, "--settings", settings, "--rows", 200)
    graded = {row["label"] for row in _rows(made) if row["criterion"] == "stars"}
    assert {"1.0", "2.0", "4.0", "5.0"} <= graded


def test_command_exclude_leaves_texts_out(table: Path, tmp_path: Path) -> None:
    held_out = [row["text"] for row in _rows(table)[:6]]
    listed = tmp_path / "held-out.sha256"
    listed.write_text("\n".join(text_digest(text).hex() for text in held_out), encoding="utf-8")
    made = tmp_path / "rows.csv"
    _, told = _run(table, "--output", made, "--bins", 5, "--exclude", listed)
    used = {row[name] for row in _rows(made) for name in ("sentence1", "sentence2")}
    assert "6 left out by --exclude" in told
    assert len(used) == 30
    assert not used & {*held_out}


def test_build_several_tables_names_sets_after_folders(table: Path, tmp_path: Path) -> None:
    paths = []
    for name in ("cars", "boats"):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "train.jsonl.gz")
        lines = [
            json.dumps({"text": row["text"], "attributes": {"the topic": row["topic"]}})
            for row in _rows(table)
        ]
        with gzip.open(paths[-1], "wt", encoding="utf-8") as stream:
            stream.write("\n".join(lines))
    made = tmp_path / "rows.parquet"
    report = build_criteria(paths, made, CriteriaSettings(rows=40))
    assert [one.name for one in report.sets] == ["cars", "boats"]
    assert report.rows == sum(one.rows for one in report.sets) <= 80
    manifest = json.loads((tmp_path / "rows.manifest.json").read_text("utf-8"))
    assert len(manifest["made_from"]) == 2
    with pytest.raises(InputError, match="two would be called 'cars'"):
        build_criteria([paths[0], paths[0]], made, CriteriaSettings())


def test_build_cells_of_several_values_are_compared_as_sets(tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    values = ("red|blue", "blue|red", "red", "green", "green", "red|blue")
    path.write_text(
        "text,color\n" + "".join(f"thing {n},{one}\n" for n, one in enumerate(values)), "utf-8"
    )
    made = tmp_path / "rows.csv"
    build_criteria([path], made, CriteriaSettings(rows=40, own_name=1.0), separator="|")
    labels: dict[str, set[str]] = defaultdict(set)
    for row in _rows(made):
        pair = sorted((row["sentence1"], row["sentence2"]))
        labels[row["label"]].add("".join(text[-1] for text in pair))
    assert labels["5.0"] <= {"01", "05", "15", "34"}
    assert labels["1.0"] <= {"03", "04", "13", "14", "23", "24", "35", "45"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the column 'stars' holds numbers.*grade them with --bins"),
        (("--text", "txt"), "column 'txt' is missing.*Rename 'text' to 'txt'"),
        (("--criteria", "topics"), "Unknown criterion.*'topics'. Did you mean 'topic'"),
        (("--criteria", "topic", "--settings", "wrong.yaml"), "in the settings: 'tpic'. Did you"),
        (("--settings", "key.yaml"), "Unknown criteria key 'skp'. Did you mean 'skip'"),
        (("--output", "tickets.csv"), "is the input itself. Give another --output"),
        (("--exclude", "tickets.csv", "--bins", "5"), "the 0 texts .36 left out"),
    ],
)
def test_command_bad_input_is_one_line(
    table: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(table.parent)
    Path("wrong.yaml").write_text("criteria:\n  tpic:\n    skip: [a]\n", encoding="utf-8")
    Path("key.yaml").write_text("criteria:\n  topic:\n    skp: [a]\n", encoding="utf-8")
    before = table.read_bytes()
    given = options if "--output" in options else (*options, "--output", "rows.csv")
    with pytest.raises(InputError, match=message):
        _run("tickets.csv", *given)
    assert table.read_bytes() == before
    assert not Path("rows.csv").exists()
