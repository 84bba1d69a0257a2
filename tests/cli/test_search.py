from __future__ import annotations

import json

import pytest
from tests.commands import fault, succeed

from condsim.loading import load_scorer

pytest.importorskip("lancedb")

ROWS = """text,id,year
The parcel came two weeks late.,p1,2020
The app crashes when I log in.,p2,2021
Delivery took a whole month.,p3,2022
"""


@pytest.fixture
def folder(tmp_path):
    file = tmp_path / "tickets.csv"
    file.write_text(ROWS, "utf-8")
    words = ("index", "build", file, "--output", tmp_path / "made", "--key", "id")
    result = succeed(*words, "--condition", "the complaint")
    assert "made: 3 texts" in result.stderr
    return tmp_path / "made"


def test_index_build_missing_column_names_the_option(tmp_path):
    (tmp_path / "in.csv").write_text("body,id\nA late parcel.,1\n", "utf-8")
    message = fault("index", "build", tmp_path / "in.csv", "--output", tmp_path / "made")
    assert "'text' is missing; found 'body', 'id'. Name yours with --column" in message


def test_index_build_again_after_a_change_says_what_adds_rows(folder, tmp_path, caplog):
    words = ("index", "build", tmp_path / "tickets.csv", "--output", folder, "--key", "id")
    succeed(*words)
    assert not caplog.records
    succeed("index", "delete", folder, "--key", "p1")
    succeed(*words)
    assert caplog.messages == [
        f"{folder} is built already (2 texts now); 'condsim index add' adds rows."
    ]


def test_search_prints_score_key_and_text_of_rows_that_match(folder):
    result = succeed("search", folder, "It came late.", "--where", "year > 2021", "--top", 1)
    score, key, text = result.stdout.rstrip("\n").split("\t")
    assert 0 <= float(score) <= 1
    assert (key, text) == ("p3", "Delivery took a whole month.")
    result = succeed("search", folder, "It came late.", "--where", "year > 3000")
    assert (result.stdout, result.stderr) == ("", "Nothing was found.\n")


def test_index_add_update_delete_info(folder, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "It broke.", "id": "p4"}\n{"text": "Late.", "id": "p1"}\n', "utf-8")
    assert "1 rows added, 1 existed; 4 texts" in succeed("index", "add", folder, more).stderr
    result = succeed("index", "add", folder, more, "--update")
    assert "0 rows added, 2 replaced; 4 texts" in result.stderr
    result = succeed("index", "delete", folder, "--key", "p2", "--key", "p3")
    assert "2 rows deleted; 2 texts" in result.stderr
    info = json.loads(succeed("index", "info", folder).stdout)
    assert (info["rows"], info["prepared"]) == (2, {"the complaint": 2})
    assert info["columns"] == {"text": "text", "id": "text", "year": "number"}


def test_index_prepare_counts_and_approximate_needs_many_rows(folder):
    result = succeed("index", "prepare", folder, "--condition", "the topic")
    assert "the topic: 3 texts encoded" in result.stderr
    fault("index", "approximate", folder)


def test_index_build_and_add_leave_out_rows_without_text(tmp_path):
    first, more, folder = (tmp_path / name for name in ("in.csv", "more.csv", "made"))
    first.write_text("text,n\nIt came late.,1\n,2\nIt broke.,3\n", "utf-8")
    more.write_text("text,n\n ,4\nIt hums.,5\n", "utf-8")
    message = fault("index", "build", first, "--output", folder, "--strict")
    assert "row 2 (line 3), column 'text': must not be empty" in message
    result = succeed("index", "build", first, "--output", folder)
    assert "1 row has no text and thus no place in the index (row 2)" in result.stderr
    assert "made: 2 texts" in result.stderr
    assert "1 rows added; 3 texts" in succeed("index", "add", folder, more).stderr
    result = succeed("search", folder, "It came late.", "--condition", "the complaint")
    # Keys are the numbers of the rows; those of added rows follow.
    assert sorted(line.split("\t")[1] for line in result.stdout.splitlines()) == ["1", "3", "5"]


def test_search_overall_is_a_share_of_the_whole_in_each_score(folder):
    def scores(*options):
        lines = succeed("search", folder, "It came late.", *options).stdout.splitlines()
        return {key: float(score) for score, key, _ in (line.split("\t") for line in lines)}

    default, alone = scores(), scores("--overall", 0)
    assert scores("--overall", 0.3) == default != alone
    texts = "It came late.", "Delivery took a whole month."
    for by_key, share in (default, 0.3), (alone, 0.0):
        expected = load_scorer().score(*texts, "the complaint", overall=share)
        assert by_key["p3"] == pytest.approx(expected, abs=0.01)


def test_index_build_keeps_columns_with_a_dot_and_doubled_ones(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text,note,note,a.b\nIt came late.,1,2,3\n", "utf-8")
    succeed("index", "build", file, "--output", tmp_path / "made")
    words = ("--condition", "the complaint", "--where", "note_1 = 2", "--json")
    (hit,) = json.loads(succeed("search", tmp_path / "made", "It broke.", *words).stdout)
    assert hit["columns"] == {"text": "It came late.", "note": 1, "note_1": 2, "a_b": 3}


def test_search_weights_of_another_number_refused(folder):
    message = fault("search", folder, "late", "--condition", "a", "--weight", 1, "--weight", 2)
    assert "one --weight for each --condition, got 2 for 1" in message
