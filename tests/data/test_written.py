from __future__ import annotations

import numpy as np

from condsim.data.load import load_task
from condsim.data.written import WrittenPair, WrittenTask, iter_written, load_written

LINES = "sport ||| We won. ||| We lost. ||| the result = 1 ; who = 5\n\nnews|||A|||B|||c=2.5\n"


def test_load_written_rows_and_domains(write):
    task = load_written(write("a.txt", LINES))
    assert (task.name, task.label_range) == ("a", (1.0, 5.0))
    assert task.sentences1 == ("We won.", "We won.", "A")
    assert task.conditions == ("the result", "who", "c")
    assert task.domains == ("sport", "sport", "news")
    np.testing.assert_array_equal(task.labels, np.float32([1, 5, 2.5]))


def test_load_written_several_files_joined(write):
    first, second = write("a.txt", LINES), write("b.txt", "x ||| C ||| D ||| c = 3\n")
    task = load_written([first, second], name="both")
    assert (task.name, len(task), task.domains[-1]) == ("both", 4, "x")
    assert task.revision not in (load_written(first).revision, load_written(second).revision)


def test_load_task_written_form_detected(write):
    task = load_task(write("a.txt", LINES), require_labels=True)
    assert isinstance(task, WrittenTask)
    part = task.take(np.array([2, 0]))
    assert (part.sentences2, part.domains) == (("B", "We lost."), ("news", "sport"))


def test_iter_written_pairs_have_their_location(write):
    pairs = list(iter_written(write("a.txt", LINES)))
    assert pairs[1] == WrittenPair("news", "A", "B", {"c": 2.5})
    assert pairs[1].location.endswith("a.txt, line 3")
    assert pairs[1].line == 3
