"""All three stages on a real Label Studio server: `make test-services` starts one.

What people would do in a browser goes through the API that the browser uses, logged in as them.
"""

from __future__ import annotations

import csv
import os
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.commands import succeed
from tests.services import label_studio

from condsim_annotation.exchange import TOKEN, LabelStudioServer, result_of
from condsim_annotation.records import Condition, Rating
from condsim_annotation.stages import TaskAnswer
from condsim_annotation.store import AnnotationStore
from condsim_annotation.tables import read_rows

PROGRAM = os.environ.get("CONDSIM_LABEL_STUDIO", "")
pytestmark = pytest.mark.skipif(
    not PROGRAM, reason="needs a Label Studio of its own: run 'make test-services'"
)

PLACES = ("park", "street", "table", "water", "number", "child", "animal", "sport")
PAIRS = [
    (
        f"A man {verb} a {color} ball in the {place}.",
        f"The woman sits with a {color} cat by {place}.",
    )
    for place in PLACES
    for verb, color in (("throws", "red"), ("kicks", "blue"), ("holds", "green"))
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with label_studio.running_server(Path(PROGRAM).resolve(), folder) as address:
        yield address


@pytest.fixture(scope="module")
def people(url):
    """The owner, whose token condsim uses, and four annotators."""
    person = label_studio.Person
    with ExitStack() as opened:
        owner = opened.enter_context(closing(person(url, label_studio.OWNER)))
        accounts = {"owner": owner}
        for name in ("ann", "bob", "cleo", "dan"):
            invited = person(url, f"{name}@example.org", invitation=owner.invitation())
            accounts[name] = opened.enter_context(closing(invited))
        yield accounts


class Secret(str):
    """A token that a failing test does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "a token"


@pytest.fixture(scope="module")
def token(people):
    return Secret(people["owner"].token())


@pytest.fixture
def condsim(url, token, monkeypatch):
    """Runs ``condsim build ...`` and gives its output; the token is never in it."""
    monkeypatch.setenv(TOKEN, token)

    def run(*words: object) -> str:
        server = () if words[0] in ("qualify", "prefill", "mturk") else ("--server", url)
        output = succeed("build", *words, *server).output
        assert token not in output
        return output

    return run


def tasks_of(url, token, folder, stage):
    """The tasks of a stage with what was handed out, in order."""
    with LabelStudioServer(url, token) as server, AnnotationStore(folder) as store:
        project = store.project(stage)
        items = store.items(stage)
        return [(task, items[task.item]) for task in server.tasks(project.project)]


def test_annotation_three_stages_become_a_data_set_that_trains(
    url, token, people, condsim, tmp_path, tiny_backbone
):
    folder = tmp_path / "annotation"
    _qualify(url, token, people, condsim, folder)
    _write_conditions(url, token, people, condsim, folder, tmp_path)
    _rate(url, token, people, condsim, folder)
    _train(folder, tmp_path, tiny_backbone)


def _qualify(url, token, people, condsim, folder):
    """Ann, Bob and Cleo pass the test; Dan does not."""
    assert "6 tasks added" in condsim("push", "qualification", "--folder", folder)
    assert "0 tasks added" in condsim("push", "qualification", "--folder", folder)
    for task, item in tasks_of(url, token, folder, "qualification"):
        good = TaskAnswer("The purpose of the action", "The kind of place", item.facts["label"])
        for name in ("ann", "bob", "cleo"):
            people[name].submit(task.task, result_of("qualification", good))
        bad = TaskAnswer("The activity", "The activity", 3)
        people["dan"].submit(task.task, result_of("qualification", bad))
    assert "24 annotations, 24 new" in condsim("pull", "qualification", "--folder", folder)
    shown = condsim("qualify", "--folder", folder)
    assert "dan@example.org: failed" in shown
    assert "3 of 4 accepted" in shown


def _write_conditions(url, token, people, condsim, folder, tmp_path):
    pairs = tmp_path / "pairs.csv"
    with pairs.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("sentence1", "sentence2"), *PAIRS])
    condsim("push", "conditions", "--folder", folder, "--data", pairs)
    first = None
    for number, (task, _) in enumerate(tasks_of(url, token, folder, "conditions")):
        answer = TaskAnswer(
            f"The material of thing {number}", f"The purpose of the action {number}"
        )
        annotation = people["ann"].submit(task.task, result_of("conditions", answer))
        first = first or (task.task, annotation)
        if number == 1:  # not in the pool
            people["dan"].submit(task.task, result_of("conditions", answer))
    task, annotation = first
    people["ann"].edit(
        annotation, result_of("conditions", TaskAnswer("The activity", "The gender"))
    )
    shown = condsim("pull", "conditions", "--folder", folder, "--hints")
    assert f"{len(PAIRS) * 2} rows" in shown
    assert "1 do not count: the annotator was rejected" in shown
    assert "hints changed on 1 pages" in shown
    data = people["owner"].call("GET", f"/api/tasks/{task}/")["data"]
    assert "Say which aspect" in data["hints"]
    people["ann"].edit(annotation, result_of("conditions", TaskAnswer("The toy", "The gender")))
    again = condsim("pull", "conditions", "--folder", folder, "--hints")
    assert "25 annotations, 0 new, 1 edited, 0 deleted" in again
    rows = list(read_rows(folder / "conditions.parquet", Condition))
    assert [row.condition for row in rows[:2]] == ["The toy", "The gender"]
    assert {row.annotator for row in rows} == {"ann@example.org"}


def _rate(url, token, people, condsim, folder):
    condsim(
        *("push", "verification", "--folder", folder, "--annotators", 2),
        *("--data", folder / "conditions.parquet"),
    )
    assert "48 rows rated by" in condsim("prefill", "verification", "--folder", folder)
    assert "48 answers of models" in condsim("push", "verification", "--folder", folder)
    tasks = tasks_of(url, token, folder, "verification")
    given = []
    for number, (task, item) in enumerate(tasks):
        label = (4 if item.facts["intended"] == "high" else 1) + number % 2
        answer = result_of("verification", TaskAnswer(rating=label))
        prediction = people["bob"].call("GET", f"/api/tasks/{task.task}/")["predictions"][0]["id"]
        given.append(people["bob"].submit(task.task, answer, prediction=prediction))
        people["cleo"].submit(task.task, answer, seconds=2.5)
        assert set(task.answers) == set()
        if number == 0:
            people["ann"].submit(task.task, answer)  # wrote the condition
        if number == 1:
            people["dan"].submit(task.task, [], skipped=True)
    shown = condsim("pull", "verification", "--folder", folder)
    assert "98 annotations, 98 new" in shown
    assert "1 do not count: the annotator wrote the condition" in shown
    assert "1 do not count: skipped by the annotator" in shown
    assert "98 annotations, 0 new, 0 edited" in condsim("pull", "verification", "--folder", folder)
    people["bob"].edit(given[0], result_of("verification", TaskAnswer(rating=-1)))
    assert "0 new, 1 edited" in condsim("pull", "verification", "--folder", folder)
    rows = list(read_rows(folder / "ratings.parquet", Rating))
    assert sum(row.origin == "human" for row in rows) == 96
    assert sum(row.annotator == row.origin != "human" for row in rows) == 48
    assert sum(row.label == -1 for row in rows) == 1
    (model,) = {row.origin for row in rows} - {"human"}
    assert {row.prefilled_by for row in rows if row.origin == "human"} == {model}
    status = condsim("status", "--folder", folder)
    assert "verification: 48 items, 48 done of 2 answers each; 96 answers by 2 people" in status


def _train(folder, tmp_path, tiny_backbone):
    from condsim.training.recipe import Recipe
    from condsim.training.run import fit

    made = tmp_path / "dataset"
    words = ("dataset", folder / "ratings.parquet", "--output", made)
    succeed("build", *words, "--group", "pair", "--keep-lone")
    with (made / "train.csv").open(encoding="utf-8", newline="") as stream:
        assert "human" not in {row["origin"] for row in csv.DictReader(stream)}
    recipe = Recipe(
        name="built",
        train=str(made / "train.csv"),
        dev=str(made / "validation.csv"),
        backbone=str(tiny_backbone),
        max_seq_length=48,
        epochs=1,
        batch_size=8,
        precision="float32",
    )
    fit(recipe, tmp_path / "run")


def test_pull_project_deleted_between_is_one_line_and_keeps_what_was_pulled(
    url, token, people, condsim, tmp_path
):
    folder = tmp_path / "annotation"
    condsim("push", "qualification", "--folder", folder, "--title", "to be deleted")
    (task, _), *_ = tasks_of(url, token, folder, "qualification")
    people["ann"].submit(
        task.task, result_of("qualification", TaskAnswer("The toy", "The sport", 5))
    )
    condsim("pull", "qualification", "--folder", folder)
    with AnnotationStore(folder) as store:
        project = store.project("qualification").project
    people["owner"].call("DELETE", f"/api/projects/{project}/")
    with pytest.raises(ValueError, match=rf"^Project {project} is not on .*--again"):
        condsim("pull", "qualification", "--folder", folder)
    with AnnotationStore(folder) as store:
        assert len(store.annotations("qualification")) == 1
    condsim("push", "qualification", "--folder", folder, "--again")
    assert "0 annotations" in condsim("pull", "qualification", "--folder", folder)
    with AnnotationStore(folder) as store:
        assert len(store.annotations("qualification")) == 1


def test_push_refused_token_is_one_line_without_the_token(
    url, token, condsim, monkeypatch, tmp_path
):
    wrong = Secret(token[:-4] + "AAAA")
    monkeypatch.setenv(TOKEN, wrong)
    with pytest.raises(ValueError, match="refuses the token") as caught:
        condsim("push", "qualification", "--folder", tmp_path / "annotation")
    assert wrong not in str(caught.value)
    assert "\n" not in str(caught.value)
