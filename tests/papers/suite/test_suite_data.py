from __future__ import annotations

import logging

import numpy as np
import pytest
from papers.suite.data import StsSet, TripletSet, load_sts_suite
from scipy import stats

from condsim.types import Task


def test_load_suite_sts_columns_are_those_of_table_2(data_sets):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    keys = ["sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r"]
    assert [task.key for task in tasks] == keys
    assert all(task.averaged for task in tasks)
    first = tasks[0]
    assert first.names[0] == "STS12.MSRpar"
    assert first.subsets == (6,) * 5
    assert tasks[-1].task.label_range == (1.0, 5.0)


def test_load_suite_semeval_folders_are_told_by_their_year(data_sets):
    # headlines and OnWN are in more than one year: the folder tells which.
    for year in (2012, 2013, 2014, 2015, 2016):
        data_sets.sts(year, f"STS/STS{year % 100}-en-test", semeval=True)
    tasks = {task.key: task for task in load_sts_suite(data_sets.root, "sts")}
    assert [len(tasks[key].subsets) for key in ("sts13", "sts14")] == [3, 6]


def test_load_suite_missing_sets_are_warned_of_but_not_for_all(data_sets, caplog):
    data_sets.sick()
    with caplog.at_level(logging.WARNING, logger="condsim"):
        assert [task.key for task in load_sts_suite(data_sets.root, "all")] == ["sick-r"]
        assert not [record for record in caplog.records if "without" in record.message]
        assert [task.key for task in load_sts_suite(data_sets.root, "sts")] == ["sick-r"]
    assert "no data of sts12, sts13" in caplog.text


def test_load_suite_every_suite_finds_its_data(data_sets):
    data_sets.stsb("dev")
    data_sets.stsb()
    data_sets.afs()
    data_sets.csts()
    data_sets.triplets()
    found = {
        suite: [task.key for task in load_sts_suite(data_sets.root, suite)]
        for suite in ("sts-b", "afs", "csts", "wiki-sections", "all")
    }
    assert found == {
        "sts-b": ["sts-b-dev", "sts-b"],
        "afs": ["afs"],
        "csts": ["csts"],
        "wiki-sections": ["wiki-sections"],
        "all": ["sts-b", "afs", "wiki-sections", "csts"],
    }
    (csts,) = load_sts_suite(data_sets.root, "csts")
    assert csts.train is not None
    (sections,) = load_sts_suite(data_sets.root, "wiki-sections")
    assert isinstance(sections, TripletSet)
    assert sections.published
    assert len(sections.task) == 12


def test_load_suite_triplets_are_drawn_from_text(data_sets):
    pytest.importorskip("sentencex")
    documents = []
    for document in range(4):
        documents.append(f"= Title {document} =")
        for section in range(3):
            documents.append(f"== Section {section} ==")
            documents += [
                f"In section {section} of {document} there is line {line} of text."
                for line in range(5)
            ]
    (data_sets.folder("text") / "sections.txt").write_text("\n".join(documents) + "\n")
    (drawn,) = load_sts_suite(data_sets.root, "wiki-sections")
    assert not drawn.published
    assert len(drawn.task) > 0


SIZES = (20, 50, 30)


@pytest.fixture
def subsets():
    """Subsets of which the second is scored higher throughout, which only 'all' notices."""
    generator = np.random.default_rng(0)
    gold = [generator.uniform(0, 5, size) for size in SIZES]
    scores = [values + generator.normal(size=values.size) for values in gold]
    scores[1] = scores[1] + 10
    return scores, gold


def make_set(gold, aggregation):
    texts = tuple(map(str, range(sum(map(len, gold)))))
    labels = np.concatenate(gold).astype(np.float32)
    task = Task("sts", "0", texts, texts, None, labels, (0.0, 5.0))
    sizes = tuple(map(len, gold))
    return StsSet("sts", "STS", task, subsets=sizes, names=("a", "b", "c"), aggregation=aggregation)


def test_sts_set_aggregations_equal_scipy(subsets):
    scores, gold = subsets
    joined = np.concatenate(scores).astype(np.float32)
    each = [stats.spearmanr(*subset).statistic for subset in zip(scores, gold, strict=True)]
    together = stats.spearmanr(joined, np.concatenate(gold)).statistic
    expected = {"all": together, "mean": np.mean(each), "wmean": np.average(each, weights=SIZES)}
    for aggregation, value in expected.items():
        suite_set = make_set(gold, aggregation)
        assert suite_set.values(joined)[0] == pytest.approx(100 * value, abs=1e-4)
        draws = suite_set.draws([joined], resamples=20, seed=0)
        assert draws.shape == (1, 2, 20)
    assert together < min(expected["mean"], expected["wmean"])
