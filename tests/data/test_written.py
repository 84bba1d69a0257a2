from __future__ import annotations

import numpy as np
import pytest

from condsim.data.load import load_task
from condsim.data.written import WrittenPair, WrittenTask, iter_written, load_written, write_written
from condsim.errors import InputError

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


def test_write_written_read_back_same(write, tmp_path):
    pairs = list(iter_written(write("a.txt", LINES)))
    write_written(pairs, tmp_path / "b.txt")
    assert list(iter_written(tmp_path / "b.txt")) == pairs
    assert pairs[1] == WrittenPair("news", "A", "B", {"c": 2.5})
    assert pairs[1].location.endswith("a.txt, line 3")
    assert pairs[1].line == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("d ||| A ||| B", "line 1: must be .*condition = label"),
        ("d ||| A ||| ||| c = 1", "no part empty"),
        ("d ||| A ||| B ||| c = 1 ;", "no part empty"),
        ("d ||| A ||| B ||| c = d = 1", "each condition once"),
        ("d ||| A ||| B ||| c = 6", "condition 'c': the label: must be a number from 1 to 5"),
        ("d ||| A ||| B ||| c = 1 ; c = 2", "each condition once"),
        ("d ||| A ||| B ||| c = 1\nd ||| A ||| B ||| e = 1", "line 2: .* also at .*line 1"),
    ],
)
def test_load_written_broken_rule_place_and_rule(write, line, message):
    with pytest.raises(InputError, match=message):
        load_written(write("a.txt", line + "\n"))


def test_load_written_nothing_there_error(write):
    with pytest.raises(InputError, match="has no rows"):
        load_written(write("a.txt", "\n\n"))
