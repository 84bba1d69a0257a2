from __future__ import annotations

import numpy as np
import pytest

from condsim.data.rewordings import load_rewordings
from condsim.errors import InputError

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x,y,g,c1\nx,y,g,c1\n",
            r"row 2 \(line 3\), column 'condition'.*once, got 'c1' again",
        ),
        ("x,y,g,c1\nx,y,g,c2\nx,y,h,c3\n", r"row 3 \(line 4\).*two or more wordings.*1 of 'h'"),
        ("x,y,,c1\n", r"row 1 \(line 2\), column 'condition_group': must not be empty"),
        ("", "has no rows"),
    ],
)
def test_load_rewordings_bad_input_refused_with_place(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_rewordings(write(tmp_path / "a.csv", text))


def test_load_rewordings_missing_column_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sentence1,sentence2,condition\na,b,c\n", encoding="utf-8")
    with pytest.raises(InputError, match="column 'condition_group' is missing"):
        load_rewordings(path)
