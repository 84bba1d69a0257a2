from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from condsim.cli.build import app
from condsim.errors import InputError
from condsim.rows.pairs import Candidate
from condsim.rows.records import read_manifest, read_rows

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


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words):
    result = run(*words)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_candidates_of_captions_by_the_bundled_encoder(captions, tmp_path):
    output = tmp_path / "pairs.parquet"
    columns = ("--item-column", "image", "--caption-column", "text")
    arguments = ("candidates", captions, *columns, "--output", output, "--text-encoder", "default")
    arguments += ("--preset", "coco", "--k", 3, "--max-iou", 0.5, "--min-length", 20)
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "15 items, 20 captions" in result.output
    assert "rejected: IOU above 0.5" in result.output
    rows = list(read_rows(output, Candidate))
    assert f"{len(rows)} pairs" in result.output
    assert all(row.item1 != row.item2 and row.text_cosine >= 0.4 for row in rows)
    manifest = read_manifest(output)
    assert manifest["settings"]["k"] == 3
    assert manifest["settings"]["filters"]["min_length_ratio"] == 0.7
    assert manifest["text_encoder"]["model"] == "default"
    again = run(*arguments)
    assert again.output.splitlines()[-1] == result.output.splitlines()[-1]


def test_candidates_by_vectors_need_no_text_encoder(captions, tmp_path):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(15, 4)))
    output = tmp_path / "pairs.parquet"
    result = run(
        "candidates", captions, "--item-column", "image", "--caption-column", "text",
        "--embeddings", tmp_path / "v.npy", "--output", output, "--sample", 5, "--k", 2,
        "--source", "mine", "--cache", tmp_path / "kept",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = list(read_rows(output, Candidate))
    assert len(rows) == 5
    assert {row.source for row in rows} == {"mine"}
    assert {row.text_cosine for row in rows} == {None}
    assert not list((tmp_path / "kept").glob("captions-*"))


def test_candidates_of_plain_texts(captions, tmp_path):
    output = tmp_path / "pairs.parquet"
    result = run(
        "candidates", captions, "--texts", "--caption-column", "text", "--output", output,
        "--text-encoder", "default", "--no-text-cosine", "--k", 2,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "20 items, 20 captions" in result.output
    assert {row.text_cosine for row in read_rows(output, Candidate)} == {None}


def test_filter_counts_and_writes(tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2\nA red ball here,The blue car there\na b c,a b\n")
    result = run("filter", pairs, "--preset", "coco", "--no-text-cosine", "--min-length", 5)
    assert result.exit_code == 0, result.output
    assert "cosine" not in result.output
    assert "1 pairs pass" in result.output
    result = run("filter", pairs, "--output", tmp_path / "out.csv", "--min-ratio", 0.7)
    assert len(list(read_rows(tmp_path / "out.csv", Candidate))) == 1


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
    assert message in refused("candidates", captions, "--output", tmp_path / "p.parquet", *words)


def test_candidates_to_another_format_refused(captions, tmp_path):
    np.save(tmp_path / "v.npy", np.ones((15, 2)))
    columns = ("--item-column", "image", "--caption-column", "text")
    words = ("candidates", captions, *columns, "--embeddings", tmp_path / "v.npy")
    assert "must be .parquet" in refused(*words, "--output", tmp_path / "p.csv")
    np.save(tmp_path / "v.npy", np.ones((14, 2)))
    assert "got 14 rows" in refused(*words, "--output", tmp_path / "p.parquet")
