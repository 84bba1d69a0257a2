from __future__ import annotations

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from condsim.cli import encode as module
from condsim.cli.encode import encode
from condsim.cli.process import guard
from condsim.errors import InputError, ModelError
from condsim.loading import load_scorer

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(encode)
guard(APP)

ROWS = [
    ("A dog runs.", "the animal"),
    ("Two birds, one tree.", "the number"),
    ("A cat.", "the pet"),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.tsv"
    lines = ["sentence\tcondition", *("\t".join(row) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def test_encode_npy_has_a_row_for_each_sentence(file, tmp_path):
    result = invoke("--file", file, "--output", tmp_path / "out.npy")
    assert result.exit_code == 0
    assert "3 embeddings of dimension 384" in result.stderr
    found = np.load(tmp_path / "out.npy")
    assert (found.shape, found.dtype) == ((3, 384), np.float32)
    sentences, conditions = zip(*ROWS, strict=True)
    np.testing.assert_allclose(found, load_scorer().encode(sentences, conditions), atol=1e-3)


def test_encode_npz_holds_the_same_array(file, tmp_path, monkeypatch):
    invoke("--file", file, "--output", tmp_path / "out.npy")
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 2)
    invoke("--file", file, "--output", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_allclose(archive["embeddings"], np.load(tmp_path / "out.npy"), atol=1e-3)


def test_encode_column_of_a_file_of_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2,condition\nA dog.,A cat.,the animal\n", "utf-8")
    invoke("--file", path, "--column", "sentence2", "--output", tmp_path / "out.npy")
    expected = load_scorer().encode(["A cat."], "the animal")
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)


def test_encode_plain_float16_writes_sentences_alone_in_half_the_bytes(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("sentence\nA dog.\nA cat.\n", "utf-8")
    invoke("--file", path, "--plain", "--float16", "--output", tmp_path / "out.npy")
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, load_scorer().encode(["A dog.", "A cat."]), atol=1e-3)


def test_encode_other_suffix_refused(file, tmp_path):
    error = invoke("--file", file, "--output", tmp_path / "out.txt").exception
    assert isinstance(error, InputError)
    assert "must be .npy or .npz" in str(error)


def test_encode_missing_column_refused(file, tmp_path):
    error = invoke(
        "--file", file, "--column", "sentence1", "--output", tmp_path / "o.npy"
    ).exception
    assert isinstance(error, InputError)
    assert "no column 'sentence1'; found 'sentence', 'condition'. Name the column" in str(error)


def test_encode_row_without_text_has_a_vector_of_nan_and_strict_stops(file, tmp_path):
    file.write_text(file.read_text() + "\tthe animal\nA dog runs.\tthe animal\n")
    result = invoke("--file", file, "--output", tmp_path / "all.npy")
    assert "1 row has no text and thus a vector of NaN (row 4)" in result.stderr
    vectors = np.load(tmp_path / "all.npy")
    assert np.isnan(vectors).all(axis=1).tolist() == [False, False, False, True, False]
    np.testing.assert_allclose(vectors[4], vectors[0], atol=1e-3)
    error = invoke("--file", file, "--output", tmp_path / "out.npy", "--strict").exception
    assert isinstance(error, InputError)
    assert "row 4 (line 5), column 'sentence'" in str(error)
    assert not (tmp_path / "out.npy").exists()


def test_encode_cross_encoder_refused(file, tmp_path, tiny_backbone):
    from condsim.model.builders import build_cross_encoder

    build_cross_encoder(str(tiny_backbone)).save_pretrained(str(tmp_path / "cross"))
    error = invoke(
        "--file", file, "--output", tmp_path / "out.npy", "--model", tmp_path / "cross"
    ).exception
    assert isinstance(error, ModelError)
    assert "gives only scores; embeddings need" in str(error)


def test_encode_help_shows_examples():
    assert "condsim encode sentences.csv" in invoke("--help").stdout


def test_encode_overall_adds_the_vector_of_the_text_alone(file, tmp_path):
    result = invoke(file, "--output", tmp_path / "out.npy", "--overall", 0.3)
    assert "3 embeddings of dimension 768" in result.stderr
    expected = load_scorer().encode(*map(list, zip(*ROWS, strict=True)), overall=0.3)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)
    error = invoke(file, "--output", tmp_path / "out.npy", "--plain", "--overall", 0.3).exception
    assert "cannot go with --plain" in str(error)
