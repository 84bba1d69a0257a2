from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from condsim.contexts.corpus.preparing import prepare_corpus
from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.settings import CorpusSettings
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
    monkeypatch.setattr("condsim.contexts.corpus.stored.BATCH", 2)
    monkeypatch.setattr("condsim.contexts.corpus.reading._AT_ONCE", 3)
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


def test_corpus_of_one_sentence_is_a_corpus(write: Write, tmp_path: Path) -> None:
    corpus = prepare_corpus([write("Only this one is here.")], tmp_path / "corpus")
    assert len(corpus) == corpus.counts.documents == 1
    assert corpus.chunk_starts.tolist() == [0, 1]


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
    monkeypatch.setattr("condsim.contexts.corpus.preparing.read_paragraphs", None)
    second = prepare_corpus([write(RIVERS, "renamed.txt")], tmp_path / "corpus")
    assert second.revision == first.revision


def test_corpus_other_settings_or_inputs_are_refused(write: Write, tmp_path: Path) -> None:
    prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    with pytest.raises(InputError, match="another corpus: max_words is 60, not 50"):
        prepare_corpus([write(RIVERS)], tmp_path / "corpus", settings=CorpusSettings(max_words=50))
    with pytest.raises(InputError, match="its input files are others"):
        prepare_corpus([write(RIVERS + "\nMore of it.")], tmp_path / "corpus")


def test_corpus_revision_depends_on_content_and_settings(write: Write, tmp_path: Path) -> None:
    revisions = {
        prepare_corpus(
            [write(text)], tmp_path / f"{number}", settings=CorpusSettings(chunk_sentences=size)
        ).revision
        for number, (text, size) in enumerate([(RIVERS, 9), (RIVERS, 8), (RIVERS[:-20], 9)])
    }
    assert len(revisions) == 3


def test_corpus_manifest_names_inputs_without_their_folder(write: Write, tmp_path: Path) -> None:
    prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    text = (tmp_path / "corpus" / "manifest.json").read_text()
    assert json.loads(text)["inputs"][0]["name"] == "text.txt"
    assert str(tmp_path) not in text


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


def test_corpus_full_disk_is_one_line(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("condsim.contexts.corpus.stored.CorpusWriter.write", full)
    with pytest.raises(InputError, match=r"Cannot write the corpus .*: No space left on device"):
        prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize("content", ["", "\n\n", "= A title =\n", "Too short.\n"])
def test_corpus_without_a_sentence_is_an_error(write: Write, tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"corpus is empty: text\.txt has no sentence of 3 to 60"):
        prepare_corpus([write(content)], tmp_path / "corpus")


def test_corpus_folder_of_something_else_is_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear you")
    with pytest.raises(InputError, match="is not empty and holds no corpus"):
        prepare_corpus([write(RIVERS)], tmp_path / "full")
    with pytest.raises(InputError, match="is a file"):
        prepare_corpus([write(RIVERS)], tmp_path / "full" / "letter.txt")
    with pytest.raises(InputError, match="holds no corpus; make it with prepare_corpus"):
        Corpus(tmp_path / "missing")


def test_corpus_damaged_is_an_error(write: Write, tmp_path: Path) -> None:
    prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    (tmp_path / "corpus" / "sentences.arrow").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"damaged: cannot read sentences\.arrow"):
        Corpus(tmp_path / "corpus")
    (tmp_path / "corpus" / "documents.npy").unlink()
    with pytest.raises(InputError, match=r"damaged: cannot read documents\.npy"):
        Corpus(tmp_path / "corpus")
    (tmp_path / "corpus" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json"):
        Corpus(tmp_path / "corpus")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"min_words": 0}, "Corpus key 'min_words' must be at least 1. Got 0"),
        ({"min_words": 9, "max_words": 8}, "no more than 'max_words'. Got 9 and 8"),
        ({"language": "English"}, "code of two or three letters.*'English'"),
        ({"documents": "page"}, "Unknown value of 'documents': 'page'"),
        ({"max_words_total": 0}, "Corpus key 'max_words_total' must be at least 1"),
    ],
)
def test_corpus_bad_setting_is_an_error(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CorpusSettings(**setting)  # type: ignore[arg-type]


def test_corpus_of_the_textbooks_keeps_most_words(tmp_path: Path) -> None:
    text = Path(__file__).resolve().parents[2] / "../shared/data/corpus/openstax.txt.gz"
    if not text.is_file():
        pytest.skip("the OpenStax text is not here")
    corpus = prepare_corpus(
        [text], tmp_path / "corpus", settings=CorpusSettings(max_words_total=200_000)
    )
    assert 180_000 < corpus.counts.words < 220_000
    assert corpus.counts.documents_left > 2000


def test_corpus_of_another_format_is_an_error(write: Write, tmp_path: Path) -> None:
    prepare_corpus([write(RIVERS)], tmp_path / "corpus")
    path = tmp_path / "corpus" / "manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(InputError, match="made by another version of condsim"):
        Corpus(tmp_path / "corpus")
