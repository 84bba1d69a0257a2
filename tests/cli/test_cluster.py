from __future__ import annotations

import csv
import json
import sys

import pytest
import typer
from pyarrow import Table, parquet
from typer.testing import CliRunner

from condsim.cli.cluster import cluster
from condsim.cli.process import guard
from condsim.errors import InputError, MissingExtraError

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(cluster)
guard(APP)

ANIMALS = ("dog", "cat", "bird")
ROWS = [
    {"id": number, "text": f"A {colour} {animal} number {number}.", "stars": None if number else 4}
    for number, (animal, colour) in enumerate(
        (animal, colour) for animal in ANIMALS for colour in ("red", "green", "blue", "black")
    )
]


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def fault(*arguments):
    return invoke(*arguments, "--condition", "the animal").exception


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.csv"
    lines = [f'{row["id"]},"{row["text"]}",{row["stars"] or ""}' for row in ROWS]
    path.write_text("\n".join(["id,text,stars", *lines]) + "\n", encoding="utf-8")
    return path


def test_cluster_csv_keeps_columns_and_adds_two(file, tmp_path):
    output = tmp_path / "out.csv"
    result = invoke(file, "--condition", "the animal", "--k", 3, "--output", output)
    assert result.exit_code == 0, result.exception
    assert "out.csv: 12 rows" in result.stderr
    assert "Clusters by the animal" in result.stdout
    assert "Silhouette" in result.stdout
    with output.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["id", "text", "stars", "cluster", "cluster_name"]
    assert [row["text"] for row in rows] == [row["text"] for row in ROWS]
    assert {row["cluster"] for row in rows} == {"0", "1", "2"}
    assert len({(row["cluster"], row["cluster_name"]) for row in rows}) == 3


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_cluster_two_conditions_give_columns_and_a_cross_table(tmp_path, suffix):
    file, output, summary = (tmp_path / name for name in (f"in{suffix}", "o.jsonl", "s.json"))
    if suffix == ".parquet":
        parquet.write_table(Table.from_pylist(ROWS), file)
    else:
        file.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    options = ["--condition", "the animal", "--condition", "the color"]
    result = invoke(file, *options, "--k", 3, "--output", output, "--json", summary)
    assert result.exit_code == 0, result.exception
    assert "Rows: the animal. Columns: the color." in result.stdout
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [{name: row[name] for name in ROWS[0]} for row in rows] == ROWS
    content = json.loads(summary.read_text("utf-8"))
    assert [one["condition"] for one in content["conditions"]] == ["the animal", "the color"]
    counts = content["cross_table"]
    for row in rows:
        counts[row["cluster: the animal"]][row["cluster: the color"]] -= 1
    assert not any(map(any, counts))
    assert content["conditions"][0]["clusters"][0]["text"] in {row["text"] for row in ROWS}


def test_cluster_ragged_json_lines_become_a_table(tmp_path):
    file, output = tmp_path / "in.jsonl", tmp_path / "out.tsv"
    rows = [*ROWS[:4], {"text": "A bird.", "note": "n", "cluster": "of before"}]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    result = invoke(file, "--condition", "the animal", "--k", 2, "--output", output)
    assert result.exit_code == 0, result.exception
    lines = [line.split("\t") for line in output.read_text("utf-8").splitlines()]
    assert lines[0] == ["id", "text", "stars", "note", "cluster.1", "cluster", "cluster_name"]
    assert lines[-1][1] == "A bird."
    assert lines[-1][4] == "of before"
    assert lines[-1][5] in ("0", "1")


def test_cluster_too_few_alike_says_what_to_change(file, tmp_path):
    options = ["--condition", "the animal", "--min-size", 12, "--output", tmp_path / "o.csv"]
    result = invoke(file, *options)
    assert result.exit_code == 0, result.exception
    assert "Give a smaller --min-size" in result.stdout
    assert "12 of 12 texts are in no cluster" in result.stdout
    assert (tmp_path / "o.csv").read_text("utf-8").count(",-1,") == 12


def test_cluster_plot_is_drawn(file, tmp_path):
    plot = tmp_path / "p.png"
    options = ["--condition", "the animal", "--k", 3, "--output", tmp_path / "o.csv"]
    assert invoke(file, *options, "--plot", plot).exit_code == 0
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_cluster_bad_options_are_one_line(file, tmp_path):
    output = tmp_path / "out.csv"
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    listed = tmp_path / "list.jsonl"
    listed.write_text('{"text": "A dog.", "tags": [1]}\n')
    for words, message in [
        ([file, "--output", output, "--k", 3, "--min-size", 2], "not both"),
        ([file, "--output", output, "--k", 13], "from 2 to 12"),
        ([file, "--output", output, "--column", "review"], "there is no column 'review'; found"),
        ([empty, "--output", output], "is empty"),
        ([tmp_path / "none.csv", "--output", output], "no such file"),
        ([file, "--output", tmp_path / "out.xlsx"], "must be .csv, .tsv"),
        ([file, "--output", output, "--plot", tmp_path / "no" / "p.png"], "--plot: the folder"),
        ([file, "--output", output, "--condition", "the animal"], "give each condition once"),
        ([listed, "--output", output], "column 'tags': a list or an object"),
    ]:
        error = fault(*words)
        assert isinstance(error, InputError), words
        assert message in str(error)
        assert "\n" not in str(error)
    assert not output.exists()


def test_cluster_without_scikit_learn_names_the_extra(file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    monkeypatch.delitem(sys.modules, "condsim.search.cluster", raising=False)
    error = fault(file, "--output", tmp_path / "o.csv")
    assert isinstance(error, MissingExtraError)
    assert "pip install 'condsim[search]'" in str(error)


def test_cluster_row_without_text_has_none(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_text("text,id\nA red car.,1\n,2\nA red bus.,3\nA black cat.,4\n")
    result = CliRunner().invoke(
        APP,
        [str(file), "--condition", "the colour", "--k", "2", "--output", str(output)],
    )
    assert result.exit_code == 0, result.exception
    rows = output.read_text().splitlines()
    assert rows[2] == ",2,,"
    assert "1 row has no text and thus no cluster (row 2)" in result.stderr


def test_cluster_of_equal_texts_is_one_group_and_says_so(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_text("text\n" + "A red car.\n" * 3)
    result = CliRunner().invoke(
        APP,
        [str(file), "--condition", "the colour", "--k", "2", "--output", str(output)],
    )
    assert result.exit_code == 0, result.exception
    assert "Clusters: 1 instead of 2" in result.stdout


def test_cluster_into_puts_new_texts_into_the_clusters_of_a_file(file, tmp_path):
    stored = tmp_path / "animals.clusters"
    words = ("--condition", "the animal", "--k", 3, "--output", tmp_path / "out.csv")
    assert invoke(file, *words, "--save", stored).exit_code == 0
    result = invoke(file, "--into", stored, "--output", tmp_path / "again.csv")
    assert result.exit_code == 0, result.exception
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "out.csv").read_text()
    new = tmp_path / "new.csv"
    new.write_text('text\nA white dog number 20.\n" "\nA white bird number 21.\n')
    invoke(new, "--into", stored, "--output", tmp_path / "new-out.csv")
    with (tmp_path / "new-out.csv").open(newline="") as stream:
        names = [row["cluster_name"] for row in csv.DictReader(stream)]
    assert ["dog" in names[0], names[1], "bird" in names[2]] == [True, "", True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--into", "a.clusters", "--condition", "the animal"), "either --condition, or --into"),
        ((), "either --condition, or --into"),
        (("--into", "a.clusters", "--k", 3), "no options of others"),
        (("--into", "a.clusters", "--overall", 0), "no options of others"),
        (("--into", "a.clusters"), "a.clusters: is not a file of clusters"),
        (("--condition", "the animal", "--k", "many"), "--k must be a number, or auto"),
    ],
)
def test_cluster_into_with_other_options_refused(file, tmp_path, words, message):
    error = invoke(file, *words, "--output", tmp_path / "out.csv").exception
    assert isinstance(error, InputError)
    assert message in str(error)


def test_cluster_into_of_another_model_refused(file, tmp_path):
    stored = tmp_path / "animals.clusters"
    words = ("--condition", "the animal", "--k", 3, "--output", tmp_path / "out.csv")
    invoke(file, *words, "--save", stored)
    content = json.loads(stored.read_text())
    stored.write_text(json.dumps(content | {"revision": "0"}))
    error = invoke(file, "--into", stored, "--output", tmp_path / "out.csv").exception
    assert "holds vectors of the model 'default'" in str(error)


def test_cluster_k_auto_says_how_it_chose(file, tmp_path):
    words = ("--condition", "the animal", "--k", "auto", "--output", tmp_path / "out.csv")
    result = invoke(file, *words, "--json", tmp_path / "summary.json")
    assert "3 clusters have the highest silhouette of 2 to 11: " in result.stdout
    (summary,) = json.loads((tmp_path / "summary.json").read_text())["conditions"]
    assert len(summary["tried"]) == 10


def test_cluster_overall_is_stored_with_the_clusters(file, tmp_path):
    words = ("--condition", "the animal", "--k", 3, "--output", tmp_path / "out.csv")
    for options, share, width in ((), 0.3, 768), (("--overall", 0), 0.0, 384):
        stored, summary = tmp_path / "a.clusters", tmp_path / "summary.json"
        result = invoke(file, *words, *options, "--save", stored, "--json", summary)
        assert result.exit_code == 0, result.exception
        assert json.loads(summary.read_text())["conditions"][0]["overall"] == share
        (centres,) = json.loads(stored.read_text())["conditions"]
        assert (centres["overall"], len(centres["centres"][0])) == (share, width)
        assert invoke(file, "--into", stored, "--output", tmp_path / "b.csv").exit_code == 0
        assert (tmp_path / "b.csv").read_text() == (tmp_path / "out.csv").read_text()
