from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.corpus.preparing import prepare_corpus
from condsim.contexts.corpus.reading import near_duplicate_key


def test_prepare_corpus_keeps_the_first_of_near_duplicates_in_whichever_block(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("condsim.contexts.corpus.reading._AT_ONCE", 7)
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


def test_near_duplicate_key_without_letters_is_empty() -> None:
    assert near_duplicate_key("* * _ !") == b""
    assert len(near_duplicate_key("a")) == 8
