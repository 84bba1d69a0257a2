from __future__ import annotations

import re

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.evaluate import evaluate
from condsim.model.baselines import baseline
from condsim.types import Task, html_table, shortened


@pytest.fixture
def task():
    return Task(
        name="pets",
        revision="0" * 12,
        sentences1=("A <b>dog</b>.",) * 6 + ("A cat.",) * 6,
        sentences2=("A cat.",) * 12,
        conditions=("the animal", "the number") * 6,
        labels=np.array([1, 2, 3, 4, 5, np.nan] * 2, np.float32),
    )


def test_html_table_escapes_shortens_and_counts_what_is_left_out():
    html = html_table("a & b", ["<x>"], [["<i>"], [None], [0.123], [12345], ["y" * 500]], more=3)
    assert "a &amp; b" in html
    assert re.findall("<td[^>]*>(.*)</td>", html)[:4] == ["&lt;i&gt;", "", "0.12", "12,345"]
    assert f"{'y' * 119}…<" in html
    assert "<p>3 more</p>" in html
    assert shortened(" a\n b ") == "a b"


def test_task_and_report_show_themselves(task):
    assert repr(task) == "Task('pets', 12 rows, 10 labeled)"
    html = task._repr_html_()
    assert "A &lt;b&gt;dog&lt;/b&gt;." in html
    assert "2 more" in html
    report = evaluate(baseline("word-overlap"), task, resamples=10)
    assert repr(report).startswith("Report('pets', 'word-overlap', spearman=")
    assert "10 rows with a label" in report._repr_html_()


def test_evaluate_arguments_the_wrong_way_round_are_refused(task):
    scorer = baseline("word-overlap")
    with pytest.raises(InputError, match="the scorer first and the task second; got Task and "):
        evaluate(task, scorer)


def test_clusters_duplicates_and_hits_show_themselves():
    cluster = pytest.importorskip("condsim.search.clustering")
    from condsim.search.dedupe import Duplicates
    from condsim.search.query import Hit

    group = cluster.Cluster(0, 2, ("dog", "cat"), 0, "A dog & a cat.")
    labels, vectors = np.array([0, 0, -1]), np.eye(3, dtype=np.float32)
    clusters = cluster.Clusters("the pet", "HDBSCAN", labels, (group,), None, vectors)
    assert repr(clusters) == "Clusters(1 of 3 texts under 'the pet')"
    assert "A dog &amp; a cat." in clusters._repr_html_()
    scores = np.array([1, 0.9, 1], np.float32)
    duplicates = Duplicates(np.array([0, 0, 2], np.int32), scores, 0.8, {None: scores})
    assert repr(duplicates) == "Duplicates(2 of 3 texts kept)"
    assert duplicates._repr_html_().count("<tr>") == 2
    hit = Hit("7", "It came late. " * 20, 0.912, {"the complaint": 0.912}, {"year": 2020})
    assert repr(hit).startswith("Hit(0.91, 'It came late. It")
    assert repr(hit).endswith("…', key='7')")
    assert '<td dir="auto">year</td>' in hit._repr_html_()
