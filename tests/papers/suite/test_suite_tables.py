from __future__ import annotations

import numpy as np
import pytest
from papers.suite.data import load_sts_suite
from papers.suite.tables import PUBLISHED, sts_markdown

from papers.suite import measure_suite

pytest.importorskip("sklearn")


@pytest.fixture
def report(data_sets, letters):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    return measure_suite([letters(name="letters|*")], tasks)


def test_suite_markdown_is_one_pipe_table(report):
    text = sts_markdown(report)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {len(report.columns) + 3}
    assert "| **letters\\|\\*** |" in text
    assert "| *Avg. GloVe (SSBC)* | *55.14* |" in text
    assert text.endswith("\n")


def test_suite_markdown_data_with_other_rows_have_no_published_figure(data_sets, letters):
    data_sets.triplets()
    released = load_sts_suite(data_sets.root, "wiki-sections")
    assert "60.94" in sts_markdown(measure_suite([letters()], released))
    path = data_sets.folder("drawn") / "sections-dev.tsv"
    path.write_text("anchor\tpositive\tnegative\nA b.\tA b c.\tD e.\n")
    (data_sets.root / "wikipedia-sections" / "test.csv").unlink()
    other = load_sts_suite(data_sets.root, "wiki-sections")
    text = sts_markdown(measure_suite([letters()], other))
    assert "60.94" not in text
    assert "other rows than published ones" in text


def test_published_means_are_those_of_the_seven_columns():
    seven = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
    ssbc = [row for row in PUBLISHED if row.source == "SSBC"]
    assert len(ssbc) == 26
    for row in ssbc:
        mean = np.mean([row.figures[key] for key in seven])
        assert row.figures["avg"] == pytest.approx(mean, abs=0.0051), row.name
    assert sum("wiki-sections" in row.figures for row in ssbc) == 11
