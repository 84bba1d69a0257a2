from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests import commands

from condsim.cli import encode as module
from condsim.errors import ModelError
from condsim.loading import load_scorer

invoke, fault = partial(commands.invoke, "encode"), partial(commands.fault, "encode")
ROWS = [
    ("A dog runs.", "the animal"),
    ("Two birds, one tree.", "the number"),
    ("A cat.", "the pet"),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.tsv"
    lines = ["text\tcondition", *("\t".join(row) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_encode_writes_a_row_for_each_sentence_to_npy_and_npz(file, tmp_path, monkeypatch):
    result = invoke("--file", file, "--output", tmp_path / "out.npy")
    assert "3 embeddings of dimension 384" in result.stderr
    vectors = np.load(tmp_path / "out.npy")
    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    sentences, conditions = zip(*ROWS, strict=True)
    np.testing.assert_allclose(vectors, load_scorer().encode(sentences, conditions), atol=1e-3)
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 2)
    invoke("--file", file, "--output", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_allclose(archive["embeddings"], vectors, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("out.txt", (), "must be .npy or .npz"),
        ("out.npy", ("--column", "sentence1"), "column 'sentence1' is missing; found 'text', "),
        ("out.npy", ("--plain", "--overall", 0.3), "cannot go with --plain"),
    ],
)
def test_encode_bad_options_refused(file, tmp_path, name, options, message):
    assert message in fault("--file", file, "--output", tmp_path / name, *options)


def test_encode_row_without_text_has_a_vector_of_nan_and_strict_stops(file, tmp_path):
    file.write_text(file.read_text() + "\tthe animal\nA dog runs.\tthe animal\n")
    result = invoke("--file", file, "--output", tmp_path / "all.npy")
    assert "1 row has no text and thus a vector of NaN (row 4)" in result.stderr
    vectors = np.load(tmp_path / "all.npy")
    assert np.isnan(vectors).all(axis=1).tolist() == [False, False, False, True, False]
    np.testing.assert_allclose(vectors[4], vectors[0], atol=1e-3)
    message = fault("--file", file, "--output", tmp_path / "out.npy", "--strict")
    assert "row 4 (line 5), column 'text'" in message
    assert not (tmp_path / "out.npy").exists()


def test_encode_cross_encoder_refused(file, tmp_path, tiny_backbone):
    from condsim.model.builders import build_cross_encoder

    build_cross_encoder(str(tiny_backbone)).save_pretrained(str(tmp_path / "cross"))
    options = ("--output", tmp_path / "out.npy", "--model", tmp_path / "cross")
    assert "embeddings need" in fault("--file", file, *options, kind=ModelError)


def test_encode_overall_adds_the_vector_of_the_text_alone(file, tmp_path):
    result = invoke(file, "--output", tmp_path / "out.npy", "--overall", 0.3)
    assert "3 embeddings of dimension 768" in result.stderr
    expected = load_scorer().encode(*map(list, zip(*ROWS, strict=True)), overall=0.3)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)
