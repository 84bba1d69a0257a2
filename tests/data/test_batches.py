from __future__ import annotations

import datetime
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.batch import BlankRows
from condsim.data.files import read_batches
from condsim.data.formats import open_writer, write_records
from condsim.errors import InputError

CSV = "id,text,score\n1,a dog,x\n2,a cat,y\n3,a cow,z\n"
JSONL = '{"text": "a dog", "a": 1}\n{"b": [2], "text": "a cat"}\n{"text": "a cow", "c": null}\n'
SCORES = np.array([0.1, 0.25, 1], np.float32)


def copy_with_scores(source, output, *, size=2):
    done = 0
    with open_writer(output) as writer:
        for batch in read_batches(source, columns=("text",), size=size):
            assert all(batch.texts("text"))
            batch["score"] = SCORES[done : done + len(batch)]
            done += len(batch)
            writer.write(batch)
    return writer.rows


def test_read_batches_size_bounds_each_batch(write):
    batches = list(read_batches(write("x.csv", CSV), columns=("text",), size=2))
    assert [batch.texts("text") for batch in batches] == [["a dog", "a cat"], ["a cow"]]
    assert [row.number for batch in batches for row in batch.rows] == [1, 2, 3]


def test_open_writer_csv_column_of_same_name_renamed(write, tmp_path):
    assert copy_with_scores(write("x.csv", CSV), tmp_path / "y.csv") == 3
    expected = "id,text,score.1,score\n1,a dog,x,0.1\n2,a cat,y,0.25\n3,a cow,z,1.0\n"
    assert (tmp_path / "y.csv").read_text() == expected


def test_open_writer_tsv_tab_or_line_end_becomes_space(write, tmp_path):
    text = r"a\tdog\r\nruns\n\nto  the\u00a0\u00a0tree\u2028"
    copy_with_scores(write("x.jsonl", f'{{"text": "{text}", "b": true}}\n'), tmp_path / "y.tsv")
    expected = "text\tb\tscore\na dog runs  to  the\u00a0\u00a0tree\ttrue\t0.1\n"
    assert (tmp_path / "y.tsv").read_text() == expected


def test_open_writer_jsonl_writes_null_for_infinity_and_nan(write, tmp_path):
    path = write("x.jsonl", '{"text": "a", "b": 1e999, "c": [NaN, {"d": -Infinity}], "e": 2}\n')
    with open_writer(tmp_path / "y.jsonl") as writer:
        for batch in read_batches(path, columns=("text",)):
            batch["score"] = np.array([np.inf])
            writer.write(batch)
    text = (tmp_path / "y.jsonl").read_text()
    assert text == '{"text": "a", "b": null, "c": [null, {"d": null}], "e": 2, "score": null}\n'


def test_open_writer_loop_of_links_refused(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"a\.csv cannot be written: its symbolic links form a"):
        open_writer(tmp_path / "a.csv").__enter__()
    (tmp_path / "c.csv").symlink_to(tmp_path / "new.csv")
    with open_writer(tmp_path / "c.csv") as writer:
        writer.write([{"a": 1}])
    assert (tmp_path / "new.csv").read_text() == "a\n1\n"


def test_open_writer_jsonl_keeps_types_and_differing_columns(write, tmp_path):
    copy_with_scores(write("x.jsonl", JSONL), tmp_path / "y.jsonl")
    records = [json.loads(line) for line in (tmp_path / "y.jsonl").read_text().splitlines()]
    assert records[0] == {"text": "a dog", "a": 1, "score": 0.1}
    assert records[1] == {"b": [2], "text": "a cat", "score": 0.25}


def test_open_writer_table_of_differing_rows_has_all_columns(write, tmp_path):
    copy_with_scores(write("x.jsonl", JSONL.replace("[2]", "2")), tmp_path / "y.csv")
    lines = (tmp_path / "y.csv").read_text().splitlines()
    assert lines == ["text,a,b,c,score", "a dog,1,,,0.1", "a cat,,2,,0.25", "a cow,,,,1.0"]


def test_open_writer_list_in_table_refused_and_nothing_written(write, tmp_path):
    with pytest.raises(InputError, match=r"row 2 \(line 2\), column 'b': a list or an object"):
        copy_with_scores(write("x.jsonl", JSONL), tmp_path / "y.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def test_open_writer_stream_is_tsv(write):
    stream = io.StringIO()
    copy_with_scores(io.BytesIO(JSONL.replace("[2]", "2").encode()), stream)
    assert stream.getvalue().splitlines()[::3] == ["text\ta\tb\tc\tscore", "a cow\t\t\t\t1.0"]
    stream = io.StringIO()
    copy_with_scores(io.BytesIO(b"text\tscore\na dog\t1\n"), stream)
    assert stream.getvalue() == "text\tscore.1\tscore\na dog\t1\t0.1\n"


def test_open_writer_parquet_keeps_types(tmp_path):
    days = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
    table = pa.table({"text": ["a", "b", "c"], "score": [b"1", b"2", b"3"], "day": days})
    pq.write_table(table, tmp_path / "x.parquet")
    assert copy_with_scores(tmp_path / "x.parquet", tmp_path / "y.parquet") == 3
    copied = pq.read_table(tmp_path / "y.parquet")
    assert copied.column_names == ["text", "score.1", "day", "score"]
    assert copied.schema.types == [pa.string(), pa.binary(), pa.date32(), pa.float32()]
    assert copied["day"].to_pylist() == days
    with pytest.raises(InputError, match="column 'score': must be text or a number"):
        copy_with_scores(tmp_path / "x.parquet", tmp_path / "y.csv")


def test_open_writer_parquet_to_csv_writes_dates_as_text(write, tmp_path):
    table = pa.table({"text": ["a"], "day": [datetime.date(2026, 1, 1)]})
    pq.write_table(table, tmp_path / "x.parquet")
    copy_with_scores(tmp_path / "x.parquet", tmp_path / "y.csv")
    assert (tmp_path / "y.csv").read_text() == "text,day,score\na,2026-01-01,0.1\n"
    with pytest.raises(InputError, match="Parquet is written only from a Parquet file"):
        copy_with_scores(write("x.csv", CSV), tmp_path / "y.parquet")


def test_open_writer_parquet_to_jsonl_keeps_lists_and_writes_null_for_nan(tmp_path):
    columns = {"text": ["a"], "day": [datetime.date(2026, 1, 1)], "tags": [["x"]]}
    pq.write_table(pa.table(columns | {"price": [float("nan")]}), tmp_path / "x.parquet")
    copy_with_scores(tmp_path / "x.parquet", tmp_path / "y.jsonl")
    record = {"text": "a", "day": "2026-01-01", "tags": ["x"], "price": None, "score": 0.1}
    assert json.loads((tmp_path / "y.jsonl").read_text()) == record


@pytest.mark.parametrize(
    ("name", "content"), [("y.csv", "a,b\n"), ("y.tsv", "a\tb\n"), ("y.jsonl", "")]
)
def test_write_records_none_leaves_a_header(tmp_path, name, content):
    assert write_records(tmp_path / name, [], columns=("a", "b")) == 0
    assert (tmp_path / name).read_text() == content


def test_open_writer_nan_is_an_empty_cell(tmp_path):
    write_records(tmp_path / "y.csv", [{"a": float("nan"), "b": True}])
    assert (tmp_path / "y.csv").read_text() == "a,b\n,true\n"


def test_open_writer_unknown_suffix_refused(tmp_path):
    with pytest.raises(InputError, match=r"must be \.csv, \.tsv, \.jsonl, \.ndjson"):
        open_writer(tmp_path / "y.xlsx").__enter__()


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_batch_take_gives_rows_by_index(write, tmp_path, name):
    path = tmp_path / name
    write("x.csv", CSV)
    if name == "x.parquet":
        pq.write_table(pa.table({"text": ["a dog", "a cat", "a cow"], "id": [1, 2, 3]}), path)
    (batch,) = read_batches(path, columns=("text",))
    chosen = batch.take(np.array([2, 0]))
    assert chosen.texts("text") == ["a cow", "a dog"]
    assert [str(record["id"]) for record in chosen.records()] == ["3", "1"]


FILES = {
    "x.csv": "a,b,n\none,the use,1\n , the use,2\ntwo,,3\nthree,the color,4\n",
    "x.jsonl": '{"a": "one", "b": "the use"}\n{"b": "the use"}\n{"a": "two", "b": null}\n'
    '{"a": "three", "b": "the color"}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_blank_rows_texts_skips_and_counts(write, name):
    (batch,) = read_batches(write(name, FILES[name]), columns=("a", "b"))
    blank = BlankRows()
    assert blank.note("no score") == ""
    rows, (texts, conditions) = blank.texts(batch, ("a", "b"), condition="b")
    assert rows.tolist() == [0, 3]
    assert (texts, conditions) == (["one", "three"], ["the use", "the color"])
    assert "1 row has no text and thus no score (row" in blank.note("no score")
    assert "1 row has no condition and thus no score (row" in blank.note("no score")


def test_blank_rows_strict_names_three_rows(write):
    rows = ["one", "", "two", "", "", "", "three"]
    path = write("x.csv", "a,b\n" + "".join(f"{text},{n}\n" for n, text in enumerate(rows)))
    (batch,) = read_batches(path, columns=("a",))
    message = r"row 2 .*column 'a': must not be empty\. Also blank: row 4, 5, \.\.\.\."
    with pytest.raises(InputError, match=message):
        BlankRows(strict=True).texts(batch, ("a",))


def test_blank_rows_texts_condition_of_marks_refused(write):
    (batch,) = read_batches(write("x.csv", "a,b\none,?!\n"), columns=("a", "b"))
    with pytest.raises(InputError, match="column 'b': must have a letter"):
        BlankRows().texts(batch, ("a", "b"), condition="b")
    assert BlankRows().texts(batch, ("a", "b"))[1][1] == ["?!"]


def test_blank_rows_condition_is_not_called_a_text(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("a,c\nA dog.,the animal\n,the animal\nA cat.,\nA cow.,\n")
    blank = BlankRows()
    for batch in read_batches(file, columns=("a", "c")):
        rows, _ = blank.texts(batch, ("a", "c"), condition="c")
    assert rows.tolist() == [0]
    assert blank.note("no score") == (
        "1 row has no text and thus no score (row 2); 2 rows have no condition and thus no score "
        "(row 3, 4); --strict stops there."
    )
