from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from papers.data.sts import STS_COUNTS, STS_YEARS, load_sts_year

from condsim.data.tasks import join_tasks
from condsim.errors import InputError
from condsim.types import Task

TSV = "score\tsentence1\tsentence2\n2\tA\tB\n"


@pytest.fixture
def year_folder(tmp_path):
    def make(year, name="set", *, form="semeval", leave_out=()):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for subset in set(STS_COUNTS[year]) - set(leave_out):
            if form == "tsv":
                (folder / f"sts{year % 100}.{subset}.test.tsv").write_text(TSV)
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


def test_load_sts_year_count_other_than_published_warned(year_folder, caplog):
    folder = year_folder(2013)
    for name in ("input", "gs"):
        path = folder / f"STS.{name}.FNWN.txt"
        path.write_text(path.read_text().partition("\n")[2])
    load_sts_year(folder, year=2013)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "STS.input.FNWN.txt: has 188 rows, and 189 are published" in caplog.text


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


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "no tasks to join"),
        ([task("a", [1]), task("b", [1], high=1.0)], "must have one label range"),
        ([task("a", [1]), task("b", [1], conditions=("x",))], "a and b "),
    ],
)
def test_join_tasks_that_do_not_fit_refused(tasks, message):
    with pytest.raises(InputError, match=message):
        join_tasks(tasks, name="x")


def test_load_sts_year_released_years():
    folder = Path(__file__).resolve().parents[3] / "../shared/data/sts12-16"
    if not folder.is_dir():
        pytest.skip("the STS files are not here")
    years = [join_tasks(load_sts_year(folder, year=year), name="x") for year in STS_YEARS]
    assert [len(year) for year in years] == [3108, 1500, 3750, 3000, 1186]
    tokenised = load_sts_year(folder / "senteval-tokenised", year=2012)
    np.testing.assert_array_equal(join_tasks(tokenised, name="x").labels, years[0].labels)
