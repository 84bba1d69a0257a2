from __future__ import annotations

import gzip

import pytest
from papers.data.sections import draw_section_triplets, load_wiki_sections, write_triplets

from condsim.data.triplets import Triplets, load_triplets
from condsim.errors import InputError

pytest.importorskip("sentencex")


def document(number: int) -> str:
    """A document of three sections of four sentences each; each sentence names its place."""
    sections = []
    for section in ("bread", "milk", "salt"):
        sentences = [
            f"Sentence {place} of article {number} is about {section}." for place in range(4)
        ]
        sections.append(
            f"== About {section} ==\n{' '.join(sentences[:2])}\n=== More ===\n"
            f"{' '.join(sentences[2:])}\n"
        )
    lead = f"This lead of article {number} is about nothing. "
    return f"= Book / {number} =\n{lead}Copyright of all articles is with us.\n" + "".join(sections)


@pytest.fixture
def text() -> str:
    again = "== Notes ==\nThis note is the same in every article. It says very little here.\n"
    return "\n".join(document(number) + again for number in range(10))


def places(sentence: str) -> tuple[str, str]:
    words = sentence.rstrip(".").split()
    return words[4], words[-1]


def test_draw_section_triplets_negative_is_of_another_section_of_the_document(write, text):
    drawn = draw_section_triplets(write("book.txt", text), count=1000, dev_share=0.2)
    assert drawn.documents == (8, 2)
    assert (drawn.train.name, drawn.dev.name) == ("book-train", "book-dev")
    assert (len(drawn.train), len(drawn.dev)) == (8 * 12, 2 * 12)  # each sentence once
    for part in (drawn.train, drawn.dev):
        assert len(set(part.anchors)) == len(part)
        for row in zip(part.anchors, part.positives, part.negatives, strict=True):
            (article, section), (positive, same), (negative, other) = map(places, row)
            assert article == positive == negative
            assert section == same != other
            assert row[0] != row[1]


def test_draw_section_triplets_splits_share_no_document(write, text):
    drawn = draw_section_triplets(write("book.txt", text), count=50, dev_share=0.4)
    assert (len(drawn.train), len(drawn.dev)) == (50, 20)
    train, dev = ({places(s)[0] for s in part.anchors} for part in (drawn.train, drawn.dev))
    assert not train & dev


def test_draw_section_triplets_seed_decides_the_draw(write, text):
    path, packed = write("book.txt", text), write("book.txt.gz", gzip.compress(text.encode()))
    first = draw_section_triplets(path, count=20, seed=1).train
    assert first.anchors == draw_section_triplets(packed, count=20, seed=1).train.anchors
    assert first.anchors != draw_section_triplets(path, count=20, seed=2).train.anchors


def test_draw_section_triplets_word_limits_hold(write, text):
    with pytest.raises(InputError, match="has 0 documents with two sections"):
        draw_section_triplets(write("book.txt", text), min_words=9)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("One paragraph without a heading.\n", "has 0 documents"),
        (document(1), "has 1 documents"),
    ],
)
def test_draw_section_triplets_too_little_text_raises(write, content, message):
    with pytest.raises(InputError, match=message):
        draw_section_triplets(write("book.txt", content))


@pytest.mark.parametrize(
    "arguments", [{"count": 0}, {"dev_share": 1.0}, {"min_words": 9, "max_words": 8}]
)
def test_draw_section_triplets_bad_argument_raises(write, text, arguments):
    with pytest.raises(InputError, match="Triplets need a 'count' of at least 1"):
        draw_section_triplets(write("book.txt", text), **arguments)


def test_write_triplets_then_load_gives_equal(tmp_path):
    triplets = Triplets("x", "0", ('A "q"', "D"), ("B\t b", "E"), ("C", "F\n"))
    write_triplets(triplets, tmp_path / "x.tsv")
    read = load_triplets(tmp_path / "x.tsv")
    assert read.anchors == ('A "q"', "D")
    assert (read.positives, read.negatives) == (("B b", "E"), ("C", "F"))
    with pytest.raises(InputError, match=r"written as \.tsv"):
        write_triplets(triplets, tmp_path / "x.csv")


def test_load_wiki_sections_released_test_file_count_warned(write, caplog):
    load_wiki_sections(write("test.csv", "Sentence1,Sentence2,Sentence3\nA,B,C\nA,A,C\n"))
    assert "test.csv: has 2 rows, and 222957 are published" in caplog.text
