from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from rich.console import Console

from condsim.data.tasks import pair_rows
from condsim.errors import InputError
from condsim.evaluation.metrics import pair_accuracy
from condsim.evaluation.statistics import spearman
from condsim.evaluation.suite import SuiteReport, evaluate_suite
from condsim.evaluation.suite_data import WithoutCondition, load_files, load_suite, mark_trained
from condsim.evaluation.suite_tables import suite_markdown, suite_tables

pytest.importorskip("sklearn")

HEADER = "id,set,pair_id,sentence1,sentence2,condition,label,scale,use\n"
SETS = {"hotels": "train", "laws": "train", "drugs": "evaluation only"}
WRITTEN = (
    "cafes ||| It is not open. ||| It is open. ||| opening = 1 ; the place = 5 ; tone = 4.5\n"
    "cafes ||| Two teas, six euros. ||| Tea for 6. ||| price = 5 ; number of cups = 1\n"
    "shops ||| The till was slow. ||| No queue at all! ||| waiting time = 1 ; the shop = 3\n"
)


@pytest.fixture
def rows(tmp_path):
    """Three sets of eight rows: four text pairs, each alike in one condition of two."""
    lines = [
        f"{name}-{pair}-{row},{name},{name}-{pair},{name} a{pair} x,{name} b{pair} {'x' * pair},"
        f"the {('first', 'second')[row]} point,{5 if (row + pair) % 2 else 1},1|5,{use}\n"
        for name, use in SETS.items()
        for pair in range(4)
        for row in range(2)
    ]
    folder = tmp_path / "data" / "criteria"
    folder.mkdir(parents=True)
    (folder / "dev_rows.csv").write_text(HEADER + "".join(lines))
    return folder


def groups_of(tasks):
    return [(task.key, task.group) for task in tasks]


def test_load_suite_criteria_a_data_set_for_each_set(rows):
    tasks = load_suite(rows.parent, "criteria")
    assert groups_of(tasks) == [
        ("hotels", "left out of training"),
        ("laws", "left out of training"),
        ("drugs", "evaluation only"),
    ]
    assert [len(task.task) for task in tasks] == [8, 8, 8]
    assert len(load_suite(rows / "dev_rows.csv", "criteria")) == 3


def test_mark_trained_sets_come_first(rows):
    tasks = mark_trained(load_suite(rows, "criteria"), ["laws"])
    assert groups_of(tasks)[0] == ("laws", "trained on")
    with pytest.raises(InputError):
        mark_trained(tasks, ["law"])


def test_evaluate_suite_criteria_metrics_and_means_of_groups(rows, letters, tmp_path):
    tasks = mark_trained(load_suite(rows, "criteria"), ["laws"])
    report = evaluate_suite([letters()], tasks, baselines=("condition-only",), resamples=20)
    assert [row.name for row in report.rows] == ["condition-only", "letters"]
    figures = report.rows[-1].figures
    one = tasks[0].task
    scores = letters().score(one.sentences1, one.sentences2, one.conditions, scale="raw")
    pairing = pair_rows(one)
    accuracy = pair_accuracy(scores, high=pairing.high, low=pairing.low)
    assert figures["laws"]["spearman"].value == pytest.approx(100 * spearman(scores, one.labels))
    assert figures["laws"]["pair_accuracy"].value == pytest.approx(100 * accuracy)
    assert figures["laws"]["pair_accuracy"].low <= 100 * accuracy
    for key, of in (
        ("avg", ("laws", "hotels", "drugs")),
        ("avg:trained on", ("laws",)),
        ("avg:left out of training", ("hotels",)),
    ):
        values = [figures[name]["pair_accuracy"].value for name in of]
        assert figures[key]["pair_accuracy"].value == pytest.approx(np.mean(values))
    column = report.columns[0]
    assert (column.rows, column.conditions, column.pairs) == (8, 2, 4)
    report.to_json(tmp_path / "report.json")
    assert SuiteReport.from_json(tmp_path / "report.json") == report


def test_evaluate_suite_criteria_set_of_no_different_labels_is_not_in_the_means(
    rows, letters, tmp_path
):
    with (rows / "dev_rows.csv").open("a") as stream:
        stream.write("1,lone,p,a lone x,b lone,the point,5,1|5,train\n")
        for row, label in enumerate((1, 3, 5)):  # labels differ, but not under one text pair
            stream.write(f"2-{row},bare,q{row},a{row},b {'x' * row},the point,{label},1|5,train\n")
    report = evaluate_suite(
        [letters()], load_suite(rows, "criteria"), baselines=("word-overlap",), resamples=20
    )
    undefined = {column.key: column.undefined for column in report.columns if column.undefined}
    assert undefined == {"lone": ("spearman", "pair_accuracy"), "bare": ("pair_accuracy",)}
    figures = report.rows[-1].figures
    for metric, sets in (
        ("spearman", ("bare", "hotels", "laws")),
        ("pair_accuracy", ("hotels", "laws")),
    ):
        mean = np.mean([figures[name][metric].value for name in sets])
        assert figures["avg:left out of training"][metric].value == pytest.approx(mean)
        everywhere = np.mean([figures[name][metric].value for name in (*sets, "drugs")])
        assert figures["avg"][metric].value == pytest.approx(everywhere)
    markdown = suite_markdown(report)
    assert "| **mean of 3** |" in markdown
    assert "| **mean of all 4** |" in markdown
    assert "do not differ: Spearman of lone; pair acc. of bare, lone\n" in markdown
    report.to_json(tmp_path / "report.json")
    assert SuiteReport.from_json(tmp_path / "report.json").columns == report.columns
    lone = evaluate_suite(
        [letters()],
        [task for task in load_suite(rows, "criteria") if task.key in ("lone", "drugs")],
    )
    assert np.isnan(lone.rows[-1].figures["avg:left out of training"]["spearman"].value)


def test_load_suite_written_folder_with_gzipped_files_reads_each_once(tmp_path):
    for name in ("dev.txt.gz", "test.txt.gz"):
        (tmp_path / name).write_bytes(gzip.compress(WRITTEN.encode()))
    (tmp_path / "test.txt").write_text(WRITTEN)
    tasks = load_suite(tmp_path, "written")
    keys = [task.key for task in tasks if task.averaged]
    assert keys == ["dev/cafes", "dev/shops", "test/cafes", "test/shops"]


def test_suite_tables_by_set_fit_and_name_groups(rows, letters):
    tasks = mark_trained(load_suite(rows, "criteria"), ["laws", "hotels"])
    report = evaluate_suite([letters(), letters(name="a|b* again")], tasks, resamples=10)
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        for table in suite_tables(report, width=80):
            console.print(table)
    text = capture.get()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("trained on", "mean of 2", "evaluation only", "mean of all 3", "pair acc."):
        assert words in text
    markdown = suite_markdown(report)
    assert "| **mean of all 3** |" in markdown
    assert "a\\|b\\* again: pair acc." in markdown
    widths = {line.count("|") - line.count("\\|") for line in markdown.splitlines() if "|" in line}
    assert len(widths - {0}) == 1


@pytest.mark.parametrize(
    ("suite", "content", "message"),
    [
        ("criteria", None, "has no data of the suite 'criteria'. no dev_rows.csv"),
        (
            "criteria",
            "set,sentence1\na,b\n",
            "columns 'sentence2', 'condition', 'label' are missing",
        ),
        ("criteria", HEADER + "i,s,p,a,b,c,6,1|5,train\n", "must be a number from 1 to 5"),
        ("written", None, "has no data of the suite 'written'"),
    ],
)
def test_load_suite_bad_data_is_one_line(tmp_path, suite, content, message):
    if content is not None:
        (tmp_path / "dev_rows.csv").write_text(content)
    with pytest.raises(InputError, match=message) as error:
        load_suite(tmp_path, suite)
    assert "\n" not in str(error.value)


def test_load_files_a_data_set_for_each_file(letters, tmp_path):
    columns = "sentence1,sentence2,condition,label\n"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        lines = [f"x {row // 2},y,the {row % 2} {'x' * row},{1 + row % 5}\n" for row in range(6)]
        (tmp_path / folder / "dev.csv").write_text(columns + "".join(lines))
    sets = load_files([tmp_path / "a" / "dev.csv", tmp_path / "b" / "dev.csv"])
    assert [suite_set.key for suite_set in sets] == ["dev", str(tmp_path / "b" / "dev.csv")]
    report = evaluate_suite([letters(), letters(name="second")], sets, resamples=20)
    assert report.against == "letters"
    assert report.rows[1].comparison["dev"].value == 0
    markdown = suite_markdown(report)
    assert "| **mean of all 2** |" in markdown
    assert markdown.count("| dev |") == 1
    report.to_csv(tmp_path / "report.csv")
    lines = (tmp_path / "report.csv").read_text().splitlines()
    assert lines[0] == "model,task,figure,value,low,high,difference,p_value"
    assert len(lines) == 1 + 2 * 3 * 2


PAIRS = "text1,text2,condition,label,unit\n"


class Lengths:
    """Scores a pair by the length of its second text, and by that of the condition if given."""

    def __init__(self, name="lengths"):
        self.name = name

    def score(self, sentences1, sentences2, conditions, /):
        scores = [len(text) for text in sentences2]
        if conditions is not None:
            scores = [score - 10 * len(c) for score, c in zip(scores, conditions, strict=True)]
        return np.array(scores, np.float32)


class Unloaded:
    """Loads nothing."""

    name = "lengths"

    def open(self):
        return Lengths()

    def revision(self):
        return None


@pytest.fixture
def write(tmp_path):
    def write_suite(content, **spec):
        entry = {"family": "graded", "title": "a test", "file": "test.csv", **spec}
        (tmp_path / "suite.json").write_text(json.dumps([entry]))
        (tmp_path / "test.csv").write_text(content)
        return load_suite(tmp_path, "natural")

    return write_suite


def figure(sets, scorer=None):
    report = evaluate_suite([scorer or Lengths()], sets, resamples=20)
    return report.rows[0].figures["graded: a test"]["points"]


def natural_rows(*cells):
    return PAIRS + "".join(f"a,{'x' * length},c,{label},{unit}\n" for length, label, unit in cells)


@pytest.mark.parametrize(
    ("measure", "cells", "expected"),
    [
        # The same order.
        ("spearman", [(1, 0.5, 1), (2, 2, 2), (3, 4, 3)], 1),
        # Scores 3, 1 of positive rows, 1, 0 of negative ones: 2 + 1.5 of 4 comparisons.
        ("auroc", [(4, 1, 1), (2, 1, 2), (2, 0, 3), (1, 0, 4)], 3.5 / 4),
        # Positives at ranks 1 and 3.
        ("average_precision", [(4, 1, 1), (3, 0, 2), (2, 1, 3), (1, 0, 4)], (1 + 2 / 3) / 2),
        # In unit 1 the higher label is longer, in unit 2 it is not.
        ("order", [(2, 1, 1), (1, 0, 1), (8, 0, 2), (9, 0, 2), (5, 1, 2)], 1 / 3),
    ],
)
def test_natural_measure_of_pairs_by_hand(write, measure, cells, expected):
    assert figure(write(natural_rows(*cells), measure=measure)).value == pytest.approx(
        100 * expected
    )


def test_nearest_counts_neighbors_of_the_same_value(write):
    class Values(Lengths):
        def score(self, sentences1, sentences2, conditions, /):
            pairs = zip(sentences1, sentences2, strict=True)
            return np.array([a[0] == b[0] for a, b in pairs], np.float32)

    texts = [f"{value}{number},{value}" for value in "ab" for number in range(12)]
    sets = write("text,value\n" + "\n".join(texts), measure="nearest", condition="the letter")
    assert figure(sets, Values()).value == pytest.approx(100)


def test_first_hit_looks_on_the_other_side_only(write):
    content = "text,value,side\nq1,v1,1\nq2,v2,1\nlonger,v1,2\nx,v2,2\n"
    sets = write(content, measure="first_hit", condition="the product")
    assert len(sets[0].task) == 4
    assert figure(sets).value == pytest.approx(50)


def test_without_condition_scores_plainly(write):
    content = PAIRS + "a,xx,long condition,1,1\na,x,c,0,2\n"
    report = evaluate_suite(
        [Unloaded(), WithoutCondition(Unloaded())], write(content, measure="auroc"), resamples=0
    )
    points = [row.figures["graded: a test"]["points"].value for row in report.rows]
    assert points == [0, 100]
    assert "lengths, no condition" in suite_markdown(report)


@pytest.mark.parametrize(
    ("content", "spec", "message"),
    [
        (natural_rows((1, 1, 1), (2, 1, 2)), {"measure": "spearman"}, "do not differ"),
        (natural_rows((1, 1, 1), (2, 3, 2)), {"measure": "auroc"}, "labels 0 and 1"),
        ("text,value\na,1\nb,2\n", {"measure": "nearest", "condition": "c"}, "enough other"),
        ("text,value\na,1\nb,1\n", {"measure": "nearest"}, "its 'condition'"),
        ("", {"measure": "precision"}, "measure"),
    ],
)
def test_load_natural_sets_bad_input_is_one_line(write, content, spec, message):
    with pytest.raises(InputError, match=message):
        write(content, **spec)
