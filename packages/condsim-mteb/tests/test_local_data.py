from __future__ import annotations

from dataclasses import replace

import mteb
import numpy as np
import pytest

from condsim.errors import InputError
from condsim_mteb import local_task


def test_local_task_holds_the_rows_and_says_so(pairs):
    task = local_task("STS12", pairs)
    assert task.data_loaded
    assert task.dataset["test"]["sentence1"][:] == list(pairs.sentences1)
    assert task.dataset["test"]["score"][:] == pytest.approx(pairs.labels.tolist())
    assert task.metadata.revision == "local-abc123"
    assert mteb.get_task("STS12").metadata.revision != "local-abc123"


def test_local_task_has_labeled_rows_and_one_split(pairs, conditional):
    task = local_task("CSTS", conditional)
    assert len(task.dataset["validation"]) == 7
    assert task.dataset["validation"]["condition"][:2] == ["the person", "the color"]
    task = local_task("STSBenchmark.v2", pairs, split="test")
    assert (list(task.eval_splits), list(task.dataset)) == (["test"], ["test"])


def test_local_task_other_column_names_are_kept(pairs):
    task = mteb.get_task("SICK-R")
    task.column_names = ("query", "passage")
    assert local_task(task, pairs).dataset["test"].column_names == ["query", "passage", "score"]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("STS-12", {}, r"task of mteb 'STS-12'.*Did you mean 'STS12'"),
        ("Banking77Classification", {}, "must be an STS task"),
        ("STS17", {}, "must be an STS task"),
        ("CSTS", {"labels": np.ones(8, np.float32)}, "needs rows with conditions"),
        ("STS12", {"conditions": ("the topic",) * 8}, "needs rows without conditions"),
        ("CSTS", {"conditions": ("the topic",) * 8}, r"labels must be from 1 to 5.*from 0 to 5"),
        ("STS12", {"labels": np.full(8, np.nan, np.float32)}, "none of the 8 rows of some has a"),
    ],
)
def test_local_task_of_rows_that_do_not_fit_refused(pairs, name, changes, message):
    with pytest.raises(InputError, match=message):
        local_task(name, replace(pairs, **changes))
