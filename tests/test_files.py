from __future__ import annotations

import pytest

from condsim.files import replacing


def test_replacing_two_writers_at_once_both_end_whole(tmp_path):
    path = tmp_path / "report.json"
    with replacing(path) as first, replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() in ("first", "second")
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("before")
    with pytest.raises(FileNotFoundError), replacing(path) as partial:
        (partial.parent / "missing" / "file").write_text("half")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
