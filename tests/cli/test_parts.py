"""``--engine ray``: many files, each a part of one output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from condsim.cli.main import app
from condsim.cli.process import run_app

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PARTS = 4
ANIMALS = ("dog", "cat", "horse", "bird", "cow")


@pytest.fixture
def parts(tmp_path):
    """Four Parquet files of ten rows, with a column of a type that text formats do not have."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(PARTS):
        rows = range(10 * number, 10 * number + 10)
        table = pa.table(
            {
                "sentence1": [f"A {ANIMALS[row % 5]} runs." for row in rows],
                "sentence2": [f"A {ANIMALS[row % 3]} sleeps in house {row}." for row in rows],
                "condition": ["the animal"] * 10,
                "row": pa.array(rows, pa.int16()),
            }
        )
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


@pytest.fixture
def here(monkeypatch):
    """Runs the calls of the workers in this process, one after the other."""

    class Pool:
        def __init__(self, **options: object) -> None: ...

        def map(self, worker, arguments, calls, *, max_workers, failure) -> Iterator[object]:
            part_worker = worker(*arguments)
            return (part_worker.work(call) for call in calls)

    monkeypatch.setattr("condsim.cli.parts.RayWorkers", Pool)


@pytest.fixture
def run(capsys):
    """Runs a command line; gives its status and what it wrote to stderr."""

    def called(*words: object) -> tuple[int, str]:
        status = 0
        try:
            run_app(app, [str(word) for word in words])
        except SystemExit as exit:
            status = int(exit.code or 0)
        return status, capsys.readouterr().err

    return called


def parts_of(source: object, output: object, *more: str) -> tuple[object, ...]:
    return "score", "--engine", "ray", "--file", source, "--output", output, *more


def expected(run, parts: Path, output: Path) -> None:
    """The same rows and scores as a plain run of each part, in the same order."""
    for part in sorted(parts.glob("part-*.parquet")):
        plain = output.with_name(f"plain-{part.name}")
        assert run("score", "--file", part, "--output", plain)[0] == 0
        found, wanted = pq.read_table(output / part.name), pq.read_table(plain)
        assert found.schema == wanted.schema
        assert found["row"].to_pylist() == wanted["row"].to_pylist()
        np.testing.assert_allclose(found["score"], wanted["score"], atol=1e-4)


@pytest.mark.parametrize("as_address", [False, True])
def test_parts_are_scored_with_all_columns_and_types(here, run, parts, tmp_path, as_address):
    source, output = parts, tmp_path / "out"
    if as_address:
        source, output = parts.as_uri(), output.as_uri()
    status, errors = run(*parts_of(f"{source}/part-*.parquet", output))
    assert status == 0, errors
    expected(run, parts, tmp_path / "out")
    assert pq.read_schema(tmp_path / "out/part-0.parquet").field("row").type == pa.int16()
    record = json.loads((tmp_path / "out/condsim-parts.json").read_text(encoding="utf-8"))
    assert (record["scale"], sorted(record["parts"])[0]) == ("unit", "part-0.parquet")


def test_parts_that_are_done_are_left_out_and_new_ones_are_added(here, run, parts, tmp_path):
    (parts / "part-3.parquet").rename(tmp_path / "late")
    run(*parts_of(parts / "part-*.parquet", tmp_path / "out"))
    kept = (tmp_path / "out/part-0.parquet").stat().st_mtime_ns
    (tmp_path / "late").rename(parts / "part-3.parquet")
    _, errors = run(*parts_of(parts / "part-*.parquet", tmp_path / "out"))
    assert "4 parts, 3 done before" in errors
    assert (tmp_path / "out/part-0.parquet").stat().st_mtime_ns == kept
    expected(run, parts, tmp_path / "out")


def test_parts_of_another_scale_or_size_are_refused(here, run, parts, tmp_path):
    run(*parts_of(parts / "part-*.parquet", tmp_path / "out"))
    status, errors = run(*parts_of(parts / "part-*.parquet", tmp_path / "out", "--scale", "raw"))
    assert status == 2
    assert "(scale changed)" in errors
    pq.write_table(pq.read_table(parts / "part-1.parquet")[:5], parts / "part-1.parquet")
    status, errors = run(*parts_of(parts / "part-*.parquet", tmp_path / "out"))
    assert status == 2
    assert "(part-1.parquet changed)" in errors


def test_a_part_that_fails_is_named_and_the_others_are_finished(here, run, parts, tmp_path):
    (parts / "part-1.parquet").write_bytes(b"PAR1 no more")
    for source in (parts, parts.as_uri()):
        output = tmp_path / str(source).partition(":")[0].strip("/").replace("/", "-")
        status, errors = run(*parts_of(f"{source}/part-*.parquet", output))
        assert status == 2
        assert errors.splitlines()[-1].startswith(f"error: {source}/part-1.parquet")
        made = sorted(path.name for path in output.iterdir())
        assert made == ["condsim-parts.json", *(f"part-{n}.parquet" for n in (0, 2, 3))]


def test_parts_that_cannot_be_are_one_line(here, run, parts, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine", encoding="utf-8")
    for source, output, message in (
        (parts / "none-*.csv", tmp_path / "out", "no such files"),
        (tmp_path / "i*/part-0.parquet", tmp_path / "out", "only the names"),
        (parts / "part-*.parquet", tmp_path / "full", "holds other files"),
        ("nope://x/part-*.csv", tmp_path / "out", "nope://x cannot be opened"),
    ):
        status, errors = run(*parts_of(source, output))
        assert (status, len(errors.splitlines())) == (2, 1), errors
        assert message in errors
    assert not (tmp_path / "out").exists()
    status, errors = run("score", "--engine", "ray", "--file", parts / "part-*.parquet")
    assert (status, "needs --output" in errors) == (2, True)


def test_parts_are_encoded(here, run, parts, tmp_path):
    words = ["--file", str(parts / "part-*.parquet"), "--column", "sentence1"]
    status, errors = run("encode", "--engine", "ray", *words, "--output", tmp_path / "out")
    assert status == 0, errors
    plain = tmp_path / "plain.npy"
    words[1] = str(parts / "part-2.parquet")
    assert run("encode", *words, "--output", plain)[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "out/part-2.npy"), np.load(plain), atol=1e-4)


@pytest.fixture
def begin(tmp_path):
    """Starts the command on a cluster of two nodes, each with room for one worker."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)

    def start(source: Path, output: Path) -> subprocess.Popen[str]:
        words = ["score", "--engine", "ray", "--address", cluster.address, "--file"]
        command = [sys.executable, "-m", "condsim", *words, str(source / "part-*.parquet")]
        command += ["--output", str(output)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})

    yield start
    cluster.shutdown()


def workers() -> list[int]:
    """Processes that hold a worker of this test's cluster."""
    psutil = pytest.importorskip("psutil")
    found = psutil.process_iter(["pid", "name", "cmdline"])
    return [one.pid for one in found if "ray::_PartWorker" in " ".join(one.info["cmdline"] or [])]


def wait_for(number: int, output: Path) -> None:
    for _ in range(1200):
        if len(list(output.glob("part-*.parquet"))) >= number:
            return
        time.sleep(0.05)
    pytest.fail(f"{number} parts were not done within a minute")


@pytest.mark.slow
def test_every_row_is_there_once_after_a_killed_worker(begin, run, parts, tmp_path):
    process = begin(parts, tmp_path / "out")
    wait_for(1, tmp_path / "out")
    os.kill(workers()[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    expected(run, parts, tmp_path / "out")


@pytest.mark.slow
def test_a_killed_command_goes_on_with_the_parts_that_are_left(begin, run, parts, tmp_path):
    process = begin(parts, tmp_path / "out")
    wait_for(1, tmp_path / "out")
    process.kill()
    process.communicate(timeout=60)
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*.parquet")}
    process = begin(parts, tmp_path / "out")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert {path: path.stat().st_mtime_ns for path in done} == done
    expected(run, parts, tmp_path / "out")
