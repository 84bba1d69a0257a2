"""The client of Label Studio against prepared answers; the real server is in `tests/services`."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from condsim.annotation.exchange import PushOptions, pull_annotations, push_items
from condsim.annotation.label_studio import ITEM, TOKEN, LabelStudioServer, open_server
from condsim.annotation.records import Condition
from condsim.annotation.stages import TaskAnswer, verification_items
from condsim.annotation.store import Proposal
from condsim.errors import BackendError, InputError

pytest.importorskip("label_studio_sdk")

URL = "http://localhost:8080"
SECRET = "a-secret-that-must-not-be-shown"


def server_of(answer):
    """A client that sends its requests to ``answer(request)``."""
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
    assert (second.annotator, second.seconds, second.cancelled) == ("", None, True)


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
    with pytest.raises(InputError, match="must be an http:// or https:// URL") as caught:
        open_server(url)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(("token", "rule"), [("", "personal access token"), ("a b", "ASCII")])
def test_open_server_bad_token_is_refused(token, rule, monkeypatch):
    monkeypatch.setenv(TOKEN, token)
    with pytest.raises(InputError, match=rule):
        open_server(URL)


@pytest.mark.slow
def test_pull_20_000_annotations_in_under_60_s(store):
    rows = [
        Condition(f"p{n}", "A man.", f"A dog {n}.", "The sport", "high", "x") for n in range(5000)
    ]
    tasks: list[dict[str, object]] = []

    def answer(request):
        path = request.url.path
        if path.endswith("/export"):
            return httpx.Response(200, json=tasks)
        if path == "/api/users/":
            accounts = [{"id": n + 1, "email": f"{n}@x.org", "username": ""} for n in range(4)]
            return httpx.Response(200, json=accounts)
        if path.endswith("/import"):
            for task in json.loads(request.content):
                tasks.append(exported(len(tasks) + 1, task["data"][ITEM], annotations=4))
            return httpx.Response(201, json={})
        return httpx.Response(200, json={"id": 7, "title": "t"})

    server = server_of(answer)
    items = verification_items(rows)
    push_items(store, server, "verification", items, PushOptions(annotators=4, anyone=True))
    start = time.process_time()
    assert pull_annotations(store, server, "verification") == (20_000, 20_000, 0, 0, 0)
    assert pull_annotations(store, server, "verification") == (20_000, 0, 0, 0, 0)
    assert time.process_time() - start < 60
