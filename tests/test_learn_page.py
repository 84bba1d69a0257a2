"""The page and the picture of learning from labels."""

from benchmarks.learn_page import mean_of, plot, tables


def draw(criterion, **more):
    return {"condition alone": 70.0, "criterion": criterion, "F1 criterion": 50.0, **more}


RESULTS = {
    str(labels): {
        "a: the x": [draw(75.0 + gain, **{"F1 SetFit": 40.0}), draw(72.0)],
        "b: the y": [draw(68.0), draw(71.0 + gain)],
    }
    for labels, gain in ((25, 0), (50, 2))
}


def test_mean_of_sets_lies_in_its_interval():
    mean, low, high = mean_of([[1, 2, 3], [4, 5, 6], [7, 8, 9], [5]])
    assert mean == 5
    assert low < mean < high


def test_tables_count_draws_that_lose():
    page = "\n".join(tables(RESULTS, ("b",)))
    assert "-2.0 in the worst of 4 draws; 1 lose more than a point." in page
    assert "| b: the y | 70.0 | 69.5 |" in page
    assert page.count("**mean, draws of SetFit**") == 2


def test_plot_is_the_same_each_time(tmp_path):
    for name in ("a.png", "b.png"):
        plot(RESULTS, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
