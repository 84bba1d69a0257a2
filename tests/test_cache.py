from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from condsim.cache import cached_rows, sole_process
from condsim.errors import InputError


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


def test_sole_process_refuses_a_second_one(tmp_path):
    with sole_process(tmp_path / "work"):
        second = sole_process(tmp_path / "work")
        with pytest.raises(InputError, match=r"Another process is at work in .*work"):
            second.__enter__()


def test_sole_process_leaves_no_lock_and_no_empty_folder(tmp_path):
    with sole_process(tmp_path / "work"):
        assert (tmp_path / "work").is_dir()
    assert list(tmp_path.iterdir()) == []
