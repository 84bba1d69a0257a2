from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.files import iter_rows
from condsim.errors import InputError, MissingExtraError

AB = ("a", "b")


def rows_of(path, columns=AB, optional=()):
    rows = iter_rows(path, columns=columns, optional=optional)
    return [(row.number, row.cells) for row in rows]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_iter_rows_csv_line_ends_and_mark_tolerated(write, end, mark):
    path = write("x.csv", mark + end.join(["a,b", "1,2", '"x, ""y""",é', ""]))
    assert rows_of(path) == [(1, {"a": "1", "b": "2"}), (2, {"a": 'x, "y"', "b": "é"})]


def test_iter_rows_csv_quoted_header_after_mark_read(write):
    assert rows_of(write("x.csv", '\ufeff"a","b"\n1,2\n')) == [(1, {"a": "1", "b": "2"})]


def test_iter_rows_csv_line_end_in_quotes_kept(write):
    path = write("x.csv", 'a,b\n"one\ntwo",2\n"one\r\ntwo",3\n')
    assert [cells["a"] for _, cells in rows_of(path)] == ["one\ntwo", "one\r\ntwo"]


def test_iter_rows_cells_surrounding_space_stripped(write):
    assert rows_of(write("x.csv", "a , b\n 1 ,2\t\n")) == [(1, {"a": "1", "b": "2"})]


def test_iter_rows_other_columns_ignored_and_order_free(write):
    assert rows_of(write("x.csv", "b,extra,a\n2,9,1\n")) == [(1, {"a": "1", "b": "2"})]


def test_iter_rows_optional_column_absent_is_none(write):
    path = write("x.csv", "a,b\n1,2\n")
    assert rows_of(path, ("a",), ("b", "c")) == [(1, {"c": None, "a": "1", "b": "2"})]


def test_iter_rows_blank_lines_skipped_and_not_counted(write):
    for name, separator in (("x.csv", ","), ("x.tsv", "\t")):
        path = write(name, f"a{separator}b\n\n1{separator}2\r\n\r\n3{separator}4\n\n")
        assert [number for number, _ in rows_of(path)] == [1, 2]


def test_iter_rows_tsv_quotes_kept(write):
    path = write("x.tsv", 'a\tb\r\n"1\t2, "3"\r\n')
    assert rows_of(path) == [(1, {"a": '"1', "b": '2, "3"'})]


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "X.JSONL"])
def test_iter_rows_jsonl_types_kept(write, name):
    path = write(name, '{"a": " é ", "b": 3}\n\n{"b": null, "a": 2.5, "c": [1]}\n')
    assert rows_of(path) == [(1, {"a": "é", "b": 3}), (2, {"a": 2.5, "b": None})]


def test_iter_rows_parquet_types_kept(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [" x ", "y"], "b": [1.5, None], "c": [[1], [2]]}), path)
    expected = [(1, {"a": "x", "b": 1.5, "d": None}), (2, {"a": "y", "b": None, "d": None})]
    assert rows_of(path, AB, ("d",)) == expected


def test_iter_rows_text_path_accepted(write):
    assert rows_of(str(write("x.csv", "a,b\n1,2\n")))[0][0] == 1


@pytest.mark.parametrize(
    ("name", "row"), [("x.csv", "some text,more text\n"), ("x.jsonl", '{"a": "some", "b": 1}\n')]
)
def test_iter_rows_large_file_memory_bounded(write, name, row):
    path = write(name, ("a,b\n" if name == "x.csv" else "") + row * 20_000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in iter_rows(path, columns=AB))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 20_000
    assert peak < 300_000  # bytes; the file has at least 400,000


# Paths


def test_iter_rows_missing_file_refused_at_call(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.csv: no such file"):
        iter_rows(tmp_path / "nothing.csv", columns=AB)


def test_iter_rows_folder_refused_at_call(tmp_path):
    with pytest.raises(InputError, match="is a folder, not a file"):
        iter_rows(tmp_path, columns=AB)


def test_iter_rows_unknown_suffix_lists_accepted(write):
    rule = r"one of \.csv, \.tsv, \.jsonl, \.ndjson, \.parquet, got '\.xlsx'"
    with pytest.raises(InputError, match=rule):
        iter_rows(write("x.xlsx", "a,b\n"), columns=AB)


def test_iter_rows_impossible_path_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        iter_rows(tmp_path / ("x" * 400 + ".csv"), columns=AB)


def test_iter_rows_unreadable_file_refused(write, monkeypatch):
    path = write("x.csv", "a,b\n1,2\n")

    def deny(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(InputError, match=r"cannot be opened \(Permission denied\)"):
        rows_of(path)


# Empty files


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_iter_rows_no_bytes_refused_at_call(write, suffix):
    with pytest.raises(InputError, match=r"is empty \(0 bytes\)"):
        iter_rows(write(f"x.{suffix}", ""), columns=AB)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "a,b\n"),
        ("x.csv", "a,b"),
        ("x.csv", "\n\n"),
        ("x.csv", "\ufeff"),
        ("x.tsv", "a\tb\n"),
        ("x.jsonl", "\n \n"),
    ],
)
def test_iter_rows_no_rows_refused(write, name, content):
    with pytest.raises(InputError, match=r"has no rows, only a header or blank lines"):
        rows_of(write(name, content))


def test_iter_rows_parquet_no_rows_refused(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int64())}), path)
    with pytest.raises(InputError, match="has no rows"):
        rows_of(path)


# Header


def test_iter_rows_missing_column_lists_found_and_near(write):
    expected = (
        r"x\.csv, header: columns 'condition', 'label' are missing; found 'sentence1', "
        r"'Conditions', 'lable'\. Rename 'Conditions' to 'condition', 'lable' to 'label'\."
    )
    path = write("x.csv", "sentence1,Conditions,lable\n1,2,3\n")
    with pytest.raises(InputError, match=expected):
        rows_of(path, ("sentence1", "condition", "label"))


def test_iter_rows_missing_column_wanted_ones_not_near(write):
    path = write("x.csv", "sentence2,x\n1,2\n")
    with pytest.raises(InputError, match=r"'sentence1' is missing; found 'sentence2', 'x'\.$"):
        rows_of(path, ("sentence1", "sentence2"))


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("left,right,aspect", r"found 'left', 'right', 'aspect'\.$"),
        ("Sentence1,sentence2,CONDITION", r"Rename 'Sentence1' to 'sentence1', "),
        ("sentence,x,y", r"are missing; .* Rename 'sentence' to 'sentence1'\."),
    ],
)
def test_iter_rows_missing_columns_told_what_to_rename(write, header, hint):
    with pytest.raises(InputError, match=hint):
        rows_of(write("x.csv", f"{header}\n1,2,3\n"), ("sentence1", "sentence2", "condition"))


@pytest.mark.parametrize("separator", [";", "\t"])
def test_iter_rows_wrong_separator_named(write, separator):
    path = write("x.csv", f"a{separator}b\n1{separator}2\n")
    with pytest.raises(InputError, match=r"separated by a comma in \.csv"):
        rows_of(path)


def test_iter_rows_duplicate_column_refused(write):
    with pytest.raises(InputError, match=r"header: each column name must occur once, got 'a'"):
        rows_of(write("x.csv", "a,b, a\n1,2,3\n"))


def test_iter_rows_unused_column_twice_tolerated(write):
    path = write("x.csv", "a,note,b,note\n1,2,3,4\n")
    assert rows_of(path) == [(1, {"a": "1", "b": "3"})]


def test_iter_rows_unnamed_columns_tolerated(write):
    assert len(rows_of(write("x.csv", ",a,b,\n0,1,2,\n"))) == 1


def test_iter_rows_json_missing_column_names_row(write):
    path = write("x.jsonl", '{"a": 1, "b": 2}\n\n{"a": 1, "B": 2}\n')
    with pytest.raises(InputError, match=r"row 2 \(line 3\): column 'b' .*Rename 'B' to 'b'"):
        rows_of(path)


# Bytes


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl"])
def test_iter_rows_broken_utf8_names_line_and_byte(write, name):
    first = {"x.csv": b"a,b\n", "x.tsv": b"a\tb\n", "x.jsonl": b'{"a": 1, "b": 2}\n'}[name]
    place = rf"line 2, byte {len(first) + 1} of the file: not valid UTF-8 \(0xff, "
    with pytest.raises(InputError, match=place):
        rows_of(write(name, first + b"x\xff,y\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,\xc3", r"line 2, byte 6 of the file: not valid UTF-8"),
        ("a,b\n1,“é”\n".encode("cp1252"), r"not valid UTF-8 .*'iconv -f cp1252 -t utf-8'"),
        ("a,b\n1,2\n".encode("utf-16"), r"line 1, byte 0 of the file: not valid UTF-8"),
        ("a,b\né,1\x002\n", r"line 2, byte 8 of the file: NUL byte"),
        (
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            r"x\.csv: is packed by gzip",
        ),
    ],
)
def test_iter_rows_no_text_in_utf8_refused(write, content, message):
    with pytest.raises(InputError, match=message):
        rows_of(write("x.csv", content))


def test_iter_rows_read_error_names_the_line(write, monkeypatch):
    class Broken(io.BytesIO):
        def readline(self, size=-1):
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().readline(size)

    path = write("x.csv", "a,b\n1,2\n")
    monkeypatch.setattr(Path, "open", lambda self, mode: Broken(b"a,b\n1,2\n"))
    with pytest.raises(InputError, match=r"x\.csv, after line 1: cannot be read .*Input/output"):
        rows_of(path)


def test_iter_rows_endless_line_refused(write, monkeypatch):
    monkeypatch.setattr("condsim.data.formats.MAX_LINE_BYTES", 1 << 20)
    with pytest.raises(InputError, match=r"line 2: is longer than 1 MiB"):
        rows_of(write("x.tsv", b"a\tb\n" + b"x" * (1 << 20) + b"x"))


# Records


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
@pytest.mark.parametrize(("line", "fields"), [("1", 1), ("1,2,3", 3)])
def test_iter_rows_wrong_number_of_fields_named(write, name, line, fields):
    text = f"a,b\n\n1,2\n{line}\n".replace(",", "," if name == "x.csv" else "\t")
    rule = rf"row 2 \(line 4\): must have 2 fields as the header has, got {fields}\."
    with pytest.raises(InputError, match=rule):
        rows_of(write(name, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('a,b\n"1\n\n2",2\nx\n', r"row 2 \(line 5\)"),
        ('a,b\n1,2\n"3,4\n5,6\n', r"row 2 \(line 3\): not valid CSV \(unexpected end"),
        ('"a,b\n1,2\n', r"header \(line 1\): not valid CSV \(unexpected end"),
        (
            'a,b\n"1,2\n' + "some text,more text\n" * 10_000,
            r"row 1 \(line 2\).*has at most 128 KiB",
        ),
        (f'a,b\n1,"{"x" * (1 << 18)}"\n', r"row 1 \(line 2\).*has at most 128 KiB"),
        ('a,b\n"1" x,2\n', r"row 1 \(line 2\): not valid CSV .*expected after"),
        ("a,b\r1,2\r", r"header \(line 1\): .*end lines with LF or CRLF"),
    ],
    ids=["after long cell", "open", "open header", "open early", "long", "text after", "CR"],
)
def test_iter_rows_broken_csv_names_the_row(write, content, message):
    with pytest.raises(InputError, match=message):
        rows_of(write("x.csv", content))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"a": 1, "b"', "Expecting ':' delimiter at character 14"),
        ("[" * 100_000, "recursion"),
        ('{"a": 1, "b": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_iter_rows_invalid_json_names_row(write, line, fault):
    rule = rf"row 2 \(line 2\): not valid JSON \(.*{fault}.*Each line must be one object"
    with pytest.raises(InputError, match=rule):
        rows_of(write("x.jsonl", f'{{"a": 1, "b": 2}}\n{line}\n'))


def test_iter_rows_json_list_refused(write):
    path = write("x.jsonl", json.dumps([{"a": 1, "b": 2}]))
    with pytest.raises(InputError, match=r"row 1 \(line 1\): must be a JSON object, got \[\{"):
        rows_of(path)


@pytest.mark.parametrize("value", ["true", "[1]", '{"c": 1}'])
def test_iter_rows_json_nested_value_refused(write, value):
    rule = r"row 1 \(line 1\), column 'b': must be text or a number, got "
    with pytest.raises(InputError, match=rule):
        rows_of(write("x.jsonl", f'{{"a": 1, "b": {value}}}\n'))


@pytest.mark.parametrize("value", [r"x\ud800", r"x\u0000"])
def test_iter_rows_json_impossible_text_refused(write, value):
    with pytest.raises(InputError, match=r"column 'b': contains a NUL or half of a surrogate pair"):
        rows_of(write("x.jsonl", f'{{"a": 1, "b": "{value}"}}\n'))


# Parquet


def test_iter_rows_parquet_missing_column_named(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ["x"]}), path)
    with pytest.raises(InputError, match=r"header: column 'b' is missing; found 'a'"):
        rows_of(path)


def test_iter_rows_parquet_nested_value_refused(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": [[1, 2]]}), path)
    with pytest.raises(InputError, match=r"row 1, column 'b': must be text or a number"):
        rows_of(path)


def test_iter_rows_parquet_damaged_refused(tmp_path, write):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), path)
    with pytest.raises(InputError, match="not a complete Parquet file"):
        rows_of(write("y.parquet", path.read_bytes()[:-20]))


def test_iter_rows_parquet_broken_utf8_refused(tmp_path):
    path = tmp_path / "x.parquet"
    data = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    pq.write_table(pa.table({"a": data, "b": [1]}), path)
    with pytest.raises(InputError, match="not valid UTF-8"):
        rows_of(path)


def test_iter_rows_parquet_without_pyarrow_names_extra(write, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("condsim.errors.importlib.import_module", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'condsim\[parquet\]'"):
        rows_of(write("x.parquet", "PAR1"))
