from __future__ import annotations

import gzip

import pytest
from papers.data.sections import draw_section_triplets, write_triplets

from condsim.data.nli_triplets import Triplets, load_triplets
from condsim.errors import InputError

pytest.importorskip("sentencex")


def document(number):
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
def text():
    again = "== Notes ==\nThis note is the same in every article. It says very little here.\n"
    return "\n".join(document(number) + again for number in range(10))


def places(sentence):
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


def test_draw_section_triplets_seed_decides_the_draw(write, text):
    path, packed = write("book.txt", text), write("book.txt.gz", gzip.compress(text.encode()))
    first = draw_section_triplets(path, count=20, seed=1).train
    assert first.anchors == draw_section_triplets(packed, count=20, seed=1).train.anchors
    assert first.anchors != draw_section_triplets(path, count=20, seed=2).train.anchors


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


def test_write_triplets_then_load_gives_equal(tmp_path):
    triplets = Triplets("x", "0", ('A "q"', "D"), ("B\t b", "E"), ("C", "F\n"))
    write_triplets(triplets, tmp_path / "x.tsv")
    read = load_triplets(tmp_path / "x.tsv")
    assert read.anchors == ('A "q"', "D")
    assert (read.positives, read.negatives) == (("B  b", "E"), ("C", "F"))
    with pytest.raises(InputError, match=r"written as \.tsv"):
        write_triplets(triplets, tmp_path / "x.csv")
