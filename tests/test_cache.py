from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

from condsim.cache import (
    ArrayCache,
    CachedArray,
    ScoreCache,
    build_once,
    cached_rows,
    read_manifest,
    sole_process,
    write_manifest,
)
from condsim.errors import InputError

FIRST = ("a", "b", "")
SECOND = ("b", "a", "né\n")


def test_kept_scores_are_found_bit_for_bit(tmp_path):
    kept = ScoreCache(tmp_path / "scored", "c0")
    assert np.isnan(kept.find(FIRST, SECOND)).all()
    kept.add(FIRST, SECOND, [1 / 3, -1e-7, 0.1])
    again = ScoreCache(tmp_path / "scored", "c0")
    assert again.find(FIRST, SECOND).tolist() == np.float32([1 / 3, -1e-7, 0.1]).tolist()
    values = np.random.default_rng(0).uniform(-1, 1, size=10_000)
    texts = [str(number) for number in range(len(values))]
    kept.add(texts, texts, values.tolist())
    assert again.find(texts, texts).tolist() == values.astype(np.float32).tolist()
    # The order of a pair is part of it, and where one text ends.
    assert np.isnan(again.find(["ab", "né\n"], ["", ""])).all()


def test_kept_scores_of_other_models_are_not_found(tmp_path):
    ScoreCache(tmp_path, "c0").add(["a"], ["b"], [0.5])
    assert np.isnan(ScoreCache(tmp_path, "c1").find(["a"], ["b"])).all()
    assert len(list(tmp_path.iterdir())) == 1


def test_kept_scores_line_that_was_cut_off_does_not_count(tmp_path):
    kept = ScoreCache(tmp_path, "c0")
    kept.add(["a", "b"], ["b", "a"], [0.25, -0.125])
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for cut in range(1, len(whole)):
        file.write_bytes(whole[:cut])
        kept.add(["c"], ["d"], [0.75])
        found = kept.find(["a", "b", "c"], ["b", "a", "d"])
        assert found[2] == 0.75
        for value, expected in zip(found, (0.25, -0.125), strict=False):
            assert np.isnan(value) or value == expected


def test_kept_scores_that_cannot_be_written_are_warned_of_once(tmp_path, caplog):
    (tmp_path / "scored").write_text("a file where the folder would be")
    kept = ScoreCache(tmp_path / "scored", "c0")
    with caplog.at_level(logging.WARNING, logger="condsim"):
        kept.add(["a"], ["b"], [0.5])
        kept.add(["b"], ["a"], [0.5])
    (record,) = caplog.records
    assert "Cannot cache scores" in record.getMessage()
    assert np.isnan(kept.find(["a"], ["b"])).all()


def test_kept_scores_need_as_many_of_each(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        ScoreCache(tmp_path, "c0").add(["a", "b"], ["b", "c"], [0.5])


def test_kept_rows_killed_go_on_where_they_stopped(tmp_path):
    asked = []

    def rows(first, last):
        asked.append((first, last))
        if first == 4 and len(asked) == 3:
            raise KeyboardInterrupt
        return np.arange(first, last, dtype=np.float16)[:, None].repeat(3, axis=1)

    arguments = {"rows": 9, "inputs": {"model": "a"}, "block": 2}
    path = tmp_path / "rows.npy"
    with pytest.raises(KeyboardInterrupt):
        cached_rows(path, rows, **arguments)
    assert not path.exists()
    with (tmp_path / "rows.npy.partial").open("ab") as stream:
        stream.write(b"half a block")
    array = cached_rows(path, rows, **arguments)
    np.testing.assert_array_equal(array[:, 0], np.arange(9))
    assert asked == [(0, 2), (2, 4), (4, 6), (4, 6), (6, 8), (8, 9)]
    cached_rows(path, rows, **arguments)
    assert len(asked) == 6
    other = cached_rows(path, rows, **{**arguments, "inputs": {"model": "b"}})
    assert len(asked) == 11
    assert other.dtype == np.float16


def test_kept_rows_of_records_keep_their_type(tmp_path):
    kind = np.dtype([("item", "<i4"), ("similarity", "<f4")])
    found = cached_rows(
        tmp_path / "r.npy", lambda start, stop: np.ones((stop - start, 2), kind), rows=3, block=2
    )
    assert (found.dtype, found.shape) == (kind, (3, 2))


WORKER = """
import sys, time
import numpy as np
from pathlib import Path
from condsim.cache import cached_rows

def compute(first, last):
    print(first, flush=True)
    if first >= int(sys.argv[2]):
        time.sleep(60)
    return np.arange(first, last, dtype=np.float32)[:, None]

cached_rows(Path(sys.argv[1]), compute, rows=40, block=4)
"""


def test_kept_rows_of_a_killed_process_are_whole_after_the_next(tmp_path):
    path = tmp_path / "rows.npy"
    command = [sys.executable, "-c", WORKER, str(path)]
    with subprocess.Popen([*command, "16"], stdout=subprocess.PIPE, text=True) as process:
        while process.stdout.readline().strip() != "16":
            assert process.poll() is None
        process.kill()
    assert not path.exists()
    done = subprocess.run([*command, "40"], check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == "16"  # the lock died with its process
    np.testing.assert_array_equal(np.load(path)[:, 0], np.arange(40))


def test_build_once_leaves_no_half_folder(tmp_path):
    folder = tmp_path / "corpus"

    def interrupted():
        with build_once(folder, what="corpus") as partial:
            (partial / "part").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not folder.exists()
    with build_once(folder, what="corpus") as partial:
        write_manifest(partial, {"format": 1}, what="corpus")
    assert read_manifest(folder, what="corpus") == {"kind": "corpus", "format": 1}
    with build_once(folder, what="corpus") as partial:
        assert partial is None


def test_sole_process_refuses_a_second_one(tmp_path):
    with sole_process(tmp_path / "work"):
        second = sole_process(tmp_path / "work")
        with pytest.raises(InputError, match=r"Another process is at work in .*work"):
            second.__enter__()


def test_kept_arrays_damaged_file_counts_as_missing(tmp_path):
    store, key = ArrayCache(tmp_path / "kept"), {"rows": "a"}
    store.put(key, CachedArray(np.arange(3), {"seconds": 1}))
    found = ArrayCache(tmp_path / "kept").get(key)
    assert found is not None
    assert (found.values.tolist(), found.facts) == ([0, 1, 2], {"seconds": 1})
    assert store.get({"rows": "b"}) is None
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:40])
    assert store.get(key) is None
