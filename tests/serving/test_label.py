"""The page to label texts, in a real Chromium, and its requests."""

import csv
import shutil
from pathlib import Path

import pytest

import condsim
from condsim.labeling import open_session, read_answers

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from condsim.serving.app import create_app

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk.csv"


@pytest.fixture(scope="module")
def truth():
    with HELPDESK.open(encoding="utf-8") as file:
        return {row["text"]: row["problem"] for row in csv.DictReader(file)}


def test_label_requests_store_each_answer(truth, tmp_path):
    model, output = condsim.load(), tmp_path / "problem.csv"
    with open_session(truth, "the problem", model=model, output=output) as session:
        with TestClient(create_app(model, session=session)) as client:
            assert client.get("/label").status_code == 200
            state = client.get("/v1/label").json()
            for _ in range(10):
                body = {"text": state["text"], "value": truth[state["text"]]}
                state = client.post("/v1/label", json=body).json()
            assert state["labeled"] == 10
            assert 0 < state["auc"] <= 100
            text = state["text"]
            state = client.post("/v1/label", json={"text": text, "value": "skip"}).json()
            assert state["text"] != text
            state = client.post("/v1/label/undo", json={}).json()
            assert state["text"] == text
            bad = client.post("/v1/label", json={"text": "other", "value": "x"})
            assert bad.status_code == 400
    assert len(read_answers(output)) == 10
    assert output.with_suffix(".criterion").exists()


def test_label_page_is_absent_without_a_session(truth):
    with TestClient(create_app(condsim.load())) as client:
        assert client.get("/label").status_code == 404
        assert client.get("/v1/label").status_code == 404


def test_label_page_by_keyboard(start, truth, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium; apt-get install chromium")
    output = tmp_path / "problem.csv"
    words = ("--label", str(HELPDESK), "--condition", "the problem", "--output", str(output))
    with start(*words) as server, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
        page.set_default_timeout(60_000)
        page.goto(server.url + "/label")
        text = page.locator("#text")
        page.wait_for_function("() => document.querySelector('#text').textContent.length > 5")
        order = []
        for number in range(12):
            before = text.inner_text()
            value = truth[before]
            if value in order:
                page.keyboard.press(str(order.index(value) + 1))
            else:
                order.append(value)
                page.keyboard.press("n")
                page.keyboard.type(value)
                page.keyboard.press("Enter")
            page.wait_for_function(
                "before => document.querySelector('#text').textContent != before", arg=before
            )
            assert len(read_answers(output)) == number + 1
        assert page.locator("#meter").is_visible()
        assert "Pairs told apart" in page.locator("#line").inner_text()
        width = page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= 390
        last = text.inner_text()
        page.keyboard.press("s")
        page.wait_for_function(
            "before => document.querySelector('#text').textContent != before", arg=last
        )
        page.keyboard.press("u")
        page.wait_for_function(
            "before => document.querySelector('#text').textContent == before", arg=last
        )
        page.screenshot(path=str(tmp_path / "label.png"))
        browser.close()
    labels = {text: value for text, (value, _) in read_answers(output).items()}
    assert labels == {text: truth[text] for text in labels}
