from __future__ import annotations

import logging

import numpy as np
import pytest
from papers.suite.data import TripletSet, load_sts_suite

from condsim.errors import InputError


def test_load_suite_sts_columns_are_those_of_table_2(data_sets):
    tasks = load_sts_suite(data_sets.everything(), "sts")
    keys = ["sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r"]
    assert [task.key for task in tasks] == keys
    assert all(task.averaged for task in tasks)
    first = tasks[0]
    assert first.names[0] == "STS12.MSRpar"
    assert first.subsets == (6,) * 5
    assert first.subsets == (6, 6, 6, 6, 6)
    assert tasks[-1].task.label_range == (1.0, 5.0)


def test_load_suite_semeval_folders_are_told_by_their_year(data_sets):
    # headlines and OnWN are in more than one year: the folder tells which.
    for year in (2012, 2013, 2014, 2015, 2016):
        data_sets.sts(year, f"STS/STS{year % 100}-en-test", semeval=True)
    tasks = {task.key: task for task in load_sts_suite(data_sets.root, "sts")}
    assert [len(tasks[key].subsets) for key in ("sts13", "sts14")] == [3, 6]


def test_load_suite_missing_subset_names_the_file(data_sets):
    data_sets.sts(2013, skip="FNWN")
    with pytest.raises(InputError, match=r"missing: FNWN. Add STS.input.FNWN.txt"):
        load_sts_suite(data_sets.root, "sts")


def test_load_suite_missing_subset_in_a_folder_called_after_the_year_alone(data_sets):
    data_sets.sts(2016, "2016", semeval=True, skip="plagiarism")
    with pytest.raises(InputError, match=r"missing: plagiarism. Add STS.input.plagiarism.txt"):
        load_sts_suite(data_sets.root, "sts")


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


def test_load_suite_sick_in_one_file_takes_the_test_rows(data_sets):
    head = "sentence_A\tsentence_B\trelatedness_score\tSemEval_set\n"
    rows = "A dog.\tA cat.\t2.0\tTRAIN\nA dog.\tA dog.\t5.0\tTEST\n"
    (data_sets.folder("SICK") / "SICK.txt").write_text(head + rows)
    (task,) = load_sts_suite(data_sets.root, "sts")
    assert len(task.task) == 1


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


@pytest.mark.parametrize(
    ("suite", "message"),
    [("st", "Unknown suite 'st'"), ("afs", "no data of the suite 'afs'")],
)
def test_load_suite_bad_request_is_one_line(data_sets, suite, message):
    data_sets.sick()
    with pytest.raises(InputError, match=message):
        load_sts_suite(data_sets.root, suite)


def test_load_suite_no_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        load_sts_suite(tmp_path / "none", "sts")


def test_load_suite_gold_out_of_range_names_line_and_rule(data_sets):
    path = data_sets.stsb()
    path.write_text(path.read_text().replace("\t5\t", "\t7\t"))
    with pytest.raises(InputError, match=r"line 6.*from 0 to 5"):
        load_sts_suite(data_sets.root, "sts-b")


def test_suite_task_gold_keeps_the_order_of_the_subsets(data_sets):
    data_sets.sts(2013)
    (task,) = load_sts_suite(data_sets.root, "sts")
    assert np.allclose(task.task.labels, np.tile(np.arange(6), 3))


def test_load_suite_stsb_dev_of_glue(data_sets):
    columns = "index genre filename year old_index source1 source2 sentence1 sentence2 score"
    row = "0 g f y 1 none none A_dog. A_cat. 2.5".replace(" ", "\t").replace("_", " ")
    path = data_sets.folder("GLUE/STS-B") / "dev.tsv"
    path.write_text("\t".join(columns.split()) + "\n" + row + "\n")
    (task,) = load_sts_suite(data_sets.root, "sts-b")
    assert (task.key, task.task.labels.tolist()) == ("sts-b-dev", [2.5])
