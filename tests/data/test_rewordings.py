from __future__ import annotations

import numpy as np

from condsim.data.rewordings import load_rewordings

HEAD = "sentence1,sentence2,condition_group,condition\n"


def write(path, text):
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_bundled_set_is_whole():
    rows = load_rewordings()
    assert len(rows) == 288
    assert (np.bincount(rows.group_ids) == 6).all()
    assert len(set(rows.condition_groups)) == 12
    assert len(set(rows.conditions)) == 72


def test_load_rewordings_groups_rows_wherever_they_are(tmp_path):
    rows = load_rewordings(write(tmp_path / "a.csv", "x,y,g,c1\nz,y,g,c1\nx,y,g,c2\nz,y,g,c2\n"))
    np.testing.assert_array_equal(rows.group_ids, [0, 1, 0, 1])
    assert rows.conditions == ("c1", "c1", "c2", "c2")
    assert rows.name == "a"
