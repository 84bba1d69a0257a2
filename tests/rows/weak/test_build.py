"""From captions to a file of rows, and the agreement with given labels."""

from __future__ import annotations

import csv
import json
import tracemalloc
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.console import silent
from condsim.data.csts import load_csts
from condsim.data.held_out import text_digest
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.rows.pairs import Candidate
from condsim.rows.weak.agreement import coverage, function_agreement
from condsim.rows.weak.build import RowSampler, WeakSettings, build_weak
from condsim.rows.weak.pool import read_pool
from condsim.rows.weak.registry import REGISTRY
from condsim.types import Task

pytest.importorskip("faiss")
pytest.importorskip("sklearn")

_WHO = ("Two men", "A woman", "Three children", "An old man", "A girl")
_WHAT = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple", "row a boat")
_WHERE = ("on a beach", "in a park", "near a lake", "in a street")


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.csv"
    texts = [f"{who} {what} {where}" for who in _WHO for what in _WHAT for where in _WHERE]
    path.write_text("caption\n" + "\n".join(texts) + "\n", encoding="utf-8")
    return path


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["build", "weak", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_weak_captions_rows_that_train_reads(captions: Path, tmp_path: Path) -> None:
    made = tmp_path / "weak.csv"
    options = ("--rows", 40, "--text-encoder", "words", "--k", 20, "--answers", "--absent", 10)
    _run(captions, "--output", made, *options, "--absent-output", tmp_path / "absent.csv")
    rows = _rows(made)
    assert list(rows[0])[:4] == ["sentence1", "sentence2", "condition", "label"]
    assert len(rows) == 40
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first["sentence1"] == second["sentence1"]
        assert first["label"] != second["label"]
        assert first["origin"].startswith("weak:")
        assert first["answer1"]
    assert len(load_csts(made, require_labels=True)) == 40
    absent = _rows(tmp_path / "absent.csv")
    assert {row["label"] for row in absent} == {"-1"}
    manifest = json.loads((tmp_path / "weak.manifest.json").read_text(encoding="utf-8"))
    assert manifest["report"]["rows"] == 40
    again = tmp_path / "again.csv"
    _run(captions, "--output", again, *options, "--absent-output", tmp_path / "absent2.csv")
    assert again.read_bytes() == made.read_bytes()


def test_drawing_a_sentence_takes_a_few_kilobytes() -> None:
    texts = [f"{who} {what} {where}" for who in _WHO for what in _WHAT for where in _WHERE[:2]]
    pairs = [Candidate("", "", one, two, one, two) for one, two in pairwise(texts)]
    weighted = [(function, function.weight) for function in REGISTRY if function.weight]
    list(RowSampler(weighted, rows=100, seed=0).rows(pairs[:1]))  # the trees of words are read once
    drawing = RowSampler(weighted, rows=100, seed=0)
    tracemalloc.start()
    drawn = len(list(drawing.rows(pairs)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert drawn > 20
    assert held / len(texts) < 15_000  # bytes; 21,000 with every "no"


def test_weak_exclude_leaves_sentences_out(captions: Path, tmp_path: Path) -> None:
    dev = tmp_path / "dev.csv"
    text = "two men ride brown horses, on a beach."
    dev.write_text(
        f'sentence1,sentence2,condition,label\n"{text}","{text}",x,3\n', encoding="utf-8"
    )
    made = tmp_path / "weak.csv"
    _, told = _run(
        captions, "--output", made, "--rows", 20, "--text-encoder", "words", "--exclude", dev
    )
    assert "(1 left out" in told
    assert not any("Two men ride brown horses on a beach" in row.values() for row in _rows(made))
    assert "answer1" not in _rows(made)[0]
    listed = tmp_path / "held-out.sha256"
    listed.write_text(text_digest(text).hex(), encoding="utf-8")
    again = tmp_path / "again.csv"
    _run(captions, "--output", again, "--rows", 20, "--text-encoder", "words", "--exclude", listed)
    assert again.read_bytes() == made.read_bytes()


def test_weak_like_draws_only_what_is_written(captions: Path, tmp_path: Path) -> None:
    like = tmp_path / "like.csv"
    like.write_text(
        "sentence1,sentence2,condition,label\na,b,The number of people.,3\na,b,type of place,2\n",
        encoding="utf-8",
    )
    made = tmp_path / "weak.csv"
    _run(captions, "--output", made, "--rows", 20, "--text-encoder", "words", "--like", like)
    assert {row["origin"] for row in _rows(made)} == {"weak:number of people", "weak:location"}


def test_build_weak_output_that_is_read_raises(captions: Path, tmp_path: Path) -> None:
    before, settings = captions.read_bytes(), WeakSettings(rows=20, text_encoder="words")
    build = partial(build_weak, [captions], registry=REGISTRY, settings=settings, progress=silent)
    with pytest.raises(InputError, match=r"captions\.csv is the input itself"):
        build(captions, cache=tmp_path)
    with pytest.raises(InputError, match=r"captions\.csv is the input itself"):
        build(tmp_path / "weak.csv", absent_output=captions, cache=tmp_path)
    assert captions.read_bytes() == before


def test_build_weak_absent_output_that_is_the_output_holds_both(
    captions: Path, tmp_path: Path
) -> None:
    made, settings = tmp_path / "weak.csv", WeakSettings(rows=20, absent=5, text_encoder="words")
    build_weak(
        [captions],
        made,
        REGISTRY,
        settings=settings,
        cache=tmp_path,
        progress=silent,
        absent_output=made,
    )
    assert len(_rows(made)) == 25


def test_weak_like_without_a_known_condition_names_the_file(captions: Path, tmp_path: Path) -> None:
    like = tmp_path / "like.csv"
    like.write_text("sentence1,sentence2,condition,label\na,b,meaning of life,3\n", "utf-8")
    with pytest.raises(InputError, match=r"like\.csv: none of its conditions is understood"):
        _run(captions, "--output", tmp_path / "weak.csv", "--like", like)


def test_weak_several_files_are_one_pool_and_items_are_those_of_a_file(tmp_path: Path) -> None:
    for folder, texts in (("a", ["A dog runs.", "Two men sit."]), ("b", ["A cat sleeps."])):
        (tmp_path / folder).mkdir()
        rows = "".join(f"{text},1\n" for text in texts)
        (tmp_path / folder / "captions.csv").write_text(f"caption,id\n{rows}", "utf-8")
    paths = [tmp_path / folder / "captions.csv" for folder in "ab"]
    assert len(set(read_pool(paths, item_column="id").items)) == 2
    assert len(set(read_pool(paths).items)) == 3
    paths[1].write_text("caption,id\nA cat sleeps.,\n", "utf-8")
    with pytest.raises(InputError, match="column 'id': must not be empty"):
        read_pool(paths, item_column="id")


def test_weak_settings_out_of_range_raise() -> None:
    with pytest.raises(InputError, match="'absent' must be at least 0"):
        WeakSettings(absent=-3)


def test_weak_own_functions_are_drawn(captions: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from condsim.rows.weak.registry import labelling_function\n"
        "@labelling_function('length of the caption test', weight=1000.0)\n"
        "def length(sentence):\n"
        "    return len(sentence.words) > 7\n",
        encoding="utf-8",
    )
    made = tmp_path / "weak.csv"
    _run(captions, "--output", made, "--rows", 20, "--text-encoder", "words", "--functions", own)
    assert "weak:length of the caption test" in {row["origin"] for row in _rows(made)}
    manifest = json.loads(made.with_name("weak.manifest.json").read_text(encoding="utf-8"))
    assert manifest["functions"] == {"own.py": sha256_of(own)[:12]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = x / 0\n", "own.py, line 2: ZeroDivisionError: division by zero"),
        ("def broken(:\n", "own.py, line 1: invalid syntax"),
        ("import json\njson.loads('{')\n", "own.py, line 2: JSONDecodeError"),
        ("x = '\0'\n", r"own\.py: .*null bytes"),
    ],
)
def test_weak_functions_file_that_fails_raises(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        _run("--functions", own, "--check", "b.csv")


def test_weak_check_prints_agreement(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text(
        "sentence1,sentence2,condition,label\n"
        "A man,Two men,number of people,2\n"
        "A man,A woman,number of people,5\n"
        "Two men,A crowd of men,number of people,1\n"
        "A man,A woman,the meaning of life,3\n",
        encoding="utf-8",
    )
    told = _run("--check", path, "--json", tmp_path / "report.json")[1]
    assert "75.0% of 4 labelled rows" in told
    assert "the meaning of life (1)" in told
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["all"]["read"] == 3


def test_weak_without_output_prints_coverage(captions: Path) -> None:
    assert "100 sentences" in _run(captions)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Files of sentences are needed"),
        (("a.csv", "--check", "b.csv"), "--check reads one labelled file"),
        (("--functions", "none.py", "--check", "b.csv"), "is not a file"),
    ],
)
def test_weak_bad_options_raise(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _run("--rows", 2, *arguments)


def test_agreement_worked_by_hand() -> None:
    task = Task(
        name="t",
        revision="r",
        sentences1=("A man", "A man", "A man", "A cat"),
        sentences2=("A man", "Two men", "Many men", "A cat"),
        conditions=("number of people",) * 4,
        labels=np.array([5, 4, 1, np.nan], np.float32),
        label_range=(1.0, 5.0),
    )
    report = function_agreement(task, REGISTRY)  # scores 5, 2, 1
    assert report.rows == 3
    assert report.all.spearman == pytest.approx(100)
    assert report.all.mean_absolute_error == pytest.approx(2 / 3)


def test_coverage_shares_of_sentences() -> None:
    found = {one.name: one for one in coverage(["A dog runs.", "A car."], REGISTRY)}
    assert found["number of dogs"].read == 0.5
    assert found["number of dogs"].absent == 0.5
