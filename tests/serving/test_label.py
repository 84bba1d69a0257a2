"""The page to label texts, in a real Chromium, and its requests."""

import csv
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

import condsim
from condsim.labeling import LabelSession
from condsim.pair_labeling import PairSession

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
    with LabelSession.open(truth, "the problem", model=model, output=output) as session:
        with TestClient(create_app(model, session=session)) as client:
            assert client.get("/label").status_code == 200
            state = client.get("/v1/label").json()
            for _ in range(10):
                body = {"texts": state["texts"], "value": truth[state["texts"][0]]}
                state = client.post("/v1/label", json=body).json()
            assert state["labeled"] == 10
            assert 0 < state["auc"] <= 100
            texts = state["texts"]
            state = client.post("/v1/label", json={"texts": texts, "value": "skip"}).json()
            assert state["texts"] != texts
            state = client.post("/v1/label/undo", json={}).json()
            assert state["texts"] == texts
            bad = client.post("/v1/label", json={"texts": ["other"], "value": "x"})
            assert bad.status_code == 400
    assert len(LabelSession.read(output, "the problem")) == 10
    assert output.with_suffix(".criterion").exists()


def test_label_page_is_absent_without_a_session(truth):
    with TestClient(create_app(condsim.load())) as client:
        assert client.get("/label").status_code == 404
        assert client.get("/v1/label").status_code == 404


@pytest.fixture
def page(start, tmp_path):
    """Opens the page of a server in Chromium; it must load nothing from elsewhere."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium; apt-get install chromium")

    @contextmanager
    def opened(texts, output, *words, **options):
        label = ("--label", str(texts), "--condition", "the problem", "--output", str(output))
        with start(*label, *words) as server, sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(**options)
            page.set_default_timeout(60_000)
            faults = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda sent: sent.url.startswith(server.url) or faults.append(sent))
            page.goto(server.url + "/label")
            page.wait_for_function("() => document.querySelector('#texts').textContent.length > 5")
            yield page
            browser.close()
            assert not faults

    return opened


def texts_of(page):
    return page.locator("#texts blockquote").all_inner_texts()


def press(page, *keys):
    """Press keys and type words, and wait for another question."""
    before = page.locator("#texts").text_content()
    for key in keys:
        page.keyboard.press(key) if len(key) == 1 or key == "Enter" else page.keyboard.type(key)
    page.wait_for_function(
        "before => document.querySelector('#texts').textContent != before", arg=before
    )


@pytest.mark.slow
def test_label_page_by_keyboard(page, truth, tmp_path):
    output = tmp_path / "problem.csv"
    phone = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}
    with page(HELPDESK, output, **phone) as label:
        order = []
        for number in range(12):
            value = truth[texts_of(label)[0]]
            if value in order:
                press(label, str(order.index(value) + 1))
            else:
                order.append(value)
                press(label, "n", value, "Enter")
            assert len(LabelSession.read(output, "the problem")) == number + 1
        assert label.locator("#learned").is_visible()
        assert label.locator("#line").inner_text() == "12 labeled."
        assert "too few to promise" in label.locator("#threshold").inner_text()
        assert label.evaluate("() => document.documentElement.scrollWidth") <= 390
        last = texts_of(label)
        press(label, "s")
        press(label, "u")
        assert texts_of(label) == last
    labels = {text: value for text, (value, _) in LabelSession.read(output, "the problem").items()}
    assert labels == {text: truth[text] for text in labels}


@pytest.mark.slow
def test_label_page_of_pairs_by_keyboard_and_touch(page, truth, tmp_path):
    output = tmp_path / "pairs.csv"
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True}
    with page(HELPDESK, output, "--pairs", **phone) as label:
        assert label.locator("#new").is_hidden()
        for number in range(12):
            first, second = texts_of(label)
            same = truth[first] == truth[second]
            if number % 2:
                before = label.locator("#texts").text_content()
                label.locator("#values button").nth(0 if same else 1).tap()
                label.wait_for_function(
                    "before => document.querySelector('#texts').textContent != before", arg=before
                )
            else:
                press(label, "y" if same else "n")
            assert len(PairSession.read(output, "the problem")) == number + 1
        assert label.locator("#learned").is_visible()
        assert label.evaluate("() => document.documentElement.scrollWidth") <= 390
        last = texts_of(label)
        press(label, "d")
        press(label, "u")
        assert texts_of(label) == last
    for (first, second), (value, _) in PairSession.read(output, "the problem").items():
        assert (value == "same") == (truth[first] == truth[second])
    assert output.with_suffix(".criterion").exists()


def test_label_page_ends_with_what_to_do(page, tmp_path):
    texts, output = tmp_path / "texts.csv", tmp_path / "problem.csv"
    texts.write_text("text\nI forgot my password.\nThe bill is wrong.\n")
    with page(texts, output) as label:
        press(label, "n", "login", "Enter")
        press(label, "1")
        assert label.locator("h1").inner_text().startswith("All labeled")
        assert label.locator("#answers").is_hidden()


def test_label_answer_of_another_page_is_kept(truth, tmp_path):
    model, output = condsim.load(), tmp_path / "problem.csv"
    with PairSession.open(truth, "the problem", model=model, output=output) as session:
        with TestClient(create_app(model, session=session)) as client:
            texts = client.get("/v1/label").json()["texts"]
            for _ in range(2):
                answer = client.post("/v1/label", json={"texts": texts, "value": "same"})
                assert answer.status_code == 200
            turned = client.post("/v1/label", json={"texts": texts[::-1], "value": "different"})
            assert turned.status_code == 409
            assert "answered 'same'" in turned.text
            one = client.post("/v1/label", json={"texts": texts[:1], "value": "same"})
            assert one.status_code == 400
            other = client.post("/v1/label", json={"texts": list(truth)[:2], "value": "perhaps"})
            assert other.status_code == 400
    assert [value for value, _ in PairSession.read(output, "the problem").values()] == ["same"]
