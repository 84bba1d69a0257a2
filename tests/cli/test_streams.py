from __future__ import annotations

import io
import itertools
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.commands import fault, invoke, rows_in

PROJECT = Path(__file__).resolve().parents[2]
PAIRS = "left;right;same;about\nA red car.;A red bus.;yes;the color\nA dog.;A cat.;no;the color\n"
COLUMNS = ("--text1", "left", "--text2", "right")
TEXTS = "text,date\nA dog runs.,1\nA train is late.,2\nA dog runs.,3\n"
TO_STDOUT = ("--output", "-")


def test_cluster_reads_and_writes_standard_streams():
    words = ("cluster", "-", "--condition", "the animal", "--k", 2, *TO_STDOUT)
    result = invoke(*words, stdin=TEXTS)
    assert [row["cluster"] for row in rows_in(result.stdout)] == ["0", "1", "0"]
    assert "Clusters by the animal" in result.stderr
    assert result.stderr.splitlines()[-1] == "standard output: 3 rows"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_dedupe_reads_json_lines_in_utf_16(encoding):
    text = '{"text": "A dog runs."}\n{"text": "A cat sits."}\n'.encode(encoding)
    result = invoke("dedupe", "-", "--condition", "the animal", "--to", 2, *TO_STDOUT, stdin=text)
    assert result.stdout.split("\n") == ["text", "A dog runs.", "A cat sits.", ""]


def test_dedupe_reads_and_writes_standard_streams():
    words = ("dedupe", "--file", "-", "--condition", "the animal", "--at-least", 0.95, *TO_STDOUT)
    assert [row["date"] for row in rows_in(invoke(*words, stdin=TEXTS).stdout)] == ["1", "2"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_encode_reads_and_writes_standard_streams(encoding):
    words = ("encode", "-", "--column", "text", "--plain", *TO_STDOUT)
    result = invoke(*words, stdin=TEXTS.encode(encoding))
    assert np.load(io.BytesIO(result.stdout_bytes)).shape == (3, 384)


def test_explain_reads_and_writes_standard_streams():
    words = ("explain", "-", *COLUMNS, "--condition-column", "about", "--samples", 4, *TO_STDOUT)
    lines = invoke(*words, stdin=PAIRS).stdout.splitlines()
    assert [json.loads(line)["explanation"]["condition"] for line in lines] == ["the color"] * 2


def test_predict_reads_and_writes_standard_streams():
    pairs = PAIRS.replace("left;right;same;about", "sentence1;sentence2;same;condition")
    assert list(json.loads(invoke("predict", "-", *TO_STDOUT, stdin=pairs).stdout)) == ["0", "1"]


def test_evaluate_reads_standard_input_and_prints_json():
    words = ("evaluate", "-", *COLUMNS, "--condition", "the kind", "--label", "same")
    pairs = f"{PAIRS}A bird.;A fish.;no;the use\nA lamp.;A light.;yes;the use\n"
    result = invoke(*words, "--resamples", 2, "--json", stdin=pairs)
    report = json.loads(result.stdout)
    assert (report["task"], report["rows"]) == ("standard input", 4)


def test_index_build_reads_standard_input(tmp_path):
    pytest.importorskip("lancedb")
    result = invoke("index", "build", "-", "--output", tmp_path / "made", stdin=TEXTS)
    assert "3 texts" in result.stderr, result.exception


def test_standard_input_is_named_and_for_one_option_only():
    message = fault("cluster", "-", "--condition", "a", "--k", 2, *TO_STDOUT, stdin="a,b\n1,2\n")
    assert message.startswith("standard input: column 'text' is missing")
    message = fault(
        "dedupe", "-", "--condition", "a", "--to", 2, *TO_STDOUT, stdin="It is late.\nb"
    )
    assert "of the columns before it. Name yours with --column" in message
    assert "for one option only" in fault("evaluate", "-", "--train", "-", stdin=PAIRS)


@pytest.mark.parametrize("option", ["--file", "--data"])
def test_file_of_any_command_may_be_an_option(tmp_path, option):
    file = tmp_path / "pairs.csv"
    file.write_text("sentence1,sentence2,condition\nA.,B.,c\n")
    result = invoke("data", "check", option, file, "--json")
    assert json.loads(result.stdout)["rows"] == 1
    assert invoke("data", "check", f"{option}={file}").exit_code == 0
    assert len(rows_in(invoke("score", file, *TO_STDOUT).stdout)) == 1


def test_quiet_prints_errors_alone_on_stderr(tmp_path):
    (tmp_path / "texts.csv").write_text(TEXTS.replace("A train is late.", "你好"))
    words = ("dedupe", tmp_path / "texts.csv", "--condition", "the animal", "--at-least", 0.9)
    command = [sys.executable, "-m", "condsim", *map(str, words), *TO_STDOUT]
    assert b"cannot read" in subprocess.run(command, check=True, capture_output=True).stderr
    assert not subprocess.run([*command, "--quiet"], check=True, capture_output=True).stderr
    fault("dedupe", "no.csv", *words[2:], *TO_STDOUT, "--quiet")


def test_help_without_unicode_has_status_0():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    for command in ("dedupe", "score", "train"):
        words = [sys.executable, "-m", "condsim", command, "--help"]
        done = subprocess.run(words, env=environment, check=True, capture_output=True)
        assert b"Usage: " in done.stdout


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_full_temporary_folder_is_an_error(tmp_path, suffix):
    # JSON lines that a table is written of wait in a temporary file, and so does all of "-".
    rows = [f"A dog runs {number}. {'x ' * 200}" for number in range(40)]
    lines = {"csv": ["text", *rows], "jsonl": [json.dumps({"text": row}) for row in rows]}[suffix]
    words = "cluster - --condition animal --k 2 --output -".split()
    done = subprocess.run(
        [sys.executable, "-m", "condsim", *words],
        input="\n".join(lines).encode(),
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.returncode == 2
    assert not done.stdout
    assert b"File too large" in done.stderr


def test_train_help_begins_with_an_example_that_a_clone_can_run():
    pytest.importorskip("torch")
    from condsim.cli.train import train
    from condsim.training.recipe import load_recipe

    example = " ".join(str(train.__doc__).split("`")[1].split())
    words = example.split()
    assert words[:2] == ["condsim", "train"]
    settings = [word for option, word in itertools.pairwise(words) if option == "--set"]
    recipe = load_recipe(PROJECT / words[2], overrides=settings)
    assert (PROJECT / str(recipe.train)).is_file()
    assert (PROJECT / str(recipe.dev)).is_file()
