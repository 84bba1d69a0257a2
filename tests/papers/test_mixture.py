"""Rows of a mixture on tables by hand: combined conditions, noise, files, vectors."""

from __future__ import annotations

import csv
import random
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")

from papers.model import everyday, mixture, noise, teach, written
from papers.model.combined import combined_groups, label_of
from papers.model.groups import Group, write_groups
from papers.model.labeled import LabeledTable, LabeledText

from condsim.data.written import load_written


def text(words, **values):
    return LabeledText(words, {name: frozenset([value]) for name, value in values.items()})


TABLE = LabeledTable(
    "things",
    (
        text("a", color="red", size="big", shape="round"),
        text("b", color="red", size="small", shape="round"),
        text("c", color="blue", size="big", shape="round"),
        text("silent", color="red", size="big"),
        text("doubtful", color="dark red", size="big", shape="flat"),
    ),
    {},
)
A, B, C, SILENT, DOUBTFUL = range(5)


@pytest.mark.parametrize(
    ("kind", "criteria", "other", "label"),
    [
        # Of size and shape, B has the shape of A, and C has both.
        ("except", ("color",), B, 0.5),
        ("except", ("color",), C, 1.0),
        ("except", ("color",), SILENT, None),
        ("except", ("size",), DOUBTFUL, None),
        ("except", ("color",), DOUBTFUL, 0.5),
        ("both", ("color", "size"), B, 0.5),
        ("both", ("color", "shape"), B, 1.0),
        ("both", ("color", "shape"), SILENT, None),
        ("either", ("color", "size"), B, 1.0),
        ("either", ("color", "size"), C, 1.0),
        ("either", ("color", "size"), DOUBTFUL, None),
        ("one", ("color",), C, 0.0),
    ],
)
def test_label_of_combined_condition_by_hand(kind, criteria, other, label):
    assert label_of(TABLE, (kind, criteria), A, other) == label


def test_label_of_either_of_two_that_differ_is_zero():
    other = text("d", color="green", size="small", shape="flat")
    table = LabeledTable("things", (TABLE.texts[A], other), {})
    assert label_of(table, ("either", ("color", "size")), 0, 1) == 0.0


def test_combined_groups_end_with_rows_under_the_criterion_alone():
    names = ("color", "size", "shape")
    values = [*product(("red", "blue"), ("big", "small", "tiny"), ("round", "flat"))]
    texts = tuple(text(" ".join(row), **dict(zip(names, row, strict=True))) for row in values)
    groups = [*combined_groups(LabeledTable("t", texts, {}), random.Random(0), number=40)]
    assert len(groups) > 30
    for group in groups:
        members = len(group.inputs) // 2
        condition = group.inputs[-1][0]
        assert condition in names
        assert condition in group.inputs[0][0]
        place = names.index(condition)
        alone = [row for row in group.rows if row[0] >= members]
        for first, second, label, _ in alone:
            words = [group.inputs[row][1].split()[place] for row in (first, second)]
            assert label == float(words[0] == words[1])


NOTE = "Order KX-4471 from the 12th costs 1,250.50 EUR; see A7/19."
PARTS = ("train", "dev", "test")
FACTS = ("kx-4471", "12th", "1,250.50", "a7/19")


@pytest.mark.parametrize("change", noise.TEXT_NOISE)
def test_text_noise_keeps_codes_and_numbers(change):
    for seed in range(40):
        noisy = change(NOTE, random.Random(seed)).lower()
        assert all(fact in noisy for fact in FACTS), noisy


@pytest.mark.parametrize("part", PARTS)
def test_long_noise_adds_twenty_to_300_words(part):
    lines = noise.surroundings(noise.SURROUNDINGS / f"{part}.txt")
    for change in noise.LONG_NOISE:
        for seed in range(40):
            noisy = change(NOTE, random.Random(seed), lines)
            assert NOTE in noisy
            assert "{n}" not in noisy
            assert 20 <= len(noisy.split()) - len(NOTE.split()) <= 300


def test_surroundings_of_the_parts_have_no_line_in_common():
    parts = [noise.surroundings(noise.SURROUNDINGS / f"{part}.txt") for part in PARTS]
    lines = [line.lower() for part in parts for kind in part.values() for line in kind]
    assert len(set(lines)) == len(lines)


def test_among_others_gives_a_text_the_same_surroundings_in_each_row(tmp_path):
    path = tmp_path / "notes.txt"
    lines = [
        f"note ||| {NOTE} ||| Paid. ||| the sum = 1 ; the tone = 5",
        f"note ||| Fed. ||| {NOTE} ||| the sum = 1",
    ]
    path.write_text("\n".join(lines), "utf-8")
    task = load_written(path)
    long = everyday.among_others(task, noise.surroundings())
    assert long.sentences1[0] == long.sentences1[1] == long.sentences2[2]
    assert all(old in new for old, new in zip(task.sentences2, long.sentences2, strict=True))
    assert (long.conditions, long.domains) == (task.conditions, task.domains)


def test_noised_condition_keeps_codes_and_numbers():
    for seed in range(40):
        assert "kx-4471" in noise.noised_condition("the KX-4471 order", random.Random(seed)).lower()


def groups_of(number, condition="the place", *, plain=False):
    """Groups of two texts under two conditions."""
    groups = []
    for row in range(number):
        texts = f"A small house near lake {row}.", f"A large tower near river {row}."
        inputs = [(asked, one) for asked in (condition, "the size") for one in texts]
        groups.append(Group(inputs, [(0, 1, 1.0, 1.0), (2, 3, 0.0, 1.0)], plain=plain))
    return groups


def test_with_noise_gives_a_text_of_a_group_the_same_noise():
    groups = groups_of(400)
    noisy = [*noise.with_noise(groups, seed=0)]
    changed = [new for old, new in zip(groups, noisy, strict=True) if new.inputs != old.inputs]
    assert 85 < len(changed) < 140
    for group in changed:
        conditions, texts = zip(*group.inputs, strict=True)
        assert texts[:2] == texts[2:]
        assert conditions[0] == conditions[1]
        assert conditions[2] == conditions[3]
    assert [group.rows for group in noisy] == [group.rows for group in groups]


@pytest.mark.parametrize("kind", [{"condition": "the writing style"}, {"plain": True}])
def test_with_noise_leaves_style_and_plain_groups(kind):
    groups = groups_of(60, **kind)
    assert [*noise.with_noise(groups, seed=0)] == groups


def test_everyday_labels_from_lines_of_any_length(tmp_path, monkeypatch):
    lines = [
        "bug ||| It crashes. ||| it crashed again ||| what fails = 5 ; the device = 1",
        "note ||| Feed the cat. ||| cat fed ||| what is meant = 3",
        f"note ||| {'word ' * 91} ||| long ||| what is meant = 5",
    ]
    path = tmp_path / "data" / "everyday" / "train.txt"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(written, "ROOT", tmp_path)
    monkeypatch.setattr(noise, "SHARE_OF_GROUPS", 0)
    first, second, third = written.everyday(None)
    assert first.inputs == [
        ("what fails", "It crashes."),
        ("what fails", "it crashed again"),
        ("the device", "It crashes."),
        ("the device", "it crashed again"),
    ]
    assert first.rows == [(0, 1, 1.0, 1.0), (2, 3, 0.0, 1.0)]
    assert second.rows == [(0, 1, 0.5, 1.0)]
    assert third.rows == [(0, 1, 1.0, 1.0)]


VECTORS = {"a": (1.0, 0.0), "b": (0.6, 0.8), "c": (-1.0, 0.0)}


def plain(texts):
    return np.array([VECTORS[one] for one in texts], np.float32)


def turned(texts):
    """The plain vectors, turned by a quarter."""
    return plain(texts)[:, ::-1] * np.array([-1, 1], np.float32)


@pytest.fixture
def rows(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    told = [("the place", one) for one in "abc"]
    shared = Group(told, [(0, 1, 1.0, 1.0), (0, 2, 1.0, 0.3)], share=0.2)
    bare = Group([(None, "a"), (None, "b")], [(0, 1, 0.25, 1.0)])
    write_groups([shared, bare], folder / "graded.jsonl.gz", exclude=())
    vectors = [Group([(None, "a"), ("the topic", "b")], plain=True)]
    write_groups([*vectors, Group([(None, "c")], plain=True)], folder / "b.jsonl.gz", exclude=())
    return folder


def cells(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return sorted(csv.reader(stream))


def test_write_mixture_labels_have_the_share_of_the_plain_cosine(tmp_path, rows):
    mixture.write_mixture(rows, tmp_path / "out", plain, inputs=10)
    header, *_ = cells(tmp_path / "out" / "graded.csv")[::-1]
    assert header == ["sentence1", "sentence2", "condition", "label", "group"]
    # 0.8 + 0.2 · 0.6, and 0.8 where the cosine is below 0.
    found = [row[:4] for row in cells(tmp_path / "out" / "graded.csv")[:-1]]
    assert found == [["a", "b", "the place", "0.920"], ["a", "c", "the place", "0.800"]]


def test_write_mixture_rows_without_a_condition_have_a_file_of_their_own(tmp_path, rows):
    mixture.write_mixture(rows, tmp_path / "out", plain, inputs=10)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"graded.csv", "graded-plain.csv"}
    bare = cells(tmp_path / "out" / "graded-plain.csv")
    assert bare == [["a", "b", "0.250", "0"], ["sentence1", "sentence2", "score", "group"]]


def test_write_mixture_draws_whole_groups_and_keeps_files(tmp_path, rows):
    out = tmp_path / "out"
    mixture.write_mixture(rows, out, plain, inputs=4)
    drawn = {path.name: path.read_text() for path in out.iterdir()}
    # Either group fits, and not both.
    assert len(drawn) == 1
    (out / "graded.csv").write_text("mine")
    mixture.write_mixture(rows, out, plain, inputs=10)
    assert (out / "graded.csv").read_text() == "mine"


def test_keep_plain_turns_vectors_to_the_start(tmp_path, rows):
    teach.keep_plain(rows, tmp_path / "out", plain, turned, inputs=10)
    with (tmp_path / "out" / "b.csv").open(encoding="utf-8", newline="") as stream:
        header, *inputs = csv.reader(stream)
    assert header == ["sentence", "condition"]
    assert sorted(inputs) == [["a", ""], ["b", "the topic"], ["c", ""]]
    vectors = np.load(tmp_path / "out" / "b.npy")
    np.testing.assert_allclose(vectors, turned([one for one, _ in inputs]), atol=1e-3)
    assert not (tmp_path / "out" / "graded.csv").exists()


def test_teach_writes_inputs_of_every_source_with_projected_vectors(tmp_path, rows):
    def large(inputs):
        return np.pad(plain([one for _, one in inputs]), ((0, 0), (0, 2)))

    def small(inputs):
        return turned([one for _, one in inputs])

    teach.teach(rows, tmp_path / "out", large, small)
    with (tmp_path / "out" / "taught.csv").open(encoding="utf-8", newline="") as stream:
        _, *inputs = csv.reader(stream)
    assert len(inputs) == 8
    vectors = np.load(tmp_path / "out" / "taught.npy")
    np.testing.assert_allclose(vectors, turned([one for one, _ in inputs]), atol=1e-3)
