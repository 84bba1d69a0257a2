from __future__ import annotations

import json
import sys
from functools import partial

import pytest
from tests import commands
from tests.commands import rows_in

from condsim.errors import MissingExtraError

invoke, fault = partial(commands.succeed, "cluster"), partial(commands.fault, "cluster")

ROWS = [
    {"id": number, "text": f"A {color} {animal} number {number}.", "stars": None if number else 4}
    for number, (animal, color) in enumerate(
        (animal, color)
        for animal in ("dog", "cat", "bird")
        for color in ("red", "green", "blue", "black")
    )
]
ANIMAL = ("--condition", "the animal")
COLOR = ("--condition", "the color")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.csv"
    lines = [f'{row["id"]},"{row["text"]}",{row["stars"] or ""}' for row in ROWS]
    path.write_text("\n".join(["id,text,stars", *lines]) + "\n", encoding="utf-8")
    return path


def test_cluster_csv_keeps_columns_and_adds_two_and_a_plot(file, tmp_path):
    output, plot = tmp_path / "out.csv", tmp_path / "p.png"
    result = invoke(file, *ANIMAL, "--k", 3, "--output", output, "--plot", plot)
    assert "out.csv: 12 rows" in result.stderr
    assert "Clusters by the animal" in result.stdout
    assert "Silhouette" in result.stdout
    rows = rows_in(output)
    assert list(rows[0]) == ["id", "text", "stars", "cluster", "cluster_name"]
    assert [row["text"] for row in rows] == [row["text"] for row in ROWS]
    assert {row["cluster"] for row in rows} == {"0", "1", "2"}
    assert len({(row["cluster"], row["cluster_name"]) for row in rows}) == 3
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_cluster_too_few_alike_says_what_to_change(file, tmp_path):
    result = invoke(file, *ANIMAL, "--min-size", 12, "--output", tmp_path / "o.csv")
    assert "Give a smaller --min-size" in result.stdout
    assert "12 of 12 texts are in no cluster" in result.stdout
    assert (tmp_path / "o.csv").read_text("utf-8").count(",-1,") == 12


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["in.csv", *ANIMAL, "--k", 3, "--min-size", 2], "not both"),
        (["in.csv", *ANIMAL, "--k", 13], "from 2 to 12"),
        (["in.csv", *ANIMAL, "--k", "many"], "--k must be a number, or auto"),
        (["in.csv", *ANIMAL, "--column", "review"], "column 'review' is missing; found"),
        (["in.csv", *ANIMAL, "--output", "out.xlsx"], "must be .csv, .tsv"),
        (["in.csv", *ANIMAL, "--plot", "no/p.png"], "--plot: the folder"),
        (["in.csv", *ANIMAL, "--k", 2, "--plot", "p.txt"], "the suffix must be .png"),
        (["in.csv", *ANIMAL, *ANIMAL], "give each condition once"),
        (["list.jsonl", *ANIMAL], "column 'tags': a list or an object"),
        (["in.csv"], "Give either --condition, the respect in which to compare, or --plain"),
        (["in.csv", *ANIMAL, "--plain"], "Give either --condition, the respect"),
        (["in.csv", *ANIMAL, "--into", "a.clusters"], "either --condition, or --into"),
        (["in.csv", "--into", "a.clusters", "--k", 3], "leave out options"),
        (["in.csv", "--into", "a.clusters", "--overall", 0], "leave out options"),
        (["in.csv", "--into", "in.csv"], "in.csv is not valid JSON"),
    ],
)
def test_cluster_bad_options_refused(file, monkeypatch, words, message):
    monkeypatch.chdir(file.parent)
    (file.parent / "list.jsonl").write_text('{"text": "A dog.", "tags": [1]}\n')
    output = () if "--output" in words else ("--output", "out.csv")
    assert message in fault(*words, *output)
    assert not (file.parent / "out.csv").exists()


def test_cluster_without_scikit_learn_names_the_extra(file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    monkeypatch.delitem(sys.modules, "condsim.search.clustering", raising=False)
    message = fault(file, *ANIMAL, "--output", tmp_path / "o.csv", kind=MissingExtraError)
    assert "pip install 'condsim[search]'" in message


def test_cluster_row_without_text_has_none(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_text("text,id\nA red car.,1\n,2\nA red bus.,3\nA black cat.,4\n")
    result = invoke(file, *COLOR, "--k", 2, "--output", output)
    assert output.read_text().splitlines()[2] == ",2,,"
    assert "1 row has no text and thus no cluster (row 2)" in result.stderr


def test_cluster_of_equal_texts_is_one_group_and_says_so(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text\n" + "A red car.\n" * 3)
    for k, message in ((2, "1 instead of 2"), (3, "1 instead of 3"), ("auto", "Too few texts")):
        result = invoke(file, *COLOR, "--k", k, "--output", tmp_path / "out.csv")
        assert message in result.stdout


@pytest.fixture
def stored(file, tmp_path):
    """Clusters by the animal, and the file of rows that was written with them."""
    path = tmp_path / "animals.clusters"
    invoke(file, *ANIMAL, "--k", 3, "--output", tmp_path / "out.csv", "--save", path)
    return path


def test_cluster_into_puts_new_texts_into_the_clusters_of_a_file(file, tmp_path, stored):
    invoke(file, "--into", stored, "--output", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "out.csv").read_text()
    new = tmp_path / "new.csv"
    new.write_text('text\nA white dog number 20.\n" "\nA white bird number 21.\n')
    invoke(new, "--into", stored, "--output", tmp_path / "new-out.csv")
    names = [row["cluster_name"] for row in rows_in(tmp_path / "new-out.csv")]
    assert ["dog" in names[0], names[1], "bird" in names[2]] == [True, "", True]


def test_cluster_plain_groups_texts_as_a_whole(file, tmp_path):
    result = invoke(file, "--plain", "--k", 3, "--output", tmp_path / "out.csv")
    assert "Clusters of the texts as a whole" in result.stdout
    assert "hardly changes" not in result.stderr


def test_cluster_condition_that_changes_nothing_says_so(tmp_path):
    file = tmp_path / "in.csv"
    texts = ["A red car drives.", "I want a refund.", "The dog sleeps."]
    file.write_text("text\n" + "".join(f"{text}\n{text[:-1]} now.\n" for text in texts))
    result = invoke(file, *ANIMAL, "--overall", 1, "--k", 3, "--output", tmp_path / "out.csv")
    assert "'the animal' hardly changes the clusters: --plain" in result.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "is not valid JSON"),
        (lambda text: text[:-40], "is not valid JSON"),
        (lambda text: "[" * 100_000, "is not valid JSON"),
        (lambda text: "[1]", "must be a JSON object"),
        (lambda text: text.replace('"centers":[[', '"centers":[[912.5,', 1), "same length"),
        (lambda text: text.replace('"centers":[[', '"centers":[[1e999,', 1), "finite number"),
        (lambda text: text.replace('"overall":0.3', '"overall":3'), "at most 1"),
        (lambda text: _edited(text, names=["a"]), "a name, a center and a radius"),
        (lambda text: _edited(text, centers=[]), "at least 1 item"),
        (lambda text: _edited(text, centers=[[9.0] * 768] * 3), "A center has the length"),
        (lambda text: _edited(text, centers=[[0.1] * 5] * 3), "have 5 numbers; vectors of"),
        (lambda text: json.dumps(json.loads(text) | {"conditions": []}), "at least 1 item"),
    ],
)
def test_cluster_into_a_file_that_was_changed_refused(file, tmp_path, stored, change, message):
    stored.write_text(change(stored.read_text()))
    text = fault(file, "--into", stored, "--output", tmp_path / "again.csv")
    assert message in text
    assert "\n" not in text


def _edited(text, **values):
    content = json.loads(text)
    content["conditions"][0] |= values
    return json.dumps(content)


def test_cluster_of_equal_texts_by_density_is_one(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text\n" + "A red car.\n" * 30)
    invoke(file, *COLOR, "--min-size", 2, "--output", tmp_path / "out.csv")
    assert {row["cluster"] for row in rows_in(tmp_path / "out.csv")} == {"0"}


def test_cluster_into_of_another_model_refused(file, tmp_path, stored):
    stored.write_text(json.dumps(json.loads(stored.read_text()) | {"revision": "0"}))
    message = fault(file, "--into", stored, "--output", tmp_path / "out.csv")
    assert "holds vectors of the model 'default'" in message


def test_cluster_k_auto_says_how_it_chose(file, tmp_path):
    words = (*ANIMAL, "--k", "auto", "--output", tmp_path / "out.csv")
    result = invoke(file, *words, "--json", tmp_path / "summary.json")
    assert "3 clusters have the highest silhouette of 2 to 11: " in result.stdout
    (summary,) = json.loads((tmp_path / "summary.json").read_text())["conditions"]
    assert len(summary["tried"]) == 10


def test_cluster_overall_is_stored_with_the_clusters(file, tmp_path):
    stored, summary, output, again = (
        tmp_path / name for name in ("a.clusters", "summary.json", "out.csv", "again.csv")
    )
    files = ("--save", stored, "--json", summary, "--output", output)
    for options, share, width in ((), 0.3, 768), (("--overall", 0), 0.0, 384):
        invoke(file, *ANIMAL, "--k", 3, *options, *files)
        assert json.loads(summary.read_text())["conditions"][0]["overall"] == share
        (centers,) = json.loads(stored.read_text())["conditions"]
        assert (centers["overall"], len(centers["centers"][0])) == (share, width)
        invoke(file, "--into", stored, "--output", again)
        assert again.read_text() == output.read_text()
