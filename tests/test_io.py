from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from condsim import io as files
from condsim.errors import InputError
from condsim.io import replacing
from condsim.paths import sha256_of


def test_replacing_two_writers_at_once_both_end_whole(tmp_path):
    path = tmp_path / "report.json"
    with replacing(path) as first, replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() in ("first", "second")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("windows", [False, True])
def test_replacing_removes_what_a_dead_process_left_and_asks_none_on_windows(
    tmp_path, monkeypatch, windows
):
    path = tmp_path / "report.json"
    with replacing(path) as partial:
        left = partial.with_name(partial.name.replace(f"-{os.getpid()}-", "-4000000-"))
        partial.write_text("first")
    left.write_text("half")
    asked = []

    def kill(process, signal):
        asked.append((process, signal))
        raise ProcessLookupError

    # Of the module alone: pathlib goes by the name, too
    name = "nt" if windows else "posix"
    monkeypatch.setattr(files, "os", SimpleNamespace(name=name, kill=kill, getpid=os.getpid))
    with replacing(path) as partial:
        partial.write_text("whole")
    assert asked == ([] if windows else [(4000000, 0)])
    assert left.exists() is windows


def test_replacing_pipe_is_written_itself(tmp_path):
    pipe = tmp_path / "out"
    os.mkfifo(pipe)
    read: list[str] = []
    thread = threading.Thread(target=lambda: read.append(pipe.read_text()))
    thread.start()
    with replacing(pipe) as partial:
        partial.write_text("all")
    thread.join()
    assert (read, pipe.is_fifo(), list(tmp_path.iterdir())) == (["all"], True, [pipe])


@pytest.mark.parametrize(
    ("name", "message"),
    [("x" * 300, "File name too long"), ("folder", "is a folder"), ("none/x", "does not exist")],
)
def test_replacing_impossible_name_refused(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message), replacing(tmp_path / name):
        pass


def test_sha256_of_a_folder_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        sha256_of(tmp_path)


def test_replacing_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("before")
    with pytest.raises(FileNotFoundError), replacing(path) as partial:
        (partial.parent / "missing" / "file").write_text("half")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
