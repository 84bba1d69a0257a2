from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.errors import InputError
from condsim.loading import load_scorer

pytest.importorskip("lancedb")

ROWS = """text,id,year
The parcel came two weeks late.,p1,2020
The app crashes when I log in.,p2,2021
Delivery took a whole month.,p3,2022
"""


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def folder(tmp_path):
    file = tmp_path / "tickets.csv"
    file.write_text(ROWS, "utf-8")
    words = ("index", "build", file, "--output", tmp_path / "made", "--key", "id")
    result = invoke(*words, "--condition", "the complaint")
    assert result.exit_code == 0, result.exception
    assert "made: 3 texts" in result.stderr
    return tmp_path / "made"


def test_index_build_missing_column_told_to_name_it(tmp_path):
    (tmp_path / "in.csv").write_text("body,id\nA late parcel.,1\n", "utf-8")
    error = invoke("index", "build", tmp_path / "in.csv", "--output", tmp_path / "made").exception
    assert isinstance(error, InputError)
    assert "'text'; found 'body', 'id'. Name the column of the texts with --column." in str(error)


def test_index_build_again_after_a_change_says_what_adds_rows(folder, tmp_path, caplog):
    words = ("index", "build", tmp_path / "tickets.csv", "--output", folder, "--key", "id")
    invoke(*words)
    assert not caplog.records
    invoke("index", "delete", folder, "--key", "p1")
    invoke(*words)
    (told,) = (record.getMessage() for record in caplog.records)
    assert told == f"{folder} is built already (2 texts now); 'condsim index add' adds rows."


def test_search_prints_score_key_and_text(folder):
    result = invoke("search", folder, "It came late.", "--where", "year > 2020", "--top", 1)
    score, key, text = result.stdout.rstrip("\n").split("\t")
    assert 0 <= float(score) <= 1
    assert (key, text) in (
        ("p2", "The app crashes when I log in."),
        ("p3", "Delivery took a whole month."),
    )


def test_search_json_has_all_columns_and_each_score(folder):
    words = ("--condition", "the topic", "--condition", "the tone", "--weight", 3, "--weight", 1)
    result = invoke("search", folder, "It came late.", *words, "--json")
    hits = json.loads(result.stdout)
    assert len(hits) == 3
    assert set(hits[0]["scores"]) == {"the topic", "the tone"}
    assert set(hits[0]["columns"]) == {"text", "id", "year"}


def test_search_nothing_found_says_so(folder):
    result = invoke("search", folder, "It came late.", "--where", "year > 3000")
    assert (result.stdout, result.stderr) == ("", "Nothing was found.\n")


def test_search_weights_of_other_number_raises(folder):
    error = invoke("search", folder, "late", "--condition", "a", "--weight", 1, "--weight", 2)
    assert isinstance(error.exception, InputError)
    assert "one --weight for each --condition, got 2 for 1" in str(error.exception)


def test_index_add_update_delete_info(folder, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "It broke.", "id": "p4"}\n{"text": "Late.", "id": "p1"}\n', "utf-8")
    result = invoke("index", "add", folder, more)
    assert "1 rows added, 1 existed; 4 texts" in result.stderr
    result = invoke("index", "add", folder, more, "--update")
    assert "0 rows added, 2 replaced; 4 texts" in result.stderr
    result = invoke("index", "delete", folder, "--key", "p2", "--key", "p3")
    assert "2 rows deleted; 2 texts" in result.stderr
    told = json.loads(invoke("index", "info", folder).stdout)
    assert (told["rows"], told["prepared"]) == (2, {"the complaint": 2})
    assert told["columns"] == {"text": "text", "id": "text", "year": "int"}


def test_index_prepare_says_how_many_it_encoded(folder):
    result = invoke("index", "prepare", folder, "--condition", "the topic")
    assert "the topic: 3 texts encoded" in result.stderr
    error = invoke("index", "prepare", folder, "--condition", "x", "--workers", 2).exception
    assert "are for --engine ray" in str(error)


def test_index_approximate_of_few_rows_raises(folder):
    error = invoke("index", "approximate", folder).exception
    assert isinstance(error, InputError)


@pytest.mark.slow
def test_index_prepare_on_ray_encodes_the_same(folder):
    pytest.importorskip("ray")
    words = ("--condition", "the topic", "--engine", "ray", "--workers", 1)
    result = invoke("index", "prepare", folder, *words)
    assert result.exit_code == 0, result.exception
    here = invoke("index", "prepare", folder, "--condition", "the topic")
    assert "the topic: 0 texts encoded" in here.stderr


def test_index_build_and_add_leave_out_rows_without_text(tmp_path):
    first, more = tmp_path / "in.csv", tmp_path / "more.csv"
    first.write_text("text,n\nIt came late.,1\n,2\nIt broke.,3\n", "utf-8")
    more.write_text("text,n\n ,4\nIt hums.,5\n", "utf-8")
    folder = tmp_path / "made"
    error = invoke("index", "build", first, "--output", folder, "--strict").exception
    assert "row 2 (line 3), column 'text': must not be empty" in str(error)
    result = invoke("index", "build", first, "--output", folder)
    assert "1 row has no text and thus no place in the index (row 2)" in result.stderr
    assert "made: 2 texts" in result.stderr
    result = invoke("index", "add", folder, more)
    assert "1 rows added; 3 texts" in result.stderr
    result = invoke("search", folder, "It came late.", "--condition", "the complaint")
    # Keys are the numbers of the rows; those of added rows follow.
    assert sorted(line.split("\t")[1] for line in result.stdout.splitlines()) == ["1", "3", "5"]


def test_search_overall_is_a_share_of_the_whole_in_each_score(folder):
    def found(*options):
        lines = invoke("search", folder, "It came late.", *options).stdout.splitlines()
        return {key: float(score) for score, key, _ in (line.split("\t") for line in lines)}

    default, alone = found(), found("--overall", 0)
    assert found("--overall", 0.3) == default != alone
    model = load_scorer()
    text = "Delivery took a whole month."
    for scores, share in (default, 0.3), (alone, 0.0):
        expected = model.score("It came late.", text, "the complaint", overall=share)
        assert scores["p3"] == pytest.approx(expected, abs=0.01)


def test_index_build_keeps_columns_with_a_dot_and_doubled_ones(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text,note,note,a.b\nIt came late.,1,2,3\n", "utf-8")
    result = invoke("index", "build", file, "--output", tmp_path / "made")
    assert result.exit_code == 0, result.exception
    words = ("--condition", "the complaint", "--where", "note_1 = 2", "--json")
    (hit,) = json.loads(invoke("search", tmp_path / "made", "It broke.", *words).stdout)
    assert hit["columns"] == {"text": "It came late.", "note": 1, "note_1": 2, "a_b": 3}
