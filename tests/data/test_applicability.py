from __future__ import annotations

import numpy as np
import pytest

from condsim.data.csts import load_applicability
from condsim.errors import InputError

HEAD = "sentence1,sentence2,condition,label\n"


def write(path, text):
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_load_applicability_labels_tell_whether_it_applies(tmp_path):
    rows = load_applicability(
        write(tmp_path / "a.csv", "x,y,c,-1\nx,y,d,1\nz,y,c,5.0\nz,y,d,-1.0\n")
    )
    np.testing.assert_array_equal(rows.labels, [0, 1, 1, 0])
    assert rows.label_range == (0, 1)


@pytest.mark.parametrize("label", ["", "0", "6", "yes", "nan"])
def test_load_applicability_other_label_refused_with_place(tmp_path, label):
    path = write(tmp_path / "a.csv", f"x,y,c,-1\nx,y,d,{label}\n")
    with pytest.raises(InputError, match=r"row 2 \(line 3\), column 'label'"):
        load_applicability(path)


def test_load_applicability_one_kind_refused_unless_allowed(tmp_path):
    path = write(tmp_path / "a.csv", "x,y,c,3\nx,y,d,4\n")
    with pytest.raises(InputError, match=r"got 2 and 0\. 'condsim build weak --absent'"):
        load_applicability(path)
    assert len(load_applicability(path, require_both=False)) == 2
