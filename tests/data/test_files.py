from __future__ import annotations

import datetime
import gzip
import io
import logging
import tracemalloc
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.files import column_names, iter_rows, read_batches
from condsim.data.text import FileFormat
from condsim.errors import InputError, MissingExtraError

AB = ("a", "b")
TEXTS = ("sentence1", "sentence2")


def rows_of(path, columns=AB, optional=()):
    rows = iter_rows(path, columns=columns, optional=optional)
    return [(row.number, row.cells) for row in rows]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        *(
            (
                "x.csv",
                mark + end.join(["a,b", "1,2", '"x, ""y""",é', ""]),
                ["1", "2", 'x, "y"', "é"],
            )
            for end in ("\n", "\r\n")
            for mark in ("", "\ufeff")
        ),
        ("x.csv", '\ufeff"a","b"\n1,2\n', ["1", "2"]),
        ("x.csv", 'a,b\n"one\ntwo",2\n"one\r\ntwo",3\n', ["one\ntwo", "2", "one\r\ntwo", "3"]),
        ("x.csv", "a , b\n 1 ,2\t\n", ["1", "2"]),
        ("x.csv", "b,extra,a\n2,9,1\n", ["1", "2"]),
        ("x.csv", ",a,b,\n0,1,2,\n", ["1", "2"]),
        ("x.csv", "a,note,b,note\n1,2,3,4\n", ["1", "3"]),
        ("x.csv", "a,b\n\n1,2\r\n\r\n3,4\n\n", ["1", "2", "3", "4"]),
        ("x.tsv", "a\tb\n\n1\t2\r\n\r\n3\t4\n\n", ["1", "2", "3", "4"]),
        ("x.tsv", 'a\tb\r\n"1\t2, "3"\r\n', ['"1', '2, "3"']),
    ],
)
def test_iter_rows_table_read_as_texts(write, name, content, expected):
    pairs = zip(expected[::2], expected[1::2], strict=True)
    rows = [{"a": first, "b": second} for first, second in pairs]
    assert rows_of(write(name, content)) == list(enumerate(rows, start=1))


def test_iter_rows_optional_column_absent_is_none(write):
    path = write("x.csv", "a,b\n1,2\n")
    assert rows_of(path, ("a",), ("b", "c")) == [(1, {"c": None, "a": "1", "b": "2"})]


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "X.JSONL"])
def test_iter_rows_jsonl_types_kept(write, name):
    path = write(name, '{"a": " é ", "b": 3}\n\n{"b": null, "a": 2.5, "c": [1]}\n')
    assert rows_of(path) == [(1, {"a": "é", "b": 3}), (2, {"a": 2.5, "b": None})]


def test_iter_rows_parquet_types_kept(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [" x ", "y"], "b": [1.5, None], "c": [[1], [2]]}), path)
    expected = [(1, {"a": "x", "b": 1.5, "d": None}), (2, {"a": "y", "b": None, "d": None})]
    assert rows_of(path, AB, ("d",)) == expected


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.csv", r"nothing\.csv: no such file"),
        ("", "is a folder, not a file"),
        ("x" * 400 + ".csv", "cannot be read"),
        ("x.ods", r"must be one of \.csv, \.tsv, .*\.parquet, got '\.ods'"),
        ("x.csv", r"is empty \(0 bytes\)"),
        ("x.parquet", r"is empty \(0 bytes\)"),
    ],
)
def test_iter_rows_wrong_path_refused_at_call(write, tmp_path, name, message):
    write("x.ods", "a,b\n")
    write("x.csv", "")
    write("x.parquet", "")
    with pytest.raises(InputError, match=message):
        iter_rows(tmp_path / name, columns=AB)


# Header


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        (
            "sentence1,Conditions,lable",
            ("sentence1", "condition", "label"),
            r"x\.csv, header: columns 'condition', 'label' are missing; found 'sentence1', "
            r"'Conditions', 'lable'\. Rename 'Conditions' to 'condition', 'lable' to 'label'\.",
        ),
        ("sentence2,x", TEXTS, r"'sentence1' is missing; found 'sentence2', 'x'\.$"),
        ("left,right", TEXTS, r"found 'left', 'right'\.$"),
        ("Sentence1,sentence2", TEXTS, r"Rename 'Sentence1' to 'sentence1'\."),
        (",".join(f"c{number}" for number in range(15)), ("a",), r"'c11' and 3 more\.$"),
        (
            "A cat sleeps.,A dog sleeps.",
            TEXTS,
            r"the first line is a row, put a line with the names",
        ),
        ("a,b, a", AB, r"header: each column name must occur once, got 'a'"),
    ],
)
def test_iter_rows_wrong_header_names_what_to_rename(write, header, columns, message):
    with pytest.raises(InputError, match=message):
        rows_of(write("x.csv", header + "\n"), columns)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize("column", ["Suggestion ", "Suggestion", " Suggestion"])
def test_iter_rows_column_names_matched_without_spaces(write, tmp_path, name, column):
    write("x.csv", "id,Suggestion \n1,more tea\n")
    write("x.jsonl", '{"id": 1, "Suggestion ": "more tea"}\n')
    pq.write_table(pa.table({"id": [1], "Suggestion ": ["more tea"]}), tmp_path / "x.parquet")
    assert column_names(tmp_path / name) == ("id", "Suggestion")
    assert rows_of(tmp_path / name, (column,)) == [(1, {column: "more tea"})]
    (batch,) = read_batches(tmp_path / name, columns=(column,))
    assert batch.texts(column) == ["more tea"]


def test_iter_rows_json_key_missing_from_a_row_is_none(write):
    path = write("x.jsonl", '{"a": 1}\n\n{"a": 1, "b": 2}\n')
    assert rows_of(path) == [(1, {"a": 1, "b": None}), (2, {"a": 1, "b": 2})]


# Bytes


def test_iter_rows_read_error_names_the_line(write, monkeypatch):
    class Broken(io.BytesIO):
        def readline(self, size=-1):
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().readline(size)

    path = write("x.csv", "a,b\n1,2\n")
    monkeypatch.setattr(Path, "open", lambda self, mode: Broken(b"a,b\n1,2\n"))
    with pytest.raises(InputError, match=r"x\.csv, after line 1: cannot be read: Input/output"):
        rows_of(path)


@pytest.mark.parametrize(
    "content",
    [
        b"a\tb\n" + b"x" * (1 << 20) + b"x",
        ("a\tb\n" + "\u0a0a" * (1 << 19) + "x\n").encode("utf-16"),
    ],
    ids=["UTF-8", "UTF-16"],
)
def test_iter_rows_endless_line_refused(write, monkeypatch, content):
    monkeypatch.setattr("condsim.data.text.MAX_LINE_BYTES", 1 << 20)
    with pytest.raises(InputError, match=r"line 2: is longer than 1 MiB"):
        rows_of(write("x.tsv", content))


@pytest.mark.parametrize(
    ("encoding", "form"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", "utf-16"),
        # Without a byte-order mark.
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("cp1252", "cp1252"),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_iter_rows_encoding_of_table_detected(write, caplog, name, encoding, form):
    caplog.set_level(logging.INFO)
    separator = "," if name == "x.csv" else "\t"
    text = "a,“b”\r\né,1\r\nü,2\r\n".replace(",", separator)
    path = write(name, text.encode(encoding))
    assert column_names(path) == ("a", "“b”")
    expected = [(1, {"a": "é", "“b”": "1"}), (2, {"a": "ü", "“b”": "2"})]
    assert rows_of(path, ("a", "“b”")) == rows_of(path, ("a", "“b”")) == expected
    expected_log = [f"{path}: read with text in {form}"] if form else []
    assert [record.getMessage() for record in caplog.records] == expected_log


def test_iter_rows_cp1252_after_many_ascii_lines_read_and_logged(write, caplog):
    caplog.set_level(logging.INFO)
    path = write("x.csv", b"a,b\n" + b"1,2\n" * 1000 + b"1,caf\xe9\n")
    assert rows_of(path)[-1] == (1001, {"a": "1", "b": "café"})
    assert caplog.messages == [f"{path}: read with text in cp1252, since line 1002 is not UTF-8"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_iter_rows_utf_16_json_lines_read(write, encoding):
    path = write("x.jsonl", '{"a": "ਊ", "b": 1}\n{"a": "y", "b": 2}'.encode(encoding))
    assert rows_of(path) == [(1, {"a": "ਊ", "b": 1}), (2, {"a": "y", "b": 2})]


# Dialects


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "a;b;c\n1,5;2;x\n2,5;3;y\n", "semicolons between cells"),
        ("x.csv", "a\tb\n1,5\t2\n2,5\t3\n", "tabs between cells"),
        ("x.csv", 'a|b\n"1,5"|2\n"2,5"|3\n', "vertical bars between cells"),
        ("x.tsv", 'a,b\n"1,5",2\n"2,5",3\n', "commas between cells"),
        ("x.csv", "sep=;\na;b\n1,5;2\n2,5;3\n", "semicolons between cells"),
        ("x.csv", '"sep=;"\r\na;b\r\n1,5;2\r\n2,5;3\r\n', "semicolons between cells"),
        ("x.csv", 'sep=,\na,b\n"1,5",2\n"2,5",3\n', None),
        ("x.csv", "'a','b'\n'1,5','2'\n'2,5','3'\n", "quotes ' around cells"),
        ("x.tsv", '"a"\t"b"\n"1,5"\t"2"\n"2,5"\t"3"\n', 'quotes " around cells'),
        ("x.tsv", 'a\tb\n"1,5"\t2\n"2,5"\t"3\n"\n', 'quotes " around cells'),
    ],
)
def test_iter_rows_dialect_detected_and_logged(write, caplog, name, content, message):
    caplog.set_level(logging.INFO)
    path = write(name, content)
    expected = [(1, {"a": "1,5", "b": "2"}), (2, {"a": "2,5", "b": "3"})]
    assert column_names(path)[:2] == AB
    assert rows_of(path) == expected
    with path.open("rb") as stream:
        batches = list(read_batches(stream, columns=AB))
    assert [(row.number, row.cells) for batch in batches for row in batch.rows] == expected
    own = [text for text in caplog.messages if text.startswith(f"{path}: ")]
    assert own == ([f"{path}: read with {message}"] if message else [])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.csv", 'a,b\n"1;2;3",2\n', {"a": "1;2;3", "b": "2"}),
        ("x.csv", "a,b\n1\t5,2\t6\n", {"a": "1\t5", "b": "2\t6"}),
        ("x.csv", "a\nx;y|z\n", {"a": "x;y|z"}),
        ("x.tsv", 'a\tb\n"1\t2"\n', {"a": '"1', "b": '2"'}),
        ("x.tsv", "a\nx, y\n", {"a": "x, y"}),
    ],
)
def test_iter_rows_undecided_dialect_is_that_of_the_suffix(write, caplog, name, content, expected):
    caplog.set_level(logging.INFO)
    assert rows_of(write(name, content), tuple(expected)) == [(1, expected)]
    assert not caplog.messages


def test_iter_rows_head_that_ends_in_a_cell_detected(write):
    rows = "".join(f'"x\ny {number}";2\n' for number in range(100))
    assert len(rows_of(write("x.csv", f"a;b\n{rows}"))) == 100


@pytest.mark.parametrize(
    ("separator", "encoding", "content"),
    [
        ("tab", None, "a,x\tb\né,1\t2\n".encode()),
        ("#", "Latin-1", "a,x#b\né,1#2\n".encode("latin-1")),
        (None, "cp1250", "a,x;b\né,1;2\n".encode("cp1250")),
        (";", "utf-16-le", "a,x;b\né,1;2\n".encode("utf-16-le")),
        (";", "utf-8", "a,x;b\né,1;2\n".encode("utf-8-sig")),
    ],
)
def test_read_batches_known_format_is_used(write, separator, encoding, content):
    path, known = write("x.csv", content), FileFormat.checked(separator, encoding)
    if separator is None:
        assert column_names(path, known) == ("a", "x;b")
        return
    assert column_names(path, known) == ("a,x", "b")
    with path.open("rb") as stream:
        for source in (path, stream):
            (batch,) = read_batches(source, columns=("a,x", "b"), file_format=known)
            assert batch.rows[0].cells == {"a,x": "é,1", "b": "2"}


@pytest.mark.parametrize(
    ("separator", "encoding", "message"),
    [
        ("::", None, "--separator: must be one character"),
        ("x", None, "--separator: must be one character"),
        ('"', None, "--separator: must be one character"),
        (None, "utf-32", "--encoding: must be a character set"),
        (None, "klingon", "got 'klingon'"),
        (None, "base64", "got 'base64'"),
        (None, "a\0b", "--encoding: must be"),
        (None, "", "--encoding: must be"),
        (None, "idna", "--encoding: must be"),
        (None, "unicode_escape", "--encoding: must be"),
    ],
)
def test_file_format_impossible_value_refused(separator, encoding, message):
    with pytest.raises(InputError, match=message):
        FileFormat.checked(separator, encoding)


@pytest.mark.parametrize(("encoding", "name"), [("utf-16", "x.csv"), ("ascii", "x.tsv")])
def test_iter_rows_encoding_that_does_not_fit_is_one_line(write, encoding, name):
    path, known = write(name, "a,b\né,1\n".encode()), FileFormat.checked(None, encoding)
    with pytest.raises(InputError, match=r"x\.[ct]sv, line \d.*: not valid") as error:
        list(iter_rows(path, columns=("a",), file_format=known))
    assert "\n" not in str(error.value)


# Excel


def write_workbook(path, rows, sheets=1):
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    for _ in range(sheets - 1):
        book.create_sheet()
    book.save(path)
    return path


@pytest.mark.parametrize("name", ["x.xlsx", "x.csv", "x.tsv"])
def test_iter_rows_excel_read_as_text(tmp_path, name):
    day = datetime.datetime(2026, 1, 2)
    rows = [["a ", "b", "c"], [], ["x\ny", 3, day], [None, 2.5, True], ["z"]]
    path = write_workbook(tmp_path / "x.xlsx", rows).rename(tmp_path / name)
    assert column_names(path) == ("a", "b", "c")
    assert [(row.number, row.line, row.cells) for row in iter_rows(path, columns=("a", "b"))] == [
        (1, 3, {"a": "x\ny", "b": "3"}),
        (2, 4, {"a": "", "b": "2.5"}),
        (3, 5, {"a": "z", "b": ""}),
    ]
    (batch,) = read_batches(path, columns=("a",))
    assert [record["c"] for record in batch.records()] == ["2026-01-02", "true", ""]


def test_iter_rows_excel_below_titles_reads_the_header_and_logs_it(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    rows = [["Survey of 2026"], [], ["all answers"], ["day", "a", "b"], [1, "x"], [2, "y", "z"]]
    path = write_workbook(tmp_path / "x.xlsx", rows)
    assert rows_of(path) == [(1, {"a": "x", "b": ""}), (2, {"a": "y", "b": "z"})]
    assert caplog.messages == [f"{path}: the header is in row 4, below 'Survey of 2026'"]


@pytest.mark.parametrize("rows", [["x"], ["x", "note"]])
def test_iter_rows_excel_of_one_column_keeps_its_header(rows, tmp_path):
    path = write_workbook(tmp_path / "x.xlsx", [["a"], rows, ["y"]])
    assert column_names(path) == ("a",)


def test_iter_rows_excel_of_many_sheets_reads_first_and_logs_it(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = write_workbook(tmp_path / "x.xlsx", [["a", "b"], [1, 2]], sheets=2)
    assert rows_of(path) == [(1, {"a": "1", "b": "2"})]
    assert caplog.messages == [f"{path}: read from the first of 2 sheets, 'Sheet'"]


def test_iter_rows_excel_damaged_refused(tmp_path, write):
    path = write_workbook(tmp_path / "x.xlsx", [["a", "b"], [1, 2]])
    for content in (path.read_bytes()[:-100], b"a,b\n1,2\n"):
        with pytest.raises(InputError):
            rows_of(write("y.xlsx", content))
    assert column_names(tmp_path / "y.xlsx") == ()


def test_read_batches_excel_on_standard_input_refused(tmp_path):
    path = write_workbook(tmp_path / "x.xlsx", [["a", "b"], [1, 2]])
    with path.open("rb") as stream, pytest.raises(InputError, match="give the name of its file"):
        read_batches(stream, columns=AB)


# Faults

_JSON = '{"a": 1, "b": 2}\n'
_CELL = r"x\.jsonl, row 1 \(line 1\), column 'b': "
_LINE_2 = r"row 2 \(line 2\): "
FAULTS = [
    ("x.csv", "a,b", "has no rows, only a header or blank lines"),
    ("x.csv", "\n\n", "has no rows, only a header or blank lines"),
    ("x.csv", "\ufeff", "has no rows, only a header or blank lines"),
    ("x.tsv", "a\tb\n", "has no rows, only a header or blank lines"),
    ("x.jsonl", "\n \n", "has no rows, only a header or blank lines"),
    # Bytes
    (
        "x.csv",
        "a,b\né".encode() + b"\xff,y\n",
        r"line 2, byte 6 of the file: not valid UTF-8 \(0xff",
    ),
    ("x.tsv", "a\tb\né".encode() + b"\xff\ty\n", "line 2, byte 6 of the file: not valid UTF-8"),
    ("x.jsonl", _JSON.encode() + b"\xff\n", "line 2, byte 17 of the file: not valid UTF-8"),
    ("x.csv", "a,b\né,é".encode()[:-1], "line 2, byte 7 of the file: not valid UTF-8"),
    ("x.csv", b"a,b\n1,\x81\n", "not valid UTF-8 .*'iconv -f cp1252 -t utf-8'"),
    ("x.csv", b"a,b\n\xe9,1\n\x81,2\n", "line 3, byte 8 of the file: not valid cp1252"),
    ("x.csv", b"a,b\n\xe9,1\n\xc3\xa9,2\n", "line 3: is UTF-8, and lines before it are cp1252"),
    ("x.csv", "α,b\n1,2\n".encode("utf-16-le"), "line 1, byte 3 of the file: NUL byte"),
    ("x.csv", "a,b\n1,2\n".encode("utf-16")[:-1], r"line 2: not valid UTF-16 \(truncated data\)"),
    ("x.csv", "a,b\né,1\x002\n", "line 2, byte 8 of the file: NUL byte"),
    ("x.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), r"x\.csv: is packed by gzip"),
    # Tables
    ("x.csv", "a;b\n1\n2\n3;4\n", r"separated by a comma in \.csv"),
    ("x.csv", "sep=;\na;b\n1;2\n3\n", r"row 2 \(line 4\): must have 2 fields"),
    ("x.csv", "a,b\n\n1,2\n1\n", r"row 2 \(line 4\): must have 2 fields .*, got 1\."),
    ("x.tsv", "a\tb\n\n1\t2\n1\t2\t3\n", r"row 2 \(line 4\): must have 2 fields .*, got 3\."),
    ("x.csv", 'a,b\n"1\n\n2",2\nx\n', r"row 2 \(line 5\)"),
    ("x.csv", 'a,b\n1,2\n"3,4\n5,6\n', r"row 2 \(line 3\): not valid CSV \(unexpected end"),
    ("x.csv", '"a,b\n1,2\n', r"header \(line 1\): not valid CSV \(unexpected end"),
    ("x.csv", 'a,b\n"1,2\n' + "some text\n" * 20_000, r"row 1 \(line 2\).*has at most 128 KiB"),
    ("x.csv", f'a,b\n1,"{"x" * (1 << 18)}"\n', r"row 1 \(line 2\).*has at most 128 KiB"),
    ("x.csv", 'a,b\n"1" x,2\n', r"row 1 \(line 2\): not valid CSV .*expected after"),
    ("x.csv", "a,b\r1,2\r", r"header \(line 1\): .*end lines with LF or CRLF"),
    ("x.tsv", "a\tb\n" + "word " * 30_000 + "\t1\n", "line 2: a cell has 150,000 characters"),
    # JSON lines
    ("x.jsonl", _JSON + '{"a": 1, "b"\n', _LINE_2 + r"not valid JSON \(.*':' .* character 14"),
    ("x.jsonl", _JSON + "[" * 100_000, _LINE_2 + r"not valid JSON \(.*recursion"),
    ("x.jsonl", _JSON + '{"a": 1, "b": ' + "9" * 5000 + "}", _LINE_2 + r"not valid .*digits"),
    ("x.jsonl", _JSON + "[1, 2]", _LINE_2 + r"must be a JSON object, got \["),
    ("x.jsonl", '{"a": 1, "B": 2}\n{"a": 1}\n', "first rows: column 'b' .*Rename 'B' to 'b'"),
    ("x.jsonl", '{"a": 1, "b": [1]}\n', _CELL + "must be text or a number, got "),
    ("x.jsonl", '{"a": 1, "b": {"c": 1}}\n', _CELL + "must be text or a number, got "),
    ("x.jsonl", r'{"a": 1, "b": "x\ud800"}', _CELL + "contains a NUL or half of a surrogate pair"),
    ("x.jsonl", r'{"a": 1, "b": "x\u0000"}', _CELL + "contains a NUL or half of a surrogate pair"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"), FAULTS, ids=[message for _, _, message in FAULTS]
)
def test_iter_rows_broken_file_refused_with_the_place(write, name, content, message):
    with pytest.raises(InputError, match=message):
        rows_of(write(name, content))


def test_iter_rows_json_boolean_read_as_in_csv_and_kept_in_record(write):
    path = write("x.jsonl", '{"a": true, "b": false}\n')
    assert rows_of(path) == [(1, {"a": "true", "b": "false"})]
    (row,) = iter_rows(path, columns=("a",), whole_record=True)
    assert row.record == {"a": True, "b": False}


# Parquet


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x"]}, r"header: column 'b' is missing; found 'a'"),
        ({"a": ["x"], "b": [[1, 2]]}, r"row 1, column 'b': must be text or a number"),
        ({"a": ["x"], "b": [b"x"]}, r"column 'b': must be text or a number, got bytes"),
        ({"a": pa.array([], pa.string()), "b": pa.array([], pa.int64())}, "has no rows"),
    ],
)
def test_iter_rows_parquet_wrong_content_refused(tmp_path, columns, message):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=message):
        rows_of(path)


def test_iter_rows_parquet_damaged_or_not_utf8_refused(tmp_path, write):
    path = tmp_path / "x.parquet"
    buffers = [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    text = pa.Array.from_buffers(pa.string(), 1, buffers)
    pq.write_table(pa.table({"a": text, "b": [1]}), path)
    with pytest.raises(InputError, match="not valid UTF-8"):
        rows_of(path)
    with pytest.raises(InputError, match="not a complete Parquet file"):
        rows_of(write("y.parquet", path.read_bytes()[:-20]))


@pytest.mark.parametrize(("name", "extra"), [("x.parquet", "parquet"), ("x.xlsx", "excel")])
def test_iter_rows_library_missing_names_extra(write, monkeypatch, name, extra):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("condsim.errors.importlib.import_module", absent)
    with pytest.raises(MissingExtraError, match=rf"pip install 'condsim\[{extra}\]'"):
        rows_of(write(name, "PAR1"))
