from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests import commands

from condsim_annotation.pairs import Candidate
from condsim_annotation.tables import read_rows

pytest.importorskip("faiss")
pytest.importorskip("pyarrow")

SUBJECTS = ("An old man", "A young woman", "A small child", "Two people", "A dog")
ACTS = ("walks along the river", "rests on a bench", "plays with a ball in the park")


@pytest.fixture
def captions(tmp_path):
    rows = [
        f"{number}-{act},{subject} {did} today" + (" again" if act else "")
        for number, subject in enumerate(SUBJECTS)
        for act, did in enumerate(ACTS)
    ]
    rows += [f"{number}-0,{subject} is outside" for number, subject in enumerate(SUBJECTS)]
    path = tmp_path / "captions.csv"
    path.write_text("image,text\n" + "\n".join(rows) + "\n")
    return path


run, fault = partial(commands.succeed, "build"), partial(commands.fault, "build")
COLUMNS = ("--item-column", "image", "--column", "text")


def test_candidates_by_vectors_need_no_text_encoder(captions, tmp_path):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(15, 4)))
    output = tmp_path / "pairs.parquet"
    options = ("--sample", 5, "--k", 2, "--source", "mine", "--cache", tmp_path / "kept")
    files = ("--embeddings", tmp_path / "v.npy", "--output", output)
    run("candidates", captions, *COLUMNS, *files, *options)
    rows = list(read_rows(output, Candidate))
    assert len(rows) == 5
    assert {(row.source, row.text_cosine) for row in rows} == {("mine", None)}
    assert not list((tmp_path / "kept").glob("captions-*"))


def test_candidates_of_plain_texts(captions, tmp_path):
    output = tmp_path / "pairs.parquet"
    options = ("--text-encoder", "default", "--no-text-cosine", "--k", 2, "--output", output)
    result = run("candidates", captions, "--texts", "--column", "text", *options)
    assert "20 items, 20 captions" in result.output
    assert {row.text_cosine for row in read_rows(output, Candidate)} == {None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-iou", "2"), "Filter key 'max_iou' must be at most 1; got 2.0"),
        (("--no-text-cosine", "--min-cosine", "0.4"), "contradict each other"),
        (("--images", "a", "--embeddings", "b"), "--images cannot be combined"),
        (("--texts", "--images", "a"), "--images cannot be combined"),
        (("--image-encoder", "m"), "--image-encoder is for --images"),
        (("--stop-words", "none.txt"), "none.txt cannot be read"),
        (("--item-column", "item"), "columns 'item', 'caption' are missing"),
    ],
)
def test_candidates_options_that_cannot_be_meant_refused(captions, tmp_path, words, message):
    assert message in fault("candidates", captions, "--output", tmp_path / "p.parquet", *words)


def test_candidates_to_another_format_or_of_other_vectors_refused(captions, tmp_path):
    np.save(tmp_path / "v.npy", np.ones((14, 2)))
    words = ("candidates", captions, *COLUMNS, "--embeddings", tmp_path / "v.npy")
    assert "must be .parquet" in fault(*words, "--output", tmp_path / "p.csv")
    assert "of the shape (14, 2)" in fault(*words, "--output", tmp_path / "p.parquet")


def test_files_of_texts_alone_say_what_is_missing(tmp_path):
    path = tmp_path / "news.txt"
    path.write_text("One text.\nAnother text.\n")
    output = ("--output", tmp_path / "rows.csv")
    assert "found 'text'. Name yours with --column" in fault("weak", path, *output)
    assert "have no column of values" in fault("criteria", path, *output)
