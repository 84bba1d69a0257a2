from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from condsim.contexts.corpus.reading import find_inputs, read_paragraphs
from condsim.contexts.settings import CorpusSettings
from condsim.errors import InputError

Read = Callable[..., list[tuple[int, str]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_files(files: dict[str, str | bytes], **settings: object) -> list[tuple[int, str]]:
        paths = []
        for name, content in files.items():
            paths.append(tmp_path / name)
            paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
        known = CorpusSettings(**settings)  # type: ignore[arg-type]
        return [part[:2] for part in read_paragraphs(find_inputs(paths), known)]

    return read_files


def test_read_text_without_titles_blank_lines_end_documents(read: Read) -> None:
    parts = read({"a.txt": "\ufeffone\r\ntwo\r\n\r\n\r\nthree", "b.txt": "four\n"})
    assert parts == [
        (0, "one"),
        (0, "two"),
        (1, "three"),
        (2, "four"),
    ]


def test_read_text_with_titles_only_these_begin_documents(read: Read) -> None:
    text = " = First = \n\n one\n\n = = Part = = \n\n two\n\n = Empty = \n = Last = \n\n a = b\n"
    assert read({"wiki.txt": text}) == [
        (0, "one"),
        (0, "two"),
        (1, "a = b"),
    ]


def test_read_text_a_file_a_document(read: Read) -> None:
    files = {"a.txt": "one\n\n= Title =\ntwo\n", "b.txt": "three\n\nfour"}
    assert read(files, documents="file") == [
        (0, "one"),
        (0, "two"),
        (1, "three"),
        (1, "four"),
    ]


def test_read_jsonl_rows_are_documents(read: Read) -> None:
    rows = '{"text": "one\\ntwo", "id": 7}\n\n{"text": "== x ==\\n\\nthree"}\n{"text": ""}\n'
    assert read({"a.jsonl.gz": gzip.compress(rows.encode())}) == [
        (0, "one"),
        (0, "two"),
        (1, "three"),
        (2, ""),
    ]


def test_read_parquet_rows_are_documents(read: Read, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"body": ["one", "two\nthree"], "id": ["a", None]})
    parquet.write_table(table, tmp_path / "made.parquet")
    files: dict[str, str | bytes] = {"a.parquet": (tmp_path / "made.parquet").read_bytes()}
    assert read(files, text_field="body") == [
        (0, "one"),
        (1, "two"),
        (1, "three"),
    ]
    with pytest.raises(InputError, match=r"column 'text' is missing; found 'body', 'id'"):
        read(files)


def test_read_tsv_column_is_named(read: Read) -> None:
    rows = "id\tsentence\n1\tone\n2\ttwo\n"
    parts = read({"a.tsv": rows}, caption_field="sentence")
    assert parts == [(0, "one"), (1, "two")]
    with pytest.raises(InputError, match=r"column 'caption' is missing; found 'id', 'sentence'"):
        read({"a.tsv": rows})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\n\x89PNG\n", r"a.txt, line 2, byte 5 .* not valid UTF-8 \(0x89"),
        ("a.txt", b"fine\nnot\0fine\n", "a.txt, line 2, byte 8 of the file: NUL byte"),
        ("a.txt.gz", b"plain", "a.txt.gz, after line 0: not a whole gzip file"),
        pytest.param(
            "a.txt.gz",
            gzip.compress(b"one\ntwo\n" * 99, mtime=0)[:-12],
            "not a whole gzip file",
            id="cut.gz",  # the bytes differ between Python builds
        ),
        ("a.jsonl", b'{"text": "x"}\n{"text"\n', r"a.jsonl, row 2 \(line 2\): not valid JSON"),
        ("a.jsonl", b'["x"]\n', r"a.jsonl, row 1 \(line 1\): must be a JSON object"),
        ("a.jsonl", b'{"body": "x"}\n', "column 'text' is missing; found 'body'"),
        ("a.jsonl", b'{"text": null}\n', "column 'text': must be a text, got None"),
        ("a.tsv", b"id\tcaption\n1\n", r"a.tsv, row 1 \(line 2\): must have 2 fields"),
        ("a.parquet", b"no table", "a.parquet, after row 0: not a whole Parquet file"),
    ],
)
def test_read_bad_file_is_one_clear_line(
    read: Read, name: str, content: bytes, message: str
) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=message) as error:
        read({name: content})
    assert "\n" not in str(error.value)


def test_find_inputs_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt.gz", "sub/c.jsonl", "notes.md"):
        (tmp_path / name).touch()
    names = [path.name for path in find_inputs([tmp_path])]
    assert names == ["a.txt.gz", "b.txt", "c.jsonl"]


def test_find_inputs_bad_input_is_an_error(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.touch()
    (tmp_path / "a.pdf").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="at least one input file"):
        find_inputs([])
    with pytest.raises(InputError, match=r"b\.txt does not exist"):
        find_inputs([text, tmp_path / "b.txt"])
    with pytest.raises(InputError, match=r"a\.pdf must end in \.txt, .* or \.parquet"):
        find_inputs([tmp_path / "a.pdf"])
    with pytest.raises(InputError, match="empty holds no file that ends in"):
        find_inputs([tmp_path / "empty"])
    with pytest.raises(InputError, match="is given twice"):
        find_inputs([text, text])
