from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from condsim.data.statistics import pair_rows
from condsim.errors import InputError
from condsim.evaluation.correlation import spearman
from condsim.evaluation.metrics import pair_accuracy
from condsim.evaluation.suite.data import load_suite
from condsim.evaluation.suite.result import SuiteReport
from condsim.evaluation.suite.running import evaluate_suite
from condsim.evaluation.suite.sets import asks_for_number, has_negation, mark_trained
from condsim.evaluation.suite.tables import heat_map, suite_markdown, suite_tables

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
    with pytest.raises(InputError, match=r"'law'\. Did you mean 'laws'"):
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


def test_evaluate_suite_criteria_kept_draws_are_told_from_those_of_csts(rows, letters, tmp_path):
    tasks = load_suite(rows, "criteria")
    plain = [replace(task, group=None) for task in tasks]
    for chosen in (plain, tasks):
        report = evaluate_suite([letters()], chosen, resamples=20, cache=tmp_path / "kept")
    alone = evaluate_suite([letters()], tasks, resamples=20)
    assert report.rows[-1].figures == alone.rows[-1].figures


def test_load_suite_written_domains_and_slices(tmp_path):
    path = tmp_path / "test.txt"
    path.write_text(WRITTEN)
    tasks = load_suite(path, "written")
    assert groups_of(tasks) == [
        ("cafes", "test"),
        ("shops", "test"),
        ("slice:negation", "slices"),
        ("slice:numbers", "slices"),
    ]
    negation, numbers = (task.task for task in tasks[2:])
    assert set(negation.sentences1) == {"It is not open.", "The till was slow."}
    assert set(numbers.conditions) == {"price", "number of cups", "waiting time"}
    (tmp_path / "dev.txt").write_text(WRITTEN)
    both = load_suite(tmp_path, "written")
    assert [task.key for task in both][:3] == ["dev/cafes", "dev/shops", "test/cafes"]


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


def test_heat_map_by_set_a_row_for_each_set(rows, letters, tmp_path):
    matplotlib = pytest.importorskip("matplotlib.image")
    report = evaluate_suite([letters()], load_suite(rows, "criteria"))
    heat_map(report, tmp_path / "map.png")
    height, width, _ = matplotlib.imread(tmp_path / "map.png").shape
    assert height / 120 == pytest.approx(1.0 + 0.34 * 4, abs=0.02)  # three sets and the mean
    assert width / 120 == pytest.approx(2.8 + 0.72 * 5, abs=0.02)


@pytest.mark.parametrize(
    ("suite", "content", "message"),
    [
        ("criteria", None, "has no data of the suite 'criteria'. Looked for dev_rows.csv"),
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


@pytest.mark.parametrize("text", ["Can't say.", "can\u2019t", "NOT one", "dont go", "hardly any"])
def test_has_negation_words_of_negation_true(text):
    assert has_negation(text)


@pytest.mark.parametrize("text", ["A knot.", "Noted, thanks", "want", "", "an ant's nest"])
def test_has_negation_other_words_false(text):
    assert not has_negation(text)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("the number of people", True),
        ("When does it open?", True),
        ("how long it took", True),
        ("price", True),
        ("what the writer thinks of the price", False),
        ("who was there when it broke", False),
        ("the showing", False),
    ],
)
def test_asks_for_number_by_words_and_beginnings(condition, expected):
    assert asks_for_number(condition) is expected
