from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from condsim.data.files import DataFile, column_names, iter_rows
from condsim.data.formats import (
    FORMATS,
    READ,
    WRITTEN,
    open_writer,
    readable_suffixes,
    writable_suffixes,
    write_records,
)
from condsim.data.readers import array_items
from condsim.errors import InputError

TABLE = b"a,b\n1,2\n"


def cells(path, columns=("a", "b")):
    return [row.cells for row in iter_rows(path, columns=columns)]


def zipped(*names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, TABLE)
    return stream.getvalue()


def test_formats_every_suffix_is_listed_once():
    suffixes = [suffix for entry in FORMATS for suffix in entry.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert ".md" in writable_suffixes()
    assert ".md" not in readable_suffixes()
    assert all(suffix in READ for suffix in readable_suffixes())
    assert ".parquet" not in WRITTEN


def test_write_records_markdown_escapes_bars_and_lines(tmp_path):
    path = tmp_path / "x.md"
    records = [{"text": "a|b\nc", "score": 0.5}, {"text": "", "score": None}]
    assert write_records(path, records) == 2
    assert path.read_text() == "| text | score |\n|---|---|\n| a\\|b c | 0.5 |\n| | |\n"
    write_records(path, [], columns=("a", "b"))
    assert path.read_text() == "| a | b |\n|---|---|\n"


def test_open_writer_suffix_not_written_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"must be \.csv, .*\.md or \.parquet; got '\.xlsx'"):
        open_writer(tmp_path / "x.xlsx").__enter__()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv.gz", gzip.compress(TABLE, mtime=0)),
        ("x.csv.bz2", bz2.compress(TABLE)),
        ("x.csv.xz", lzma.compress(TABLE)),
        ("x.csv.zip", zipped("x.csv", "__MACOSX/x.csv")),
    ],
    ids=["gzip", "bzip2", "xz", "zip"],
)
def test_iter_rows_packed_file_read_and_its_packing_told_without_suffix(write, name, content):
    assert cells(write(name, content)) == [{"a": "1", "b": "2"}]
    with pytest.raises(InputError, match=r"name (of a packed table )?must end in \."):
        cells(write("x.csv", content))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv.zip", zipped("x.csv", "y.csv"), "must contain one file, got 2"),
        ("x.csv.zip", b"PK\x03\x04", "cannot be opened: File is not a zip file"),
        ("x.csv.xz", b"a,b\n", "cannot be read: Input format not supported"),
        ("x.csv.bz2", b"a,b\n", "cannot be read: Invalid data stream"),
        ("x.csv", b"PAR1\x15\0\n", "is a Parquet file; its name must end in .parquet"),
        ("x.csv", b"\x89PNG\r\n\x1a\n\0\0", "is a PNG image"),
        ("x.jsonl", b"%PDF-1.7\n", "is a PDF document"),
        ("x.tsv", b"\xd0\xcf\x11\xe0\xa1\xb1\n", "is an old Office document"),
    ],
)
def test_iter_rows_file_of_another_kind_is_one_line(write, name, content, message):
    with pytest.raises(InputError, match=message) as error:
        cells(write(name, content))
    assert "\n" not in str(error.value)
    assert column_names(write(name, content)) == ()


def test_data_file_opened_once_for_names_and_rows(write, monkeypatch):
    path = write("x.csv", "a;b\n1;2\n")
    opened = []
    own = type(path).open
    monkeypatch.setattr(type(path), "open", lambda *args: opened.append(1) or own(*args))
    file = DataFile(path)
    assert file.names() == ("a", "b")
    assert [row.cells for row in file.rows(("b",))] == [{"b": "2"}]
    assert len(opened) == 1
    assert [row.cells for row in file.rows(("a",))] == [{"a": "1"}]


def test_column_names_many_unnamed_take_no_longer_than_named(write):
    names = column_names(write("x.csv", "a" + "," * 20_000 + "\n1" + ",2" * 20_000 + "\n"))
    assert len(names) == 20_001
    (row,) = iter_rows(write("x.csv", "a,,x,\n1,2,3,4\n"), columns=("a",), whole_record=True)
    assert row.record == {"a": "1", "": "2", "x": "3", ".1": "4"}
    (row,) = iter_rows(
        write("x.csv", "a" + "," * 20_000 + "\n1" + ",2" * 20_000 + "\n"),
        columns=("a",),
        whole_record=True,
    )
    assert len(row.record) == 20_001


# JSON


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1, "b": "[,]"}, {"b": "x", "a": null}]',
        '\ufeff[\n  {"a": 1,\n "b": "[,]"},\n  {"b": "x", "a": null}\n]\n',
    ],
)
@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_iter_rows_json_array_read(write, name, text):
    path = write(name, text)
    assert column_names(path) == ("a", "b")
    assert cells(path) == [{"a": 1, "b": "[,]"}, {"a": None, "b": "x"}]


def test_array_items_cut_anywhere_are_the_same():
    text = '[ {"a": [1, "]"]} ,\n12,\n "x\\"y"] '
    expected = [(1, {"a": [1, "]"]}), (2, 12), (3, 'x"y')]
    for size in range(1, len(text)):
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        assert list(array_items(chunks)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1, "b": 2}', "row 2 .line 1.: not valid JSON .the array has no end"),
        ('[{"a": 1, "b": 2}\n {"a": 1}]', "row 2 .line 2.: not valid JSON .unexpected '{'"),
        ('[{"a": 1, "b": 2}] x', "unexpected 'x'"),
        ('[{"a": 1, "b": 2}, 7]', "row 2 .line 1.: must be a JSON object, got 7"),
        ('[{"a": 1, "b": 2}, {"a" 7}]', "row 2 .*not valid JSON .Expecting ':'"),
        ("[]", "has no rows"),
        ('{\n "a": {"0": 1}\n}', "or the file one array of objects"),
    ],
)
def test_iter_rows_json_array_damaged_refused(write, text, message):
    with pytest.raises(InputError, match=message):
        cells(write("x.json", text))


# Text


def test_iter_rows_txt_is_a_text_a_line_or_tsv(write):
    lines = write("x.txt", "It rained; hard.\n\nThe sun, too.\n")
    assert column_names(lines) == ("text",)
    assert cells(lines, ("text",)) == [{"text": "It rained; hard."}, {"text": "The sun, too."}]
    assert cells(write("y.txt", "a\tb\n1\t2\n")) == [{"a": "1", "b": "2"}]


def test_iter_rows_halves_of_characters_joined(write, caplog):
    caplog.set_level("INFO")
    halves = "a,b\n👍 fine,é\n".encode("utf-16", "surrogatepass").decode("utf-16")
    content = halves.replace("👍", "\ud83d\udc4d").encode("utf-8", "surrogatepass")
    path = write("x.csv", content)
    assert cells(path) == [{"a": "👍 fine", "b": "é"}]
    assert caplog.messages == [f"{path}: read with halves of characters joined (CESU-8), line 2"]
    with pytest.raises(InputError):
        cells(write("y.csv", b"a,b\n\xed\xa0\xbd,\xc3\xa9\n"))


# Workbooks and Parquet


def workbook(path, *rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_iter_rows_workbook_row_longer_than_header_gets_advice_for_workbooks(tmp_path):
    path = workbook(tmp_path / "x.xlsx", ["a", "b"], [1, 2, None, " "], [1, 2, 3])
    rows = iter_rows(path, columns=("a", "b"))
    assert next(rows).cells == {"a": "1", "b": "2"}
    with pytest.raises(InputError, match=r"got 3\. Give the column a name in the first row"):
        next(rows)


def repacked(path, name, content):
    """Write a workbook again with other content in one of its parts."""
    with zipfile.ZipFile(path) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, own in {**parts, name: content}.items():
            archive.writestr(entry, own)
    return path


def test_iter_rows_workbook_damaged_inside_is_one_line(tmp_path):
    path = workbook(tmp_path / "x.xlsx", *[["a", "b"]] * 500)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("xl/worksheets/sheet1.xml").header_offset
    content[start + 200 : start + 260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a complete Excel workbook") as error:
        cells(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"])
def test_iter_rows_workbook_of_one_endless_cell_refused_in_bounded_memory(tmp_path, part):
    resource = pytest.importorskip("resource")
    path = workbook(tmp_path / "x.xlsx", ["a", "b"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    repacked(path, part, b"<x><si><t>" + b"a" * (30 << 20) + b"</t></si></x>")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="a cell has more than 131,072 characters"):
        cells(path)
    # What made the file took more: kilobytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - max(before, after) < 20_000


def test_iter_rows_workbook_with_endless_styles_refused(tmp_path):
    path = workbook(tmp_path / "x.xlsx", ["a", "b"])
    repacked(path, "xl/styles.xml", b" " * (17 << 20))
    with pytest.raises(InputError, match=r"its part xl/styles\.xml has 17 MiB; at most 16"):
        cells(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_iter_rows_parquet_long_text_refused_and_types_kept(tmp_path, kind):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array(["x", "x"], kind), "b": [1, 2]}), path)
    file = DataFile(path)
    (batch,) = file.batches(("a",))
    assert batch.to_arrow().schema.types == [kind, pa.int64()]
    pq.write_table(pa.table({"a": pa.array(["x" * 131_073] * 9, kind), "b": [1] * 9}), path)
    with pytest.raises(InputError, match="column 'a': a cell has 131,073 characters; at most"):
        cells(path)
