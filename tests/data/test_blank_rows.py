from __future__ import annotations

import pytest

from condsim.data.files import BlankRows, read_batches
from condsim.errors import InputError

FILES = {
    "x.csv": "a,b,n\none,the use,1\n , the use,2\ntwo,,3\nthree,the colour,4\n",
    "x.jsonl": '{"a": "one", "b": "the use"}\n{"b": "the use"}\n{"a": "two", "b": null}\n'
    '{"a": "three", "b": "the colour"}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_blank_rows_texts_skips_and_counts(write, name):
    (batch,) = read_batches(write(name, FILES[name]), columns=("a", "b"))
    blank = BlankRows()
    rows, (texts, conditions) = blank.texts(batch, ("a", "b"), condition="b")
    assert rows.tolist() == [0, 3]
    assert (texts, conditions) == (["one", "three"], ["the use", "the colour"])
    assert blank.note("no score").startswith("2 rows have no text and thus no score (row 2, 3)")


@pytest.mark.parametrize("name", FILES)
def test_blank_rows_strict_stops_at_first(write, name):
    (batch,) = read_batches(write(name, FILES[name]), columns=("a", "b"))
    with pytest.raises(InputError, match=r"row 2 .*column 'a': must not be empty"):
        BlankRows(strict=True).texts(batch, ("a", "b"))


def test_blank_rows_strict_names_three_rows(write):
    rows = ["one", "", "two", "", "", "", "three"]
    path = write("x.csv", "a,b\n" + "".join(f"{text},{n}\n" for n, text in enumerate(rows)))
    (batch,) = read_batches(path, columns=("a",))
    message = r"row 2 .*must not be empty\. Also without text: row 4, 5, \.\.\.\."
    with pytest.raises(InputError, match=message):
        BlankRows(strict=True).texts(batch, ("a",))


def test_blank_rows_texts_condition_of_marks_refused(write):
    (batch,) = read_batches(write("x.csv", "a,b\none,?!\n"), columns=("a", "b"))
    with pytest.raises(InputError, match="column 'b': must have a letter"):
        BlankRows().texts(batch, ("a", "b"), condition="b")
    assert BlankRows().texts(batch, ("a", "b"))[1][1] == ["?!"]


def test_blank_rows_note_without_blank_rows_is_empty(write):
    (batch,) = read_batches(write("x.csv", "a\none\n"), columns=("a",))
    blank = BlankRows()
    blank.texts(batch, ("a",))
    assert blank.note("no score") == ""
