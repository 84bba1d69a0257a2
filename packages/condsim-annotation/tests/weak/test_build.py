"""From captions to a file of rows, and the agreement with given labels."""

from __future__ import annotations

import json
import tracemalloc
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.commands import rows_in

from condsim.console import silent
from condsim.data.csts import load_csts
from condsim.data.held_out import text_digest
from condsim.errors import InputError
from condsim.paths import sha256_of
from condsim.types import Task
from condsim_annotation.pairs import Candidate
from condsim_annotation.weak.build import RowSampler, WeakSettings, build_weak, read_pool
from condsim_annotation.weak.registry import REGISTRY, coverage, function_agreement

pytest.importorskip("faiss")
pytest.importorskip("sklearn")

_WHO = ("Two men", "A woman", "Three children", "An old man", "A girl")
_WHAT = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple", "row a boat")
_WHERE = ("on a beach", "in a park", "near a lake", "in a street")
_HEADER = "sentence1,sentence2,condition,label\n"


@pytest.fixture
def captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = [f"{who} {what} {where}" for who in _WHO for what in _WHAT for where in _WHERE]
    Path("captions.csv").write_text("caption\n" + "\n".join(texts) + "\n", encoding="utf-8")
    return Path("captions.csv")


@pytest.fixture
def weak(captions, build):
    """Runs `condsim build weak` on the captions."""

    def run(output: object, *options: object) -> str:
        rows = () if "--rows" in options else ("--rows", 20)
        return build(
            "weak", captions, *rows, "--text-encoder", "words", "--output", output, *options
        )

    return run


def test_weak_captions_rows_that_train_reads(weak) -> None:
    output = Path("weak.csv")
    options = ("--rows", 40, "--k", 20, "--answers", "--absent", 10, "--absent-output")
    weak(output, *options, "absent.csv")
    rows = rows_in(output)
    assert list(rows[0])[:4] == ["sentence1", "sentence2", "condition", "label"]
    assert len(rows) == 40
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first["sentence1"] == second["sentence1"]
        assert first["label"] != second["label"]
        assert first["origin"].startswith("weak:")
        assert first["answer1"]
    assert len(load_csts(output, require_labels=True)) == 40
    assert {row["label"] for row in rows_in(Path("absent.csv"))} == {"-1"}
    manifest = json.loads(Path("weak.manifest.json").read_text(encoding="utf-8"))
    assert manifest["report"]["rows"] == 40
    weak("again.csv", *options, "absent2.csv")
    assert Path("again.csv").read_bytes() == output.read_bytes()


def test_drawing_a_sentence_takes_a_few_kilobytes() -> None:
    texts = [f"{who} {what} {where}" for who in _WHO for what in _WHAT for where in _WHERE[:2]]
    pairs = [Candidate("", "", one, two, one, two) for one, two in pairwise(texts)]
    weighted = [(function, function.weight) for function in REGISTRY if function.weight]
    # The lists of words are loaded, and words looked up, once a process: not counted.
    list(RowSampler(weighted, rows=100, seed=0).rows(pairs))
    sampler = RowSampler(weighted, rows=100, seed=0)
    tracemalloc.start()
    drawn = len(list(sampler.rows(pairs)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert drawn > 20
    # 21,000 bytes with every "no".
    assert held / len(texts) < 15_000


def test_weak_exclude_leaves_sentences_out(weak) -> None:
    text = "two men ride brown horses, on a beach."
    Path("dev.csv").write_text(f'{_HEADER}"{text}","{text}",x,3\n', encoding="utf-8")
    assert "(1 left out" in weak("weak.csv", "--exclude", "dev.csv")
    rows = rows_in(Path("weak.csv"))
    assert not any("Two men ride brown horses on a beach" in row.values() for row in rows)
    assert "answer1" not in rows[0]
    Path("held-out.sha256").write_text(text_digest(text).hex(), encoding="utf-8")
    weak("again.csv", "--exclude", "held-out.sha256")
    assert Path("again.csv").read_bytes() == Path("weak.csv").read_bytes()


def test_weak_like_draws_only_what_is_written(weak) -> None:
    like = Path("like.csv")
    like.write_text(f"{_HEADER}a,b,The number of people.,3\na,b,type of place,2\n", "utf-8")
    weak("weak.csv", "--like", like)
    origins = {row["origin"] for row in rows_in(Path("weak.csv"))}
    assert origins == {"weak:number of people", "weak:location"}
    like.write_text(f"{_HEADER}a,b,meaning of life,3\n", "utf-8")
    with pytest.raises(InputError, match=r"like\.csv: none of its conditions is understood"):
        weak("weak.csv", "--like", like)


def test_build_weak_outputs_may_be_one_file_and_not_the_input(captions) -> None:
    before, output = captions.read_bytes(), Path("weak.csv")
    settings = WeakSettings(rows=20, absent=5, text_encoder="words")
    build = partial(
        build_weak,
        [captions],
        registry=REGISTRY,
        settings=settings,
        cache=Path("cache"),
        progress=silent,
    )
    build(output, absent_output=output)
    assert len(rows_in(output)) == 25
    for outputs in ((captions, None), (output, captions)):
        with pytest.raises(InputError):
            build(outputs[0], absent_output=outputs[1])
    assert captions.read_bytes() == before


def test_weak_several_files_are_one_pool_and_items_are_those_of_a_file(tmp_path: Path) -> None:
    for folder, texts in (("a", ["A dog runs.", "Two men sit."]), ("b", ["A cat sleeps."])):
        (tmp_path / folder).mkdir()
        rows = "".join(f"{text},1\n" for text in texts)
        (tmp_path / folder / "captions.csv").write_text(f"caption,id\n{rows}", "utf-8")
    paths = [tmp_path / folder / "captions.csv" for folder in "ab"]
    assert len(set(read_pool(paths, item_column="id").items)) == 2
    assert len(set(read_pool(paths).items)) == 3
    paths[1].write_text("caption,id\nA cat sleeps.,\n", "utf-8")
    with pytest.raises(InputError):
        read_pool(paths, item_column="id")


def test_weak_own_functions_are_drawn(weak) -> None:
    own = Path("own.py")
    own.write_text(
        "from condsim_annotation.weak.registry import labeling_function\n"
        "@labeling_function('length of the caption test', weight=1000.0)\n"
        "def length(sentence):\n"
        "    return len(sentence.words) > 7\n",
        encoding="utf-8",
    )
    weak("weak.csv", "--functions", own)
    origins = {row["origin"] for row in rows_in(Path("weak.csv"))}
    assert "weak:length of the caption test" in origins
    manifest = json.loads(Path("weak.manifest.json").read_text(encoding="utf-8"))
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
def test_weak_functions_file_that_fails_raises(tmp_path, build, text: str, message: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        build("weak", "--functions", own, "--check", "b.csv")


def test_weak_check_prints_agreement(tmp_path: Path, build) -> None:
    path, report = tmp_path / "train.csv", tmp_path / "report.json"
    path.write_text(
        f"{_HEADER}A man,Two men,number of people,2\n"
        "A man,A woman,number of people,5\n"
        "Two men,A crowd of men,number of people,1\n"
        "A man,A woman,the meaning of life,3\n",
        encoding="utf-8",
    )
    printed = build("weak", "--check", path, "--json", report)
    assert "75.0% of 4 labeled rows" in printed
    assert "the meaning of life (1)" in printed
    assert json.loads(report.read_text(encoding="utf-8"))["all"]["read"] == 3


def test_weak_without_output_prints_coverage_and_bad_options_raise(captions, build) -> None:
    assert "100 sentences" in build("weak", captions)
    for words, message in (
        ((), "Files of sentences are needed"),
        (("a.csv", "--check", "b.csv"), "--check reads one labeled file"),
        (("--functions", "none.py", "--check", "b.csv"), "is not a file"),
    ):
        with pytest.raises(InputError, match=message):
            build("weak", "--rows", 2, *words)


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
    # The scores are 5, 2, 1.
    report = function_agreement(task, REGISTRY)
    assert report.rows == 3
    assert report.all.spearman == pytest.approx(100)
    assert report.all.mean_absolute_error == pytest.approx(2 / 3)


def test_coverage_shares_of_sentences() -> None:
    shares = {share.name: share for share in coverage(["A dog runs.", "A car."], REGISTRY)}
    assert shares["number of dogs"].read == 0.5
    assert shares["number of dogs"].absent == 0.5
