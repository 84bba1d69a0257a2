"""The corpus: files to paragraphs, paragraphs to sentences, and sentences on disk."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condsim.contexts.corpus import Corpus, prepare_corpus
from condsim.contexts.recipe import CorpusSettings
from condsim.contexts.sentences import find_inputs, near_duplicate_key, read_paragraphs
from condsim.errors import InputError

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


def all_sentences(corpus: Corpus) -> list[str]:
    return corpus.sentences(np.arange(len(corpus)))


def test_corpus_text_file_keeps_order_documents_and_chunks(write: Write, tmp_path: Path) -> None:
    corpus = prepare_corpus(
        [write(RIVERS)], tmp_path / "corpus", settings=CorpusSettings(chunk_sentences=2)
    )
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


def test_corpus_neighbours_end_with_the_document(write: Write, tmp_path: Path) -> None:
    corpus = prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    assert corpus.neighbours(np.array([0, 2, 4, 5])).tolist() == [
        [-1, -1, 1, 2],
        [0, 1, 3, 4],
        [2, 3, -1, -1],
        [-1, -1, 6, -1],
    ]
    assert corpus.neighbours(np.array([3]), left=1, right=0).tolist() == [[2]]


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


def test_corpus_many_batches_read_as_one(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("condsim.contexts.corpus.ROWS_PER_BATCH", 2)
    monkeypatch.setattr("condsim.contexts.sentences._SENTENCES_PER_LOOKUP", 3)
    corpus = prepare_corpus(
        [write(RIVERS)], tmp_path / "corpus", settings=CorpusSettings(chunk_sentences=3)
    )
    texts = all_sentences(corpus)
    assert corpus.sentences(np.array([6, 1, 2])) == [texts[6], texts[1], texts[2]]
    assert corpus.chunk_starts.tolist() == [0, 3, 5, 7]
    assert [text.count(".") for text in corpus.chunk_texts()] == [3, 2, 2]
    assert " ".join(corpus.chunk_texts()) == " ".join(texts)


def test_corpus_dropped_sentences_are_counted_by_reason(write: Write, tmp_path: Path) -> None:
    text = (
        "Too short. There are 12 apples on the tree. THERE are 7 apples, on the tree! "
        "This one is a little too long for it. * * * * A \x07 bell rings here."
    )
    corpus = prepare_corpus(
        [write(text)], tmp_path / "corpus", settings=CorpusSettings(max_words=8)
    )
    assert all_sentences(corpus) == ["There are 12 apples on the tree."]
    assert corpus.counts.dropped == {
        "too_short": 1,
        "too_long": 1,
        "near_duplicate": 1,
        "not_text": 1,
    }


def test_corpus_one_sentence_documents_have_no_neighbours(write: Write, tmp_path: Path) -> None:
    rows = "image_id\tcaption\n1\tA dog runs home.  It barks.\n2\tTwo cats sleep all day\n"
    corpus = prepare_corpus([write(rows, "captions.tsv.gz")], tmp_path / "corpus")
    assert all_sentences(corpus) == ["A dog runs home. It barks.", "Two cats sleep all day"]
    assert corpus.counts.single_sentence_documents == corpus.counts.chunks == 2
    assert (corpus.neighbours(np.arange(2)) == -1).all()


def test_corpus_max_words_total_takes_a_part_of_the_larger_corpus(
    write: Write, tmp_path: Path
) -> None:
    text = "\n\n".join(f"Here lies the stone of number{'x' * n} and its moss." for n in range(40))
    names = {}
    for words in (90, 180, 10_000):
        corpus = prepare_corpus(
            [write(text)], tmp_path / str(words), settings=CorpusSettings(max_words_total=words)
        )
        names[words] = set(all_sentences(corpus))
        assert corpus.counts.documents + corpus.counts.documents_left == 40
    assert names[90] < names[180] < names[10_000]
    assert [len(names[words]) for words in (90, 180)] == [10, 20]
    other = prepare_corpus(
        [write(text)], tmp_path / "seed", settings=CorpusSettings(max_words_total=90, seed=1)
    )
    assert set(all_sentences(other)) != names[90]


def test_corpus_same_inputs_are_not_read_again(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    monkeypatch.setattr("condsim.contexts.corpus.read_paragraphs", None)
    second = prepare_corpus([write(RIVERS, "renamed.txt")], tmp_path / "corpus")
    assert second.revision == first.revision


def test_corpus_other_settings_or_inputs_are_refused(write: Write, tmp_path: Path) -> None:
    prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    with pytest.raises(InputError, match=r"a corpus of other inputs \(max_words"):
        prepare_corpus([write(RIVERS)], tmp_path / "corpus", settings=CorpusSettings(max_words=50))
    with pytest.raises(InputError, match=r"\(input files"):
        prepare_corpus([write(RIVERS + "\nMore of it.")], tmp_path / "corpus")


def test_corpus_killed_while_written_is_built_anew(write: Write, tmp_path: Path) -> None:
    (tmp_path / "corpus.partial").mkdir()
    (tmp_path / "corpus.partial" / "sentences.arrow").write_bytes(b"half")
    (tmp_path / "corpus").mkdir()  # an empty folder is no obstacle
    assert len(prepare_corpus([write(RIVERS)], tmp_path / "corpus")) == 7
    assert not (tmp_path / "corpus.partial").exists()


def test_corpus_failure_leaves_nothing_behind(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bad\.txt, line 2, byte 13 of the file: not valid UTF-8"):
        prepare_corpus([write(b"Fine so far.\n\xff\xfe", "bad.txt")], tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()
    assert not (tmp_path / "corpus.partial").exists()


@pytest.mark.parametrize("content", ["", "\n\n", "= A title =\n", "Too short.\n"])
def test_corpus_without_a_sentence_is_an_error(write: Write, tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"corpus is empty: text\.txt has no sentence of 3 to 60"):
        prepare_corpus([write(content)], tmp_path / "corpus")


def test_corpus_folder_of_something_else_is_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear you")
    with pytest.raises(InputError, match="is not empty and contains no corpus"):
        prepare_corpus([write(RIVERS)], tmp_path / "full")
    with pytest.raises(InputError, match="is a file"):
        prepare_corpus([write(RIVERS)], tmp_path / "full" / "letter.txt")
    with pytest.raises(InputError, match="contains no corpus; make it with"):
        Corpus(tmp_path / "missing")


def test_corpus_damaged_is_an_error(write: Write, tmp_path: Path) -> None:
    prepare_corpus([write(RIVERS)], tmp_path / "corpus")
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
        ("a.parquet", b"no table", "a.parquet, after row 0: not a complete Parquet file"),
    ],
)
def test_read_paragraphs_bad_file_is_one_line(
    write: Write, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        list(read_paragraphs([write(content, name)], CorpusSettings()))
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
    with pytest.raises(InputError, match=r"b\.txt does not exist"):
        find_inputs([text, tmp_path / "b.txt"])
    with pytest.raises(InputError, match=r"a\.pdf must end in \.txt, .* or \.parquet"):
        find_inputs([tmp_path / "a.pdf"])
    with pytest.raises(InputError, match="empty contains no file that ends in"):
        find_inputs([tmp_path / "empty"])
    with pytest.raises(InputError, match="is given twice"):
        find_inputs([text, text])


def test_prepare_corpus_keeps_the_first_of_near_duplicates_in_whichever_block(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("condsim.contexts.sentences._SENTENCES_PER_LOOKUP", 7)
    words = [
        f"word {chr(97 + number)} here"
        for number in np.random.default_rng(0).integers(20, size=200)
    ]
    (tmp_path / "a.txt").write_text("\n\n".join(words))
    corpus = prepare_corpus([tmp_path / "a.txt"], tmp_path / "corpus")
    assert corpus.sentences(np.arange(len(corpus))) == list(dict.fromkeys(words))
    assert corpus.counts.dropped["near_duplicate"] == 200 - len(set(words))


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("It's 3.5 km away!", "its 12 KM away", True),
        ("Straße am See.", "STRASSE AM SEE", True),
        ("now here", "nowhere", True),
        ("one two", "two one", False),
        ("7 dogs", "seven dogs", False),
    ],
)
def test_near_duplicate_key_same_words_same_key(one: str, two: str, same: bool) -> None:
    assert (near_duplicate_key(one) == near_duplicate_key(two)) is same
