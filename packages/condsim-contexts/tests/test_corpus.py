"""The corpus: files to paragraphs, paragraphs to sentences, and sentences on disk."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condsim.errors import InputError
from condsim_contexts.corpus import Corpus, prepare_corpus
from condsim_contexts.recipe import CorpusSettings
from condsim_contexts.sentences import find_inputs, read_paragraphs

pytest.importorskip("pyarrow")
pytest.importorskip("sentencex")

Write = Callable[..., Path]

RIVERS = (
    "= The river =\n"
    "== Its spring ==\n"
    "The river begins between two rocks. It is cold and clear there. Nobody lives near it.\n"
    "Further down stands an old mill. Its wheel turns slowly.\n"
    "\n"
    "= The lake =\n"
    "The lake has no bottom, people say. They are wrong about that.\n"
)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "text.txt") -> Path:
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


@pytest.fixture
def prepare(write, tmp_path):
    def run(content: str | bytes = RIVERS, *, name="text.txt", folder="corpus", **settings):
        path = write(content, name)
        return prepare_corpus([path], tmp_path / folder, settings=CorpusSettings(**settings))

    return run


def all_sentences(corpus: Corpus) -> list[str]:
    return corpus.sentences(np.arange(len(corpus)))


def test_corpus_text_file_keeps_order_documents_and_chunks(prepare) -> None:
    corpus = prepare(chunk_sentences=2)
    assert all_sentences(corpus) == [
        "The river begins between two rocks.",
        "It is cold and clear there.",
        "Nobody lives near it.",
        "Further down stands an old mill.",
        "Its wheel turns slowly.",
        "The lake has no bottom, people say.",
        "They are wrong about that.",
    ]
    assert corpus.documents.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert corpus.chunk_starts.tolist() == [0, 2, 4, 5, 7]  # no chunk crosses a document
    assert corpus.chunk_of(np.arange(7)).tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert list(corpus.chunk_texts())[2:] == [
        "Its wheel turns slowly.",
        "The lake has no bottom, people say. They are wrong about that.",
    ]
    counts = corpus.counts
    assert (counts.documents, counts.chunks, counts.sentences, counts.words) == (2, 4, 7, 38)


def test_corpus_neighbors_end_with_the_document(prepare) -> None:
    corpus = prepare()
    assert corpus.neighbors(np.array([0, 2, 4, 5])).tolist() == [
        [-1, -1, 1, 2],
        [0, 1, 3, 4],
        [2, 3, -1, -1],
        [-1, -1, 6, -1],
    ]
    assert corpus.neighbors(np.array([3]), left=1, right=0).tolist() == [[2]]


def test_corpus_sentences_any_order_read_as_asked(small_corpus: Corpus) -> None:
    ids = np.array([299, 0, 150, 0])
    texts = all_sentences(small_corpus)
    assert len(set(texts)) == len(small_corpus) == 300
    assert small_corpus.sentences(ids) == [texts[row] for row in ids]
    assert small_corpus.sentences(ids[:0]) == []
    with pytest.raises(IndexError):
        small_corpus.sentences(np.array([-1]))
    with pytest.raises(IndexError):
        small_corpus.sentences(np.array([300]))


def test_corpus_dropped_sentences_are_counted_by_reason(prepare) -> None:
    text = (
        "Too short. There are 12 apples on the tree. THERE are 7 apples, on the tree! "
        "This one is a little too long for it. * * * * A \x07 bell rings here."
    )
    corpus = prepare(text, max_words=8)
    assert all_sentences(corpus) == ["There are 12 apples on the tree."]
    assert corpus.counts.dropped == {
        "too_short": 1,
        "too_long": 1,
        "near_duplicate": 1,
        "not_text": 1,
    }


def test_corpus_one_sentence_documents_have_no_neighbors(prepare) -> None:
    rows = "image_id\tcaption\n1\tA dog runs home.  It barks.\n2\tTwo cats sleep all day\n"
    corpus = prepare(rows, name="captions.tsv.gz")
    assert all_sentences(corpus) == ["A dog runs home. It barks.", "Two cats sleep all day"]
    assert corpus.counts.single_sentence_documents == corpus.counts.chunks == 2
    assert (corpus.neighbors(np.arange(2)) == -1).all()


def test_corpus_max_words_total_takes_a_part_of_the_larger_corpus(prepare) -> None:
    text = "\n\n".join(f"Here lies the stone of number{'x' * n} and its moss." for n in range(40))
    names = {}
    for words in (90, 180, 10_000):
        corpus = prepare(text, folder=str(words), max_words_total=words)
        names[words] = set(all_sentences(corpus))
        assert corpus.counts.documents + corpus.counts.documents_left == 40
    assert names[90] < names[180] < names[10_000]
    assert [len(names[words]) for words in (90, 180)] == [10, 20]
    other = prepare(text, folder="seed", max_words_total=90, seed=1)
    assert set(all_sentences(other)) != names[90]


def test_corpus_same_inputs_are_not_read_again(prepare, monkeypatch) -> None:
    first = prepare()
    monkeypatch.setattr("condsim_contexts.corpus.read_paragraphs", None)
    second = prepare(name="renamed.txt")
    assert second.revision == first.revision


def test_corpus_killed_while_written_is_built_anew(prepare, tmp_path: Path) -> None:
    (tmp_path / "corpus.partial").mkdir()
    (tmp_path / "corpus.partial" / "sentences.arrow").write_bytes(b"half")
    (tmp_path / "corpus").mkdir()  # an empty folder is no obstacle
    assert len(prepare()) == 7
    assert not (tmp_path / "corpus.partial").exists()


def test_corpus_folder_of_something_else_is_refused(prepare, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear you")
    with pytest.raises(InputError):
        prepare(folder="full")
    with pytest.raises(InputError):
        prepare(folder="full/letter.txt")
    with pytest.raises(InputError, match="contains no corpus of this version"):
        Corpus(tmp_path / "missing")


def test_corpus_damaged_is_an_error(prepare, tmp_path: Path) -> None:
    prepare()
    (tmp_path / "corpus" / "sentences.arrow").write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        Corpus(tmp_path / "corpus")
    (tmp_path / "corpus" / "documents.npy").unlink()
    with pytest.raises(InputError, match=r"documents\.npy cannot be read"):
        Corpus(tmp_path / "corpus")
    (tmp_path / "corpus" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json"):
        Corpus(tmp_path / "corpus")


def parquet_bytes(**columns: list[Any]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


WIKI = " = First = \n\n one\n\n = = Part = = \n\n two\n\n = Empty = \n = Last = \n\n a = b\n"
JSONL = '{"text": "one\\ntwo", "id": 7}\n\n{"text": "== x ==\\n\\nthree"}\n{"text": ""}\n'
TSV = "id\tsentence\n1\tone\n2\ttwo\n"


@pytest.mark.parametrize(
    ("files", "settings", "paragraphs"),
    [
        pytest.param(
            {"a.txt": "\ufeffone\r\ntwo\r\n\r\n\r\nthree", "b.txt": "four\n"},
            {},
            [(0, "one"), (0, "two"), (1, "three"), (2, "four")],
            id="blank lines end documents",
        ),
        pytest.param(
            {"wiki.txt": WIKI}, {}, [(0, "one"), (0, "two"), (1, "a = b")], id="titles begin them"
        ),
        pytest.param(
            {"a.txt": "one\n\n= Title =\ntwo\n", "b.txt": "three\n\nfour"},
            {"documents": "file"},
            [(0, "one"), (0, "two"), (1, "three"), (1, "four")],
            id="a file is a document",
        ),
        pytest.param(
            {"a.jsonl.gz": JSONL}, {}, [(0, "one"), (0, "two"), (1, "three"), (2, "")], id="jsonl"
        ),
        pytest.param(
            {"a.parquet": {"body": ["one", "two\nthree"], "id": ["a", None]}},
            {"text_field": "body"},
            [(0, "one"), (1, "two"), (1, "three")],
            id="parquet",
        ),
        pytest.param({"a.tsv": TSV}, {"caption_field": "sentence"}, [(0, "one"), (1, "two")]),
    ],
)
def test_read_paragraphs_gives_documents_and_texts(
    write: Write, files: dict[str, Any], settings: dict[str, Any], paragraphs: Any
) -> None:
    paths = [
        write(parquet_bytes(**content) if isinstance(content, dict) else content, name)
        for name, content in files.items()
    ]
    parts = read_paragraphs(find_inputs(paths), CorpusSettings(**settings))
    assert [part[:2] for part in parts] == paragraphs


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\n\x89PNG\n", r"a.txt, line 2, byte 5 .* not valid UTF-8 \(0x89"),
        ("a.jsonl", b'{"body": "x"}\n', "column 'text' is missing; found 'body'"),
        ("a.jsonl", b'{"text": null}\n', "column 'text': must be a text, got None"),
        ("a.tsv", TSV.encode(), r"column 'caption' is missing; found 'id', 'sentence'"),
        ("a.parquet", b"no table", "a.parquet: not a complete Parquet file"),
    ],
)
def test_corpus_of_a_bad_file_is_one_line_and_leaves_nothing_behind(
    prepare, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        prepare(content, name=name)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == [name]


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
    with pytest.raises(InputError, match=r"b\.txt does not exist"):
        find_inputs([text, tmp_path / "b.txt"])
    with pytest.raises(InputError, match=r"a\.pdf must end in \.txt, .* or \.parquet"):
        find_inputs([tmp_path / "a.pdf"])
    with pytest.raises(InputError, match="empty contains no file that ends in"):
        find_inputs([tmp_path / "empty"])
    assert find_inputs([text, text]) == [text]
