"""The harvest: shards, kills, changes, and workers on Ray."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import fake_origin as fake
import numpy as np
import pytest

from condsim.errors import InputError
from condsim_contexts.harvest import Harvest, harvest_pairs
from condsim_contexts.recipe import PairMix


@pytest.fixture
def folder(small_corpus, tmp_path) -> Path:
    shutil.copytree(small_corpus.folder, tmp_path / "corpus")
    return tmp_path


@pytest.fixture(scope="module")
def whole(small_corpus, tmp_path_factory) -> Harvest:
    """A harvest without a break."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(small_corpus.folder, folder / "corpus")
    return fake.run(folder)


def rows(made: Harvest) -> list[dict[str, Any]]:
    parquet = pytest.importorskip("pyarrow.parquet")
    shards = (made.shard(number) for number in range(made.settings.shards))
    return [row for shard in shards for row in parquet.read_table(shard).to_pylist()]


def test_harvest_shards_hold_scored_pairs_of_the_corpus(whole, small_corpus):
    found = rows(whole)
    assert 560 < len(found) <= 600
    assert whole.missing() == []
    ids = np.array([[row["id1"], row["id2"]] for row in found])
    assert small_corpus.sentences(ids[:, 0]) == [row["sentence1"] for row in found]
    assert small_corpus.sentences(ids[:, 1]) == [row["sentence2"] for row in found]
    first, second = ([row[name] for row in found] for name in ("sentence1", "sentence2"))
    scores = fake.FakeScorer().cosines(first, second)
    np.testing.assert_array_equal(np.float32([row["score"] for row in found]), scores)
    assert Counter(row["split"] for row in found)["dev"] == 6
    assert {row["kind"] for row in found} == {"tfidf", "document", "random"}


def test_harvest_splits_are_read_a_shard_at_a_time(whole):
    found = rows(whole)
    for split in ("train", "dev", "test"):
        tables = [table.to_pylist() for table in whole.tables(split)]
        wanted = [row for row in found if row["split"] == split]
        assert [row for rows in tables for row in rows] == [
            {key: row[key] for key in ("sentence1", "sentence2", "score", "id1", "id2")}
            for row in wanted
        ]


def test_harvest_with_missing_or_cut_off_shards_writes_these_and_no_other(folder, whole):
    made = fake.run(folder)
    kept = made.shard(1).stat().st_mtime_ns
    made.shard(0).unlink()
    made.shard(7).write_bytes(made.shard(7).read_bytes()[:-100])
    made.shard(14).write_bytes(b"")
    assert made.missing() == [0, 7, 14]
    told: list[tuple[int, int]] = []
    origin = fake.FakeOrigin(folder)
    again = harvest_pairs(
        made.folder,
        fake.SETTINGS,
        lambda: origin,
        identity=fake.IDENTITY,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(480, 600), (520, 600), (560, 600), (600, 600)]
    assert made.shard(1).stat().st_mtime_ns == kept
    assert rows(again) == rows(whole)
    assert not list(made.folder.glob("*.partial"))


def test_harvest_killed_with_sigkill_loses_and_doubles_no_pair(folder, whole):
    command = [sys.executable, str(fake.__file__), str(folder), "0.1"]
    for shards in (2, 6):
        process = subprocess.Popen(command)
        try:
            stop = time.monotonic() + 60
            while len(list(folder.glob("harvest/*.parquet"))) < shards:
                assert process.poll() is None
                assert time.monotonic() < stop
                time.sleep(0.01)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert Harvest.open(folder / "harvest").missing()
    assert rows(fake.run(folder)) == rows(whole)


@pytest.mark.parametrize(
    ("settings", "identity", "changed"),
    [
        ({"mix": PairMix(tfidf=0, document=0, random=1)}, {}, "harvest"),
        ({}, {"corpus": "c1"}, "corpus"),
        ({"seed": 4}, {"selection": {"size": 6}}, "selection, harvest"),
    ],
)
def test_harvest_of_something_else_is_refused(whole, settings: Any, identity: Any, changed: str):
    before = [path.stat().st_mtime_ns for path in sorted(whole.folder.iterdir())]
    with pytest.raises(InputError, match=rf"a harvest of other inputs \({changed} changed"):
        harvest_pairs(
            whole.folder,
            fake.SETTINGS.replaced(**settings),
            lambda: None,
            identity={**fake.IDENTITY, **identity},
        )
    assert [path.stat().st_mtime_ns for path in sorted(whole.folder.iterdir())] == before


def test_harvest_damaged_shard_is_named(folder):
    made = fake.run(folder)
    path = made.shard(4)
    content = path.read_bytes()
    path.write_bytes(b"x" * (len(content) - 4) + content[-4:])
    with pytest.raises(InputError, match=r"pairs-00004\.parquet is damaged: .*Delete it") as caught:
        list(made.tables("train"))
    assert "\n" not in str(caught.value)


def test_harvest_full_disk_is_one_line_and_finished_shards_stay(folder, whole, monkeypatch):
    made = fake.run(folder)
    for number in (3, 4):
        made.shard(number).unlink()

    def full(table: Any, path: Path, **_: object) -> None:
        path.write_bytes(b"PAR1 half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.write_table", full)
        with pytest.raises(InputError, match=r"pairs-00003.parquet cannot be written: "):
            fake.run(folder)
    assert made.missing() == [3, 4]
    assert not list(made.folder.glob("*.partial"))
    assert rows(fake.run(folder)) == rows(whole)
