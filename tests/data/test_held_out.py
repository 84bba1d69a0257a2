"""Texts to leave out: by their words, or by hashes that do not show them."""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from pathlib import Path

from condsim.data.held_out import HeldOutTexts, held_out_texts, stratified_share, text_digest


def test_digest_of_words_is_their_sha256() -> None:
    expected = hashlib.sha256(b"two dogs 3 cats").digest()
    assert text_digest("  Two dogs,\t3_cats!") == expected
    assert text_digest("Two dogs 3 cat") != expected
    assert text_digest("?!") != text_digest("...")


def test_digest_letters_keep_their_marks_in_either_form() -> None:
    assert text_digest("\u0915\u093f") != text_digest("\u0915\u093e")  # Hindi "ki" and "ka"
    assert text_digest("Caf\u00e9!") == text_digest("cafe\u0301")
    expected = hashlib.sha256("\u0915\u093f caf\u00e9 x\u0323".encode()).digest()
    assert text_digest("\u0915\u093f, Cafe\u0301 \u2013 X\u0323.") == expected
    assert text_digest("I \u2764\ufe0f it") == text_digest("I, it")  # of a symbol, not a letter


def test_held_out_rows_are_found_whatever_case_and_punctuation(tmp_path: Path) -> None:
    rows = tmp_path / "dev.csv"
    rows.write_text("sentence1,sentence2,condition,label\nA dog runs.,A cat sits.,x,3\n", "utf-8")
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "Hello there", "topic": "greeting"}\n', "utf-8")
    found = held_out_texts([rows, texts])
    assert len(found) == 3
    assert "a DOG runs" in found
    assert "hello, there!" in found
    assert "greeting" not in found
    assert "A dog runs." not in HeldOutTexts()


def test_held_out_hashes_are_read_from_a_list(tmp_path: Path) -> None:
    path = tmp_path / "held-out.sha256"
    path.write_text(text_digest("A dog runs.").hex().upper() + "\n\n", "utf-8")
    texts = held_out_texts([path])
    assert "a dog runs" in texts
    assert len(texts) == 1


def test_held_out_list_of_csts_knows_the_captions(released) -> None:
    captions = released("captions")
    held_out = held_out_texts([released("csts-reannotated/held-out.sha256")])
    found = {
        text_digest(cell)
        for path in captions.glob("*.tsv.gz")
        for line in gzip.open(path, "rt", encoding="utf-8")
        for cell in line.rstrip("\n").split("\t")
        if cell in held_out
    }
    assert (len(held_out), len(found)) == (836, 833)


def test_stratified_share_has_its_share_of_each_value() -> None:
    values = [
        {("topic", f"topic {number % 4}"), ("mood", "bad" if number % 10 == 0 else "good")}
        for number in range(200)
    ]
    for seed in range(3):
        drawn = stratified_share(values, share=0.2, seed=seed)
        counts = Counter(value for index in drawn for value in values[index])
        assert len(drawn) == 40
        assert {counts["topic", f"topic {number}"] for number in range(4)} == {10}
        assert (counts["mood", "bad"], counts["mood", "good"]) == (4, 36)
    assert stratified_share(values, share=0.2, seed=0) != drawn


def test_stratified_share_of_rare_or_no_values_is_drawn_from_all() -> None:
    assert len(stratified_share([{("name", str(n))} for n in range(50)], share=0.2, seed=0)) == 10
    assert len(stratified_share([()] * 50, share=0.3, seed=0)) == 15
    assert stratified_share([{("name", "a")}] * 9, share=0.0, seed=0) == set()
