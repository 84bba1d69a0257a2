"""Push, pull, hints and waiting answers against a server in memory, the store, and the client.

The client is tested against prepared answers; the real server is in `tests/services`.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import httpx
import pytest

from condsim.errors import InputError
from condsim_annotation.exchange import (
    ITEM,
    TOKEN,
    LabelStudioServer,
    PushOptions,
    count_waiting,
    open_server,
    pull_annotations,
    push_items,
    show_hints,
)
from condsim_annotation.outcome import stage_outcome
from condsim_annotation.stages import NO_HINTS, TaskAnswer, items_to_annotate, verification_items
from condsim_annotation.store import PoolMember, Proposal
from condsim_llm.errors import BackendError

STAGE = "verification"


@pytest.fixture
def push(store, server):
    def run(stage=STAGE, items=(), **options):
        return push_items(store, server, stage, items, PushOptions(**options))

    return run


@pytest.fixture
def pull(store, server):
    return lambda stage=STAGE: pull_annotations(store, server, stage)


@pytest.fixture
def rate(server, verification):
    """Rate one of the four rows: `rate(index, account, label)`."""

    def submit(index, account, label, **details):
        return server.submit(verification[index], account, TaskAnswer(rating=label), **details)

    return submit


def reasons(store):
    return stage_outcome(store, STAGE).set_aside


def counted(store):
    rows = [row for rows in stage_outcome(store, STAGE).counted.values() for row in rows]
    return [(row.annotator, row.answer.rating) for row in rows]


def dump(store):
    with closing(sqlite3.connect(store.path)) as connection:
        return list(connection.iterdump())


def test_push_twice_adds_each_task_once(server, written, verification, push):
    report = push(items=verification_items(written))
    assert (report.is_new, report.items, report.added, report.repeated) == (False, 4, 0, 4)
    assert len(server.tasks(report.project)) == 4
    del server.projects[report.project][verification[0]]
    assert push().added == 1


def test_push_interrupted_continues(server, push):
    server.fails_after = 2
    with pytest.raises(ConnectionError):
        push("qualification", items_to_annotate("qualification"))
    server.fails_after = None
    report = push("qualification", items_to_annotate("qualification"))
    assert (report.is_new, report.items, report.added) == (False, 6, 4)
    assert len({task.item for task in server.tasks(report.project)}) == 6


def test_push_empty_pool_is_refused_before_a_project_is_made(server, written, push):
    with pytest.raises(InputError, match="pool is empty"):
        push(items=verification_items(written))
    assert not server.projects
    assert push(items=verification_items(written), anyone=True).added == 4


def test_push_or_pull_that_does_not_fit_is_refused(server, verification, push, pull):
    with pytest.raises(InputError, match="nothing to annotate"):
        push("conditions", anyone=True)
    with pytest.raises(InputError, match="'condsim build push conditions' first"):
        pull("conditions")
    with pytest.raises(InputError, match="for 2 annotators an item, not 3"):
        push(annotators=3)
    server.url = "http://other"
    with pytest.raises(InputError, match="was pushed to http://localhost:8080, not to"):
        push()


def test_push_again_makes_a_project_of_unfinished_items(store, server, rate, push, pull):
    rate(0, 2, 4)
    rate(0, 3, 4)
    pull()
    del server.projects[store.project(STAGE).project]
    report = push(again=True)
    assert (report.is_new, report.added) == (True, 3)
    assert pull().removed == 0


def test_push_proposals_are_sent_once_to_each_project(
    store, server, verification, monkeypatch, push
):
    items = list(store.items(STAGE))
    store.write(STAGE, [Proposal(item, "m", TaskAnswer(rating=2)) for item in items])
    monkeypatch.setattr("condsim_annotation.exchange._PREDICTIONS_PER_REQUEST", 1)
    server.fails_after = 1
    with pytest.raises(ConnectionError):
        push()
    server.fails_after = None
    assert push().predictions == len(items) - 1
    assert push().predictions == 0
    assert sorted(task for task, _ in server.predictions) == sorted(verification)
    assert push(again=True).predictions == len(items)


def test_pull_twice_changes_nothing(store, rate, pull):
    rate(0, 2, 4)
    rate(1, 3, 1)
    assert pull() == (2, 2, 0, 0, 0)
    before = dump(store)
    assert pull() == (2, 0, 0, 0, 0)
    assert dump(store) == before


def test_pull_edited_and_deleted_annotations_follow(store, server, rate, pull):
    key = rate(0, 2, 4)
    pull()
    server.edit(key, TaskAnswer(rating=2))
    assert pull().changed == 1
    assert counted(store) == [("bob", 2)]
    server.delete(key)
    assert pull().removed == 1
    assert counted(store) == []
    assert any(key in line for line in dump(store))
    assert pull().removed == 0


def test_pull_deleted_task_or_project_loses_nothing(store, server, verification, rate, pull):
    rate(0, 2, 4)
    pull()
    del server.projects[store.project(STAGE).project][verification[0]]
    assert pull().removed == 0
    server.projects.clear()
    with pytest.raises(InputError, match="is not on"):
        pull()
    assert counted(store) == [("bob", 4)]


def test_pull_two_accounts_of_one_name_are_refused(store, server, rate, pull):
    server.names = {1: "ann", 2: "bob", 3: "bob"}
    rate(0, 2, 4)
    pull()
    before = dump(store)
    rate(0, 3, 5)
    with pytest.raises(InputError, match=r"Accounts 2 and 3 on .* both have the name 'bob'"):
        pull()
    assert dump(store) == before


def test_pull_account_deleted_later_keeps_its_name(store, server, rate, pull):
    rate(0, 2, 4)
    pull()
    server.forget(2)
    assert pull().changed == 0
    rate(1, None, 4)
    pull()
    assert counted(store) == [("bob", 4)]
    assert reasons(store) == {"the account is gone": 1}


def test_pull_foreign_tasks_are_ignored(store, server, verification, pull):
    project = store.project(STAGE).project
    server.add_tasks(project, [{"text": "made by hand"}])
    server.submit(max(server.projects[project]), 2, TaskAnswer(rating=4))
    report = pull()
    assert (report.annotations, report.foreign) == (0, 1)


def test_outcome_one_annotator_twice_counts_the_latest(store, rate, pull):
    rate(0, 2, 1, minute=1)
    rate(0, 2, 5, minute=2)
    pull()
    assert counted(store) == [("bob", 5)]
    assert reasons(store) == {"answered again by the same annotator": 1}


def test_outcome_annotations_that_do_not_count_have_a_reason(store, server, rate, pull):
    server.names[4] = "dan"
    store.write("qualification", [PoolMember("cleo", False, "hand")])
    for account in (1, 3, 4):
        rate(0, account, 4)
    rate(0, 2, None, canceled=True)
    rate(1, 2, None)
    pull()
    assert counted(store) == []
    assert reasons(store) == {
        "skipped by the annotator": 1,
        "no rating": 1,
        "the annotator is not in the pool": 1,
        "the annotator was rejected": 1,
        "the annotator wrote the condition": 1,
    }


def test_outcome_more_than_the_target_counts_the_earliest(store, server, rate, pull):
    store.write("qualification", [PoolMember("eve", True, "hand")])
    server.names[5] = "eve"
    for minute, account in enumerate((5, 3, 2)):
        rate(0, account, account, minute=minute)
    pull()
    assert counted(store) == [("eve", 5), ("cleo", 3)]
    assert reasons(store) == {"beyond the 2 wanted": 1}


def test_show_hints_doubtful_condition_has_them_until_edited(store, server, tmp_path, push, pull):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2\nA fox.,A hen.\nA cow.,A pig.\n", encoding="utf-8")
    push("conditions", items_to_annotate("conditions", pairs), anyone=True)
    task = store.items("conditions").popitem()[1].task
    key = server.submit(task, 2, TaskAnswer("The activity", "The kind of animal"))
    pull("conditions")
    assert show_hints(store, server, "conditions") == 1
    assert server.shown[task]["hints"].startswith("“The activity”: Say which")
    assert show_hints(store, server, "conditions") == 0
    server.edit(key, TaskAnswer("The use of the animal", "The kind of animal"))
    pull("conditions")
    assert show_hints(store, server, "conditions") == 1
    assert server.shown[task]["hints"] == NO_HINTS


def test_count_waiting_annotations_not_pulled(store, server, rate, pull):
    rate(0, 2, 4)
    rate(0, 3, 4)
    pull()
    rate(1, 2, 4)
    assert stage_outcome(store, STAGE).done == 1
    assert count_waiting(store, server, STAGE) == 1
    assert count_waiting(store, server, "conditions") is None


def test_store_write_error_takes_all_of_it_back(store, verification):
    before = dump(store)

    def fail_after_one():
        yield PoolMember("zoe", True, "hand")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.write("qualification", fail_after_one())
    assert dump(store) == before


URL = "http://localhost:8080"
SECRET = "a-secret-that-must-not-be-shown"


def server_of(answer):
    """A client that sends its requests to ``answer(request)``."""
    pytest.importorskip("label_studio_sdk")
    client = httpx.Client(transport=httpx.MockTransport(answer))
    return LabelStudioServer(URL, SECRET, client=client)


def exported(task, item, *, annotations=0):
    """A task as Label Studio exports it."""
    region = {
        "from_name": "rating",
        "to_name": "condition",
        "type": "choices",
        "value": {"choices": ["4"]},
    }
    rows = [
        {
            "id": task * 10 + number,
            "unique_id": f"{task}-{number}",
            "completed_by": number + 1,
            "result": [region],
            "was_cancelled": False,
            "lead_time": 4.5,
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "prediction": {},
            "parent_prediction": None,
        }
        for number in range(annotations)
    ]
    return {"id": task, "data": {ITEM: item}, "predictions": [], "annotations": rows}


def lose_connection(request):
    raise httpx.ConnectError("refused", request=request)


def refusal(status):
    return lambda request: httpx.Response(status, json={"detail": SECRET})


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (refusal(401), InputError, f"refuses the token in {TOKEN}"),
        (refusal(403), InputError, f"refuses the token in {TOKEN}"),
        (refusal(404), InputError, r"^Project 7 is not on .*--again"),
        (refusal(400), BackendError, r"\(status 400\): .*\*\*\*"),
        (lambda _: httpx.Response(200, text="<html>hello</html>"), BackendError, URL),
        (lose_connection, BackendError, f"^No Label Studio answers at {URL} .ConnectError"),
    ],
)
def test_label_studio_fault_is_one_line_without_the_token(answer, error, message):
    for request in (LabelStudioServer.tasks, LabelStudioServer.count_annotations):
        with pytest.raises(error, match=message) as caught:
            request(server_of(answer), 7)
        assert SECRET not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_label_studio_export_reads_annotations_and_their_models():
    task = exported(1, "i", annotations=2)
    task["annotations"][0] |= {"parent_prediction": 5, "prediction": {"model_version": "m"}}
    task["annotations"][1] |= {"completed_by": None, "lead_time": None, "was_cancelled": True}
    (remote,) = server_of(lambda _: httpx.Response(200, json=[task])).tasks(7)
    first, second = remote.answers
    assert (remote.task, remote.item) == (1, "i")
    assert (first.annotation, first.annotator, first.answer) == ("1-0", "1", TaskAnswer(rating=4))
    assert (first.seconds, first.prefilled_by) == (4.5, "m")
    assert (second.annotator, second.seconds, second.canceled) == ("", None, True)


def test_label_studio_predictions_name_their_model():
    sent = []

    def answer(request):
        sent.append((request.method, request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={})

    predictions = [(1, Proposal("i", "m", TaskAnswer("x", "y", 2)))]
    server_of(answer).add_predictions(7, "verification", predictions)
    (_, path, (prediction,)), (method, _, settings) = sent
    assert path == "/api/projects/7/import/predictions"
    assert (prediction["task"], prediction["model_version"]) == (1, "m")
    assert [region["value"] for region in prediction["result"]] == [{"choices": ["2"]}]
    assert (method, settings["model_version"]) == ("PATCH", "m")


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://user:pass@host", ""])
def test_open_server_bad_address_is_refused_and_not_repeated(url, monkeypatch):
    monkeypatch.setenv(TOKEN, SECRET)
    with pytest.raises(InputError) as caught:
        open_server(url)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(("token", "rule"), [("", "personal access token"), ("a b", "ASCII")])
def test_open_server_bad_token_is_refused(token, rule, monkeypatch):
    monkeypatch.setenv(TOKEN, token)
    with pytest.raises(InputError, match=rule):
        open_server(URL)
