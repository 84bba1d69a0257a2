from __future__ import annotations

from dataclasses import replace

import mteb
import numpy as np
import pytest

from condsim.errors import InputError
from condsim.integrations.mteb import CSTS, local_task


def test_local_task_holds_the_rows_and_says_so(pairs):
    task = local_task("STS12", pairs)
    assert task.data_loaded
    assert task.dataset["test"]["sentence1"][:] == list(pairs.sentences1)
    assert task.dataset["test"]["score"][:] == pytest.approx(pairs.labels.tolist())
    assert task.metadata.revision == "local-abc123"
    assert mteb.get_task("STS12").metadata.revision != "local-abc123"


def test_local_task_unlabelled_rows_are_left_out(conditional):
    task = local_task("CSTS", conditional)
    assert len(task.dataset["validation"]) == 7
    assert task.dataset["validation"]["condition"][:2] == ["the person", "the color"]


def test_local_task_split_is_the_only_one_evaluated(pairs):
    task = local_task("STSBenchmark.v2", pairs, split="test")
    assert list(task.eval_splits) == ["test"]
    assert list(task.dataset) == ["test"]


def test_local_task_other_column_names_are_kept(pairs):
    task = mteb.get_task("SICK-R")
    task.column_names = ("query", "passage")
    assert local_task(task, pairs).dataset["test"].column_names == ["query", "passage", "score"]


def test_local_task_unknown_name_lists_near_ones(pairs):
    with pytest.raises(InputError, match=r"task of mteb 'STS-12'.*Did you mean 'STS12'"):
        local_task("STS-12", pairs)


@pytest.mark.parametrize("name", ["Banking77Classification", "STS17"])
def test_local_task_no_sts_or_several_subsets_refused(pairs, name):
    with pytest.raises(InputError, match=f"{name} must be an STS task"):
        local_task(name, pairs)


def test_local_task_conditions_must_be_there_for_csts_alone(pairs, conditional):
    with pytest.raises(InputError, match="needs rows with conditions"):
        local_task("CSTS", replace(pairs, labels=np.clip(pairs.labels, 1, 5)))
    with pytest.raises(InputError, match="needs rows without conditions"):
        local_task("STS12", conditional)


def test_local_task_labels_of_another_scale_refused(pairs):
    with pytest.raises(InputError, match=r"CSTS: labels must be from 1 to 5.*from 0 to 5"):
        local_task(CSTS(), replace(pairs, conditions=("the topic",) * 8))


def test_local_task_no_label_refused(pairs):
    with pytest.raises(InputError, match="none of the 8 rows of some has a label"):
        local_task("STS12", replace(pairs, labels=np.full(8, np.nan, np.float32)))
