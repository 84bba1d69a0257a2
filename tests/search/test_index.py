from __future__ import annotations

import datetime
import decimal
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import condsim
from condsim.cache import locked
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.search import records as rows_module, writer as module
from condsim.search.index import Index
from condsim.search.store import AddResult


@pytest.fixture
def made(rows, scorer, tmp_path):
    return Index.build(rows, tmp_path / "made", key="id", model=scorer)


def keys(hits):
    return [hit.key for hit in hits]


def test_build_keeps_all_columns_with_their_values(made, rows):
    hits = made.search("A boat", "r", top=9)
    found = {hit.key: hit.columns for hit in hits}
    assert found["a"] == rows[0]
    assert found["d"] == rows[3] | {"tags": None}
    assert found["e"]["year"] is None
    assert {hit.key: hit.text for hit in hits}["b"] == "A red car on grey road"


def test_build_csv_finds_the_kind_of_each_column(scorer, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        "body,year,price,code,note,empty\n"
        "One boat,2020,1.5,007,x,\nTwo cars,,2,12,3,\nThree dogs,2022,1.5,8,y,\n",
        "utf-8",
    )
    index = Index.build(path, tmp_path / "made", text="body", model=scorer)
    kinds = {"body": "text", "year": "number", "price": "number"}
    assert index.about.columns == kinds | {"code": "text", "note": "text", "empty": "text"}
    (hit,) = index.search("cars", "r", where="price > 1.7 AND year IS NULL")
    assert hit.key == "2"
    assert hit.columns["code"] == "12"
    assert hit.columns["year"] is None


def test_columns_of_texts_and_keys_may_have_a_dot_and_an_underscore(scorer, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("Ticket No.,_body\n7,One boat\n8,Two cars\n")
    index = Index.build(path, tmp_path / "made", text="_body", key="Ticket No.", model=scorer)
    assert list(index.about.columns) == ["Ticket No_", "body"]
    path.write_text("Ticket No.,_body\n8,Two cats\n9,Three dogs\n")
    assert index.update(path) == AddResult(added=1, replaced=1)
    index.prepare("r")
    hits = Index.open(tmp_path / "made", model=scorer).search("cats", "r", where="`Ticket No_` > 7")
    assert [(hit.key, hit.text) for hit in hits] == [("8", "Two cats"), ("9", "Three dogs")]


def test_open_with_the_same_model_by_name_or_loaded(rows, tmp_path):
    model = condsim.load()
    Index.build(rows, tmp_path / "named", key="id")
    made = Index.build(rows, tmp_path / "loaded", key="id", model=model)
    assert made.about.model == "default"
    for name in ("named", "loaded"):
        for given in (None, model, "default", model.folder):
            assert len(Index.open(tmp_path / name, model=given)) == 5


def test_build_and_add_take_the_format_of_a_file(scorer, tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes("id;text\na;A café\n".encode("latin-1"))
    file_format = FileFormat.checked(";", "latin-1")
    index = Index.build(path, tmp_path / "made", key="id", model=scorer, file_format=file_format)
    path.write_bytes("id|text\nb|One boat; two cars\n".encode("utf-16"))
    index.add(path, file_format=FileFormat.checked("|", "utf-16"))
    texts = {hit.key: hit.text for hit in index.search("boat", "r")}
    assert texts == {"a": "A café", "b": "One boat; two cars"}


def test_open_reads_what_is_prepared_without_the_model(made, tmp_path, monkeypatch):
    made.prepare("r")
    monkeypatch.setattr(module, "load_encoder", lambda model: pytest.fail("it is loaded"))
    assert Index.open(tmp_path / "made").prepared() == {"r": 5}


def test_index_opens_its_folder(made, scorer, tmp_path):
    index = Index(tmp_path / "made", model=scorer)
    assert index.about == made.about
    assert keys(index.search("A boat", "r", top=2)) == keys(made.search("A boat", "r", top=2))
    assert repr(index).startswith(f"Index({str(tmp_path / 'made')!r}, model=")
    with pytest.raises(InputError):
        Index(tmp_path / "none")


@pytest.mark.slow
def test_build_killed_goes_on_with_nothing_twice(scorer, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("text\n" + "".join(f"word{n} and more\n" for n in range(40)), "utf-8")
    work = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from conftest import WordsScorer
from condsim.search import Index, records
records.ROWS_PER_BATCH = 10
def progress(stage, done, total):
    if stage == "encoding":
        print(done, flush=True)
        time.sleep(0.5)
Index.build({str(path)!r}, {str(tmp_path / "made")!r}, model=WordsScorer(), progress=progress)
"""
    process = subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= 20:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with pytest.raises(InputError, match=r"was not built to the end\. Run the command"):
        Index.open(tmp_path / "made")
    rest = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True)
    assert int(rest.stdout.split()[0]) >= 20
    index = Index.open(tmp_path / "made", model=scorer)
    hits = index.search("word7", "x", top=100)
    assert sorted(map(int, keys(hits))) == list(range(1, 41))


def test_build_again_changes_nothing_and_refuses_other_rows(made, rows, scorer, tmp_path):
    encoded = scorer.encoded
    again = Index.build(rows, tmp_path / "made", key="id", model=scorer)
    assert (len(again), scorer.encoded) == (5, encoded)
    with pytest.raises(InputError, match="holds an index of other rows"):
        Index.build(rows[:3], tmp_path / "made", key="id", model=scorer)
    with pytest.raises(InputError):
        Index.build(rows, tmp_path / "made", model=scorer)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "z"}, r"rows, row 2, column 'text': must not be empty"),
        ({"id": "z", "text": "x", "a.b": 1, "a_b": 2}, "two columns would be stored as 'a_b'"),
        ({"id": "z", "text": "x", "condsim_key": 1}, r"got 'condsim_key'"),
        ({"id": "a", "text": "x"}, r"key 'a' occurs twice"),
        ({"text": "x"}, r"row 2, column 'id': must not be empty"),
    ],
)
def test_build_bad_row_raises_before_anything_is_written(row, message, rows, scorer, tmp_path):
    with pytest.raises(InputError, match=message):
        Index.build([rows[0], row], tmp_path / "made", key="id", model=scorer)
    assert not (tmp_path / "made").exists()


def test_build_of_an_iterator_or_in_a_folder_of_something_else_raises(rows, scorer, tmp_path):
    with pytest.raises(InputError, match="The rows are read twice; give a list"):
        Index.build(iter(rows), tmp_path / "made", model=scorer)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x", "utf-8")
    with pytest.raises(InputError):
        Index.build(rows, tmp_path / "other", model=scorer)


def test_open_missing_or_of_another_model_or_format_raises(made, scorer, tmp_path):
    with pytest.raises(InputError, match=r"There is no index in .*make one with condsim index"):
        Index.open(tmp_path / "none")
    with pytest.raises(InputError, match=r"of the model 'words' .*not of 'default'"):
        Index.open(tmp_path / "made", model="default")
    made._writer.replace_metadata(format=0)
    with pytest.raises(InputError, match=r"another version of condsim .* format 1"):
        Index.open(tmp_path / "made", model=scorer)
    made._writer.replace_metadata(format=2)
    with pytest.raises(InputError, match=r"by a newer version of condsim .*--upgrade condsim"):
        Index.open(tmp_path / "made", model=scorer)


def test_open_damaged_raises_one_line(made, scorer, tmp_path):
    for path in (tmp_path / "made" / "rows.lance" / "data").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"cannot be read") as error:
        Index.open(tmp_path / "made", model=scorer).search("A boat", "r")
    assert "\n" not in str(error.value)
    shutil.rmtree(tmp_path / "made" / "rows.lance")
    with pytest.raises(InputError):
        Index.open(tmp_path / "made", model=scorer)


def test_add_extends_prepared_conditions(made, rows):
    made.prepare("r")
    assert made.add([{"id": "f", "text": "A yellow boat"}, rows[0]]) == AddResult(
        added=1, present=1
    )
    assert made.prepared() == {"r": 6}
    assert keys(made.search("A yellow boat", "r", top=1)) == ["f"]


def test_build_prepares_one_condition(rows, tmp_path, scorer):
    index = Index.build(rows, tmp_path / "made", condition="d", model=scorer)
    assert index.prepared() == {"d": len(rows)}


def test_update_replaces_text_columns_and_vectors(made):
    made.prepare("r")
    assert made.update([{"id": "a", "text": "Many birds sing", "year": 1}]) == AddResult(replaced=1)
    (hit,) = made.search("Many birds sing", "r", top=1)
    assert (hit.key, hit.columns["year"], len(made)) == ("a", 1, 5)
    assert hit.score == pytest.approx(1, abs=1e-3)
    assert not made.search("A red boat on blue water", "r", at_least=0.99)


def test_add_without_keys_numbers_the_rows_on(rows, scorer, tmp_path):
    index = Index.build(rows, tmp_path / "made", model=scorer)
    assert index.add([{"id": "z", "text": "Many birds sing"}]) == AddResult(added=1)
    assert keys(index.search("Many birds sing", "x", top=1)) == ["6"]
    with pytest.raises(InputError, match=r"has no keys, so rows cannot be updated"):
        index.update(rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "z", "text": "x", "yeer": 1}, r"rows: the index has no column 'yeer'; it has 'id'"),
        (
            {"id": "z", "text": "x", "year": "soon"},
            r"rows, row 1, column 'year': the index holds numbers in this column; got 'soon'",
        ),
    ],
)
def test_add_column_that_does_not_fit_raises(row, message, made):
    with pytest.raises(InputError, match=message):
        made.add([row])
    assert len(made) == 5


def test_delete_by_key_and_filter(made):
    made.prepare("r")
    assert made.delete(["a", "none"]) == 1
    assert made.delete(where="year >= 2021") == 2
    assert keys(made.search("dogs", "r", top=9)) == ["e", "b"]
    assert made.prepared() == {"r": 2}
    with pytest.raises(InputError, match="Give either keys or a filter"):
        made.delete()


@pytest.mark.parametrize(
    "where",
    ["id = 'a'; junk", "id = 'a' junk", "year > 3000) or (1=1", "year > 1 -- and 2", "(year"],
)
def test_delete_filter_that_goes_on_after_an_expression_raises(where, made):
    with pytest.raises(InputError):
        made.delete(where=where)
    assert made.delete(where="text = 'a; -- (b'") == 0
    assert len(made) == 5


def test_two_writers_at_once_raises(made, tmp_path):
    with (
        locked(tmp_path / "made.lock"),
        pytest.raises(InputError, match="Another process is writing"),
    ):
        made.delete(["a"])


def test_full_disk_says_so_and_keeps_what_was_written(rows, scorer, tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "ROWS_PER_BATCH", 2)
    index = Index.build(rows[:1], tmp_path / "made", key="id", model=scorer)
    table, calls = index._store.table("rows"), []

    class Full:
        def add(self, data):
            if calls:
                raise OSError("lance error: No space left on device (os error 28), rs:1")
            calls.append(1)
            table.add(data)

        def __getattr__(self, name):
            return getattr(table, name)

    index._store._tables["rows"] = Full()
    with pytest.raises(InputError, match=r"No space is left .*run the same command again"):
        index.add(rows)
    index = Index.open(tmp_path / "made", model=scorer)
    assert index.add(rows) == AddResult(added=3, present=2)
    assert len(index) == 5


def test_prepare_stopped_goes_on(made, scorer, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 2)

    class StoppedError(Exception):
        pass

    def stop(stage, done, total):
        if done >= 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        made.prepare("r", progress=stop)
    assert made.prepared() == {"r": 2}
    assert len(made.search("A boat", "r")) == 5  # in two stages
    before = scorer.encoded
    assert made.prepare("r") == 3
    assert (made.prepared(), scorer.encoded - before) == ({"r": 5}, 3)
    assert made.prepare("r") == 0


def test_vectors_are_those_under_the_condition(made, rows, scorer):
    with pytest.raises(InputError, match=r"is not prepared for 'r'\. Run condsim index prepare"):
        next(made.vectors("r"))
    made.prepare("r")
    ((found, vectors),) = made.vectors("r")
    assert sorted(found) == list("abcde")
    texts = {row["id"]: row["text"] for row in rows}
    expected = scorer.encode([texts[key] for key in found], "r")
    np.testing.assert_allclose(vectors, expected, atol=1e-3)


def test_open_sees_what_another_process_wrote(made, rows, scorer, tmp_path):
    other = Index.open(tmp_path / "made", model=scorer)
    assert len(other.search("A boat", "r")) == 5
    made.add([{"id": "f", "text": "A yellow boat"}])
    time.sleep(0.01)
    assert len(other.search("A boat", "r")) == 6


def test_build_csv_keeps_numbers_that_a_float_would_round(scorer, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        "text,id,huge\nOne boat,1234567890123456789,99999999999999999999\n"
        "Two cars,1234567890123456788,99999999999999999998\n",
        "utf-8",
    )
    index = Index.build(path, tmp_path / "made", model=scorer)
    assert index.about.columns == {"text": "text", "id": "int", "huge": "text"}
    assert index.delete(where="id = 1234567890123456789") == 1


def test_build_csv_makes_numbers_only_of_cells_that_come_back_as_written(scorer, tmp_path):
    cells = {
        "code": ("12E4", "7"),
        "version": ("1.10", "1.9"),
        "zero": ("-0", "1"),
        "mixed": ("10", "2.0"),
        "rating": ("3", "2.5"),
        "weight": ("10.0", "2.5"),
    }
    columns = {"text": ("A boat", "A car"), **cells}
    lines = [columns.keys(), *zip(*columns.values(), strict=True)]
    path = tmp_path / "in.csv"
    path.write_text("\n".join(map(",".join, lines)), "utf-8")
    index = Index.build(path, tmp_path / "made", model=scorer)
    for number, hit in enumerate(sorted(index.search("boat", "r"), key=lambda hit: hit.key)):
        written = {name: str(hit.columns[name]) for name in cells}
        assert written == {name: column[number] for name, column in cells.items()}
    assert index.about.columns["rating"] == "number"
    assert [hit.text for hit in index.search("boat", "r", where="rating < 3")] == ["A car"]


def test_build_rows_of_python_keep_the_kind_of_numbers_and_dates_as_text(scorer, tmp_path):
    day = datetime.date(2024, 1, 2)
    row = {"text": "One boat", "year": np.int64(2024), "price": np.float32(0.5), "day": day}
    index = Index.build([row], tmp_path / "made", model=scorer)
    kinds = {"text": "text", "year": "number", "price": "float", "day": "text"}
    assert index.about.columns == kinds
    (hit,) = index.search("boat", "r", where="year > 2020 AND day = '2024-01-02'")
    assert (hit.columns["day"], hit.columns["year"]) == ("2024-01-02", 2024)


@pytest.mark.parametrize("source", ["python", "parquet", "csv", "jsonl"])
def test_filters_find_the_same_rows_from_every_source(source, scorer, tmp_path):
    pandas = pytest.importorskip("pandas")
    times = ["2024-01-05", None, "2023-12-31 23:59:59"]
    frame = pandas.DataFrame(
        {
            "text": ["One boat", "Two cars", "Three dogs"],
            "when": pandas.to_datetime(times, format="ISO8601"),
            "kind": pandas.Categorical(["a", None, "b"]),
            "n": [1.5, None, 3.0],
        }
    )
    rows = frame.to_dict("records")
    if source != "python":
        rows = tmp_path / f"in.{source}"
        if source == "parquet":
            frame.to_parquet(rows)
        elif source == "csv":
            frame.to_csv(rows, index=False)
        else:
            frame.to_json(rows, orient="records", lines=True, date_format="iso")
    index = Index.build(rows, tmp_path / "made", model=scorer)

    def found(where):
        return sorted(hit.text for hit in index.search("boat", "r", where=where))

    assert found("when > '2024-01-01'") == ["One boat"]
    assert found("when >= date '2024-01-01'") == ["One boat"]
    assert found("when < timestamp '2024-01-01 00:00:00'") == ["Three dogs"]
    assert found("when is null") == found("kind is null") == found("n IS NULL") == ["Two cars"]
    assert found("kind = 'a'") == found("n < 2") == ["One boat"]
    index.delete(where="n > 2")
    assert len(index) == 2


@pytest.mark.parametrize(
    "value", [np.arange(2), decimal.Decimal("1.5"), b"x", object(), [np.arange(2)], {1, 2}]
)
def test_build_value_that_cannot_be_stored_raises_with_row_and_column(value, scorer, tmp_path):
    rows = [{"text": "One boat", "price": 1}, {"text": "Two cars", "price": value}]
    with pytest.raises(InputError, match=r"^rows, row 2, column 'price': must be text, a number"):
        Index.build(rows, tmp_path / "made", model=scorer)


def test_add_fraction_follows_whole_numbers(scorer, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("text,price\nOne boat,10\n", "utf-8")
    index = Index.build(path, tmp_path / "made", model=scorer)
    path.write_text("text,price\nTwo cars,10.50\n", "utf-8")
    index.add(path)
    assert sorted(hit.columns["price"] for hit in index.search("boat", "r")) == [10, 10.5]
    path.write_text("text,price\nTwo cars,11\nTwo cars,12E4\n", "utf-8")
    with pytest.raises(InputError, match=r"in\.csv, row 2 \(line 3\), column 'price': the index"):
        index.add(path)
    path.write_text("text,price,extra\nTwo cars,11,red\n", "utf-8")
    with pytest.raises(InputError, match=r"in\.csv: the index has no column 'extra'"):
        index.add(path)


def test_delete_one_key_as_text_deletes_that_row(scorer, tmp_path):
    rows = [{"text": f"Ticket {key}", "id": key} for key in ("1", "2", "12")]
    index = Index.build(rows, tmp_path / "made", key="id", model=scorer)
    assert index.delete("12") == 1
    assert sorted(keys(index.search("ticket", "t"))) == ["1", "2"]


@pytest.mark.parametrize(
    "where",
    [
        "year = ?",
        "$1",
        "length(repeat(text, 100000000)) > 0",
        "year > 1 AND md5(text) = 'x'",
        "text || 'x' = 'y'",
        "year > 1 /* x */",
        "year > " + "(" * 11_000,
        "yeer > 1",
        "text > 5",
    ],
)
def test_filter_beyond_comparisons_and_the_listed_functions_raises(where, made):
    with pytest.raises(
        InputError, match=r"(?s)cannot be used: .*and the functions abs, cast"
    ) as error:
        made.search("A boat", "r", where=where)
    assert error.value.__cause__ is None


def test_filter_of_the_listed_functions_is_used(made):
    where = "lower(text) LIKE 'a red%' AND length(text) > 5 AND coalesce(year, 0) - 1 IN (2018)"
    assert keys(made.search("A boat", "r", where=where)) == ["a"]


def test_filter_that_fails_on_the_cells_is_named_as_the_cause(made):
    with pytest.raises(InputError, match=r"The filter .*cannot be used: .*Cannot cast"):
        made.search("A boat", "r", where="cast(text AS int) > 3")
