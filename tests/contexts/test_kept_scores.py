from __future__ import annotations

import logging

import numpy as np
import pytest

from condsim.contexts.kept_scores import KeptScores

FIRST = ("a", "b", "")
SECOND = ("b", "a", "né\n")


def test_kept_scores_are_found_bit_for_bit(tmp_path):
    kept = KeptScores(tmp_path / "scored", "c0")
    assert np.isnan(kept.find(FIRST, SECOND)).all()
    kept.add(FIRST, SECOND, [1 / 3, -1e-7, 0.1])
    again = KeptScores(tmp_path / "scored", "c0")
    assert again.find(FIRST, SECOND).tolist() == np.float32([1 / 3, -1e-7, 0.1]).tolist()
    values = np.random.default_rng(0).uniform(-1, 1, size=10_000)
    texts = [str(number) for number in range(len(values))]
    kept.add(texts, texts, values.tolist())
    assert again.find(texts, texts).tolist() == values.astype(np.float32).tolist()
    # The order of a pair is part of it, and where one text ends.
    assert np.isnan(again.find(["ab", "né\n"], ["", ""])).all()


def test_kept_scores_of_other_models_are_not_found(tmp_path):
    KeptScores(tmp_path, "c0").add(["a"], ["b"], [0.5])
    assert np.isnan(KeptScores(tmp_path, "c1").find(["a"], ["b"])).all()
    assert len(list(tmp_path.iterdir())) == 1


def test_kept_scores_line_that_was_cut_off_does_not_count(tmp_path):
    kept = KeptScores(tmp_path, "c0")
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
    kept = KeptScores(tmp_path / "scored", "c0")
    with caplog.at_level(logging.WARNING, logger="condsim.contexts"):
        kept.add(["a"], ["b"], [0.5])
        kept.add(["b"], ["a"], [0.5])
    (record,) = caplog.records
    assert "scored: scores cannot be kept there (" in record.getMessage()
    assert np.isnan(kept.find(["a"], ["b"])).all()


def test_kept_scores_need_as_many_of_each(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        KeptScores(tmp_path, "c0").add(["a", "b"], ["b", "c"], [0.5])
