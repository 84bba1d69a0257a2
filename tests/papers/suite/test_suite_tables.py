from __future__ import annotations

import numpy as np
import pytest
from papers.suite.data import load_sts_suite
from papers.suite.tables import (
    PUBLISHED,
    column_keys,
    column_title,
    heat_map,
    sts_markdown,
    sts_tables,
)
from rich.console import Console

from papers.suite import measure_suite

pytest.importorskip("sklearn")


def shown(report, *, width=80):
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        for table in sts_tables(report, width=width):
            console.print(table)
    return capture.get()


@pytest.fixture
def report(data_sets, letters):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    return measure_suite([letters(name="letters|*")], tasks)


def test_suite_tables_of_sts_fit_in_80_columns(report):
    text = shown(report)
    assert max(map(len, text.splitlines())) <= 80
    heads = [line.split() for line in text.splitlines() if line.split()[:1] == ["Model"]]
    assert [title for head in heads for title in head[1:]] == report_titles(report)
    assert "…" not in text
    assert "Avg. GloVe" in text
    assert "55.14" in text


def report_titles(report):
    return [column_title(report, key) for key in column_keys(report)]


def test_suite_tables_columns_that_do_not_fit_follow_below(data_sets, letters):
    tasks = load_sts_suite(data_sets.everything(), "all")
    report = measure_suite([letters()], tasks, resamples=10)
    text = shown(report)
    assert max(map(len, text.splitlines())) <= 80
    heads = [line.split() for line in text.splitlines() if line.split()[:1] == ["Model"]]
    assert len(heads) > 1
    assert [title for head in heads for title in head[1:]] == report_titles(report)
    assert text.count("Spearman x 100") == 1
    assert "95 % intervals from 10 resamples" in " ".join(text.split())


def test_suite_tables_published_rows_are_grey(report):
    (table,) = sts_tables(report, width=120)
    names = [cell for cell in table.columns[0].cells if "Avg. GloVe" in str(cell)]
    assert names[0].style == "bright_black"


def test_suite_markdown_is_one_pipe_table(report):
    text = sts_markdown(report)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {len(column_keys(report)) + 2}
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


def test_heat_map_writes_png(report, tmp_path):
    pytest.importorskip("matplotlib")
    heat_map(report, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
