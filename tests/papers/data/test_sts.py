from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from papers.data.sts import STS_COUNTS, STS_YEARS, load_cxc_sts, load_sts, load_sts_year

from condsim.data.load import load_task
from condsim.data.tasks import join_tasks
from condsim.errors import InputError
from condsim.types import Task

TSV = "score\tsentence1\tsentence2\n"
PAIRS = "A dog runs.\tA cat runs.\nA man eats.\tA man cooks.\tsource 1\tsource 2\n"


@pytest.fixture
def semeval(write):
    def write_both(texts, gold, subset="images"):
        write(f"STS.gs.{subset}.txt", gold)
        return write(f"STS.input.{subset}.txt", texts)

    return write_both


def test_load_sts_semeval_pair_of_files_read(semeval):
    assert load_sts(semeval(PAIRS, "1\n2\n", "surprise.OnWN")).name == "OnWN"
    task = load_sts(semeval(PAIRS, "4.2\n0\n"))
    assert (task.name, task.conditions, task.label_range) == ("images", None, (0.0, 5.0))
    assert task.sentences1 == ("A dog runs.", "A man eats.")
    assert task.sentences2 == ("A cat runs.", "A man cooks.")
    np.testing.assert_allclose(task.labels, [4.2, 0])


def test_load_sts_semeval_lines_without_gold_left_out(semeval):
    path = semeval("A\tB\r\nC\tD\r\nE\tF\r\n\r\n", "\n5\n\n\n\n")
    task = load_task(path, name="mine")
    assert (task.name, task.sentences1, task.labels.tolist()) == ("mine", ("C",), [5])


@pytest.mark.parametrize(
    ("texts", "gold", "message"),
    [
        (PAIRS, "1\n", r"STS\.gs\.images\.txt: must have one line for each of the 2 lines of STS"),
        (PAIRS, "1\n5.5\n", r"gs\.images\.txt, line 2: must be a number from 0 to 5, got '5\.5'"),
        (PAIRS, "\n\n", r"none of its 2 lines has a score"),
        ("A\tB\nC\t \n", "1\n2\n", r"input\.images\.txt, line 2: the second sentence must not be"),
        ("A\tB\nC D\n", "1\n2\n", r"line 2: must have 2 sentences with a tab .* got 1 fields"),
        ("", "1\n", r"STS\.input\.images\.txt: is empty"),
    ],
)
def test_load_sts_semeval_bad_files_are_one_line(semeval, write, texts, gold, message):
    with pytest.raises(InputError, match=message):
        load_sts(semeval(texts, gold))
    with pytest.raises(InputError, match=r"there is no file STS\.gs\.x\.txt next to it"):
        load_task(write("STS.input.x.txt", PAIRS))


def test_load_task_sts_tsv_told_by_score_above_one_or_by_name(write):
    rows = TSV + "0.5\tA\tB\n3.800\tSay \"no\t'B'\n"
    for name, content in (("x.tsv", rows), ("x.tsv.gz", gzip.compress(rows.encode()))):
        task = load_task(write(name, content))
        assert (task.name, task.label_range) == ("x", (0.0, 5.0))
        assert task.sentences1 == ("A", 'Say "no')
    low = TSV + "0.5\tA\tB\n"
    assert load_task(write("sts12.MSRpar.test.tsv", low)).label_range == (0.0, 5.0)


@pytest.fixture
def year_folder(tmp_path):
    def make(year, name="set", *, form="semeval", leave_out=()):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for subset in set(STS_COUNTS[year]) - set(leave_out):
            if form == "tsv":
                (folder / f"sts{year % 100}.{subset}.test.tsv").write_text(TSV + "2\tA\tB\n")
                continue
            rows = STS_COUNTS[year][subset]
            (folder / f"STS.input.{subset}.txt").write_text("A dog.\tA cat.\n" * rows)
            (folder / f"STS.gs.{subset}.txt").write_text("3.0\n" * rows)
        return folder

    return make


@pytest.mark.parametrize("year", STS_YEARS)
def test_load_sts_year_gives_its_subsets(year_folder, year, caplog):
    folder = year_folder(year)
    (folder / "STS.gs.ALL.txt").write_text("1\n")
    (folder / "readme.txt").write_text("about\n")
    tasks = load_sts_year(folder, year=year)
    assert [task.name for task in tasks] == [f"STS{year % 100}.{name}" for name in STS_COUNTS[year]]
    assert [len(task) for task in tasks] == list(STS_COUNTS[year].values())
    assert not caplog.records


def test_load_sts_year_other_years_in_the_folder_ignored(year_folder):
    assert load_sts_year(year_folder(2013, form="tsv"), year=2013)[0].name == "STS13.FNWN"
    assert len(load_sts_year(year_folder(2014, form="tsv"), year=2014)) == 6


def test_load_sts_year_missing_subset_named_with_the_fix(year_folder):
    folder = year_folder(2012, "STS12-en-test", leave_out=("MSRvid", "SMTnews"))
    message = r"STS 2012 has the subsets .*; missing: MSRvid, SMTnews\. Add STS\.input\.MSRvid\.txt"
    with pytest.raises(InputError, match=message):
        load_sts_year(folder, year=2012)


def test_load_sts_year_no_such_year_or_folder_refused(tmp_path):
    with pytest.raises(InputError, match=r"years 2012 to 2016, got 2017"):
        load_sts_year(tmp_path, year=2017)
    with pytest.raises(InputError, match="no such folder"):
        load_sts_year(tmp_path / "none", year=2012)


def task(name, labels, *, high=5.0, conditions=None):
    texts = tuple(f"{name} {row}" for row in range(len(labels)))
    return Task(name, name, texts, texts, conditions, np.array(labels, np.float32), (0.0, high))


def test_join_tasks_rows_in_order_and_revision_of_all():
    first, second = task("a", [1, 2]), task("b", [3])
    joined = join_tasks([first, second], name="both")
    assert (joined.name, joined.sentences1) == ("both", ("a 0", "a 1", "b 0"))
    assert (joined.labels.tolist(), joined.conditions) == ([1, 2, 3], None)
    assert joined.revision != join_tasks([second, first], name="both").revision
    kept = join_tasks(
        [task("a", [1], conditions=("x",)), task("b", [2], conditions=("y",))], name=""
    )
    assert kept.conditions == ("x", "y")


def test_load_sts_year_released_years():
    folder = Path(__file__).resolve().parents[3] / "../shared/data/sts12-16"
    if not folder.is_dir():
        pytest.skip("the STS files are not here")
    years = [join_tasks(load_sts_year(folder, year=year), name="x") for year in STS_YEARS]
    assert [len(year) for year in years] == [3108, 1500, 3750, 3000, 1186]
    tokenized = load_sts_year(folder / "senteval-tokenised", year=2012)
    np.testing.assert_array_equal(join_tasks(tokenized, name="x").labels, years[0].labels)


HEADER = "score\tsentence1\tsentence2\tcaption_id1\tcaption_id2\tsampling\n"


def test_load_task_cxc_sts_told_by_its_columns(write):
    task = load_task(write("x.tsv", HEADER + "0.5\tA\tB\t1\t2\tc2c_isim\n"))
    assert (task.conditions, task.label_range, task.labels.tolist()) == (None, (0.0, 5.0), [0.5])
    with pytest.raises(InputError, match="column 'score': must be a number from 0 to 5"):
        load_cxc_sts(write("x.tsv", HEADER + "5.5\tA\tB\t1\t2\tc2c_isim\n"))
