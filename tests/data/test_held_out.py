"""Texts to leave out: by their words, or by hashes that do not show them."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from condsim.data.held_out import HeldOutTexts, held_out_texts, text_digest
from condsim.errors import InputError

DATA = Path(__file__).parents[2].parent / "shared" / "data"


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
    found = held_out_texts([path])
    assert "a dog runs" in found
    assert len(found) == 1


def test_held_out_bad_files_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.sha256"
    path.write_text(f"{'0' * 64}\n{'0' * 63}g\n", "utf-8")
    with pytest.raises(InputError, match=r"line 2: must be a SHA-256 of 64 hexadecimal digits"):
        held_out_texts([path])
    rows = tmp_path / "rows.csv"
    rows.write_text("premise,hypothesis\na,b\n", "utf-8")
    with pytest.raises(InputError, match=r"a column sentence1.*found 'premise', 'hypothesis'"):
        held_out_texts([rows])


def test_held_out_list_of_csts_knows_the_captions() -> None:
    listed = DATA / "csts-reannotated" / "held-out.sha256"
    captions = DATA / "captions"
    if not listed.is_file() or not captions.is_dir():
        pytest.skip("needs ../shared/data")
    held_out = held_out_texts([listed])
    found = {
        text_digest(cell)
        for path in captions.glob("*.tsv.gz")
        for line in gzip.open(path, "rt", encoding="utf-8")
        for cell in line.rstrip("\n").split("\t")
        if cell in held_out
    }
    assert (len(held_out), len(found)) == (836, 833)
