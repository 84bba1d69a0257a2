"""The page in a real Chromium."""

from __future__ import annotations

import csv
import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

import pytest

pytest.importorskip("fastapi")
sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("there is no Chromium; apt-get install chromium", allow_module_level=True)

FIRST = "The waiter was rude, but the soup was delicious."
SECOND = "Our waitress was friendly; the soup was tasteless."
VIEWS = ["pair", "table"]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        with playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as one:
            yield one


@pytest.fixture
def open_page(browser, server):
    """Opens the page; it must load nothing from elsewhere and tell no error."""
    contexts, faults = [], []

    def opened(path="/", *, url=server.url, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)  # machines may be busy
        page.on("request", lambda one: one.url.startswith(url) or faults.append(one.url))
        page.on("console", lambda one: one.type == "error" and faults.append(one.text))
        page.on("pageerror", lambda one: faults.append(str(one)))
        page.goto(url + path)
        return page

    yield opened
    for one in contexts:
        one.close()
    assert not [fault for fault in faults if "status of 40" not in fault]


def numbers(page) -> list[str]:
    every = "[...document.querySelectorAll('#bars .number')].every"
    page.wait_for_function(f"() => {every}(one => /[0-9]/.test(one.textContent))")
    return page.locator("#bars .number").all_inner_texts()


def test_page_begins_with_an_example_that_is_scored(open_page, model):
    page = open_page()
    asked = ["the attitude of the staff", "the type of food"]
    wanted = [*(model.score(FIRST, SECOND, one) for one in asked), model.score(FIRST, SECOND)]
    assert [float(one) for one in numbers(page)] == pytest.approx(wanted, abs=0.011)
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('attitude')")
    assert not page.locator("#tab-search").is_visible()


def test_page_answers_say_that_nothing_else_may_load(client):
    answer = client().get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert client().get("/page/other.js").status_code == 404
    assert client(keys=["k"]).get("/page/main.js").status_code == 200


def test_page_scores_while_one_types(open_page):
    page = open_page()
    before = numbers(page)
    page.evaluate(
        """() => {
        const line = document.querySelector('#bars .number');
        document.querySelector('#first').addEventListener('input', () => {
            window.began = performance.now(); });
        new MutationObserver(() => { window.took = performance.now() - window.began; })
            .observe(line, { childList: true });
        }"""
    )
    took = []
    for _ in range(10):
        page.evaluate("() => { delete window.took; }")
        page.locator("#first").press_sequentially("x")
        page.wait_for_function("() => window.took !== undefined")
        took.append(page.evaluate("() => window.took"))
        time.sleep(0.1)
    # At most 72 ms in 40 on two idle cores.
    assert min(took) < 1000
    page.locator("#first").fill("A recipe for tomato soup")
    page.wait_for_timeout(500)
    assert numbers(page) != before


def test_page_link_restores_what_was_shown(open_page):
    page = open_page()
    page.locator("#first").fill("Ünï & <b>one</b> #1")
    page.locator("#condition").fill("the % of = signs")
    page.keyboard.press("Enter")
    wanted = numbers(page)
    page.wait_for_function("() => location.hash.includes('signs')")
    again = open_page("/" + page.evaluate("() => location.hash"))
    assert again.locator("#first").input_value() == "Ünï & <b>one</b> #1"
    assert again.get_by_label("Condition 3").input_value() == "the % of = signs"
    assert numbers(again) == wanted


def linked(first, second, *conditions):
    pairs = [("v", "pair"), ("a", first), ("b", second), *(("c", name) for name in conditions)]
    return f"/#{urlencode(pairs)}"


def test_page_marks_scores_that_mean_little(open_page):
    conditions = ("the request", "the type of food")
    texts = ("I want a refund for my lamp.", "Please give me my money back.")
    page = open_page(linked(*texts, *conditions))
    numbers(page)
    bars = page.locator("#bars > li")
    assert [bar.get_attribute("class") for bar in bars.all()] == ["", "silent", ""]
    assert page.locator("#bars .remark").all_inner_texts() == [
        "",
        "neither text seems to mention it",
        "not calibrated: it only ranks pairs",
    ]
    assert page.locator("#bars .verdict").all_inner_texts() == ["rather agree", "", ""]
    page.locator("#second").fill("Верните мне деньги, пожалуйста.")
    page.get_by_text("the model cannot read a text").first.wait_for()
    assert [bar.get_attribute("class") for bar in bars.all()] == ["silent"] * 3
    page.locator("#second").fill(" ")
    page.wait_for_function("() => !/[0-9]/.test(document.querySelector('#bars').textContent)")
    page.get_by_label("Why this score: the request").click()
    assert page.locator("#problem").inner_text() == "Write both texts first."


def test_page_table_marks_silent_cells_and_downloads(open_page, tmp_path):
    page = open_page("/#v=table")
    page.locator("#rows").fill('"A refund, please.",Give me my money back.\n"Say ""no""",Never')
    page.locator("#table-conditions").fill("the type of food\n?!")
    page.get_by_text("2 rows scored. Gray scores mean little").wait_for()
    cell = page.locator("#heat td.silent").first
    assert cell.get_attribute("title") == "neither text seems to mention it"
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download as CSV").click()
    rows = list(csv.reader(caught.value.path().read_text("utf-8-sig").splitlines()))
    assert rows[0] == ["sentence1", "sentence2", "score: the type of food"]
    assert [row[0] for row in rows[1:]] == ["A refund, please.", 'Say "no"']
    assert [f"{float(row[2]):.2f}" for row in rows[1:]] == page.locator(
        "#heat td button"
    ).all_inner_texts()
    page.locator("#rows").fill("alone")
    page.get_by_text("No row has two texts yet.").wait_for()
    assert not page.locator("#download").is_visible()


def test_page_why_shows_words_with_numbers_and_closes_by_escape(open_page):
    page = open_page()
    numbers(page)
    page.get_by_label("Why this score: the attitude of the staff").press("Enter")
    page.locator("#why .word").first.wait_for()
    words = [word.strip(",;.") for word in [*FIRST.split(), *SECOND.split()]]
    assert page.locator("#why .word > span").all_inner_texts() == words
    assert all(text[-1].isdigit() for text in page.locator("#why .word small").all_inner_texts())
    page.keyboard.press("Escape")
    assert not page.locator("#why").is_visible()
    focused = "() => document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "Why this score: the attitude of the staff"


def test_page_table_is_a_heat_map_by_keyboard(open_page):
    page = open_page()
    page.locator("#tab-pair").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#tab-table").get_attribute("aria-selected") == "true"
    page.locator("#rows").fill('one,two,id\n"A dog, two cats",A dog.,3\nalone\n')
    page.locator("#header").press("Space")
    page.locator("#table-conditions").fill("the animals")
    page.wait_for_function("() => document.querySelectorAll('#heat td.heat').length === 1")
    assert page.locator("#heat tbody td").first.inner_text() == "A dog, two cats"
    page.get_by_text("1 row scored. 1 row without two texts left out.").wait_for()
    page.locator("#heat td button").press("Enter")
    page.locator("#why .word").first.wait_for()


def test_page_asks_once_for_the_key_and_keeps_it_in_memory(open_page, start, tmp_path):
    (tmp_path / "keys").write_text("a-long-secret\n")
    held = []

    def hold_the_first(route):
        first = not held
        held.append(route)
        if not first:
            route.continue_()

    with start("--api-key-file", str(tmp_path / "keys")) as guarded:
        page = open_page("/health", url=guarded.url)
        page.route("**/v1/score", hold_the_first)
        page.goto(guarded.url)
        page.locator("#key-value").fill("a-long-secret")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('#key').hidden")
        held[0].continue_()
        assert len(numbers(page)) == 3
        assert not page.locator("#key").is_visible()
        kept = "[location.href, {...localStorage}, {...sessionStorage}, document.cookie]"
        assert "secret" not in page.evaluate(f"() => JSON.stringify({kept})")
        page.close()  # before its server


@pytest.mark.slow
def test_page_search_is_there_with_an_index(open_page, start, tmp_path, model):
    search = pytest.importorskip("condsim.search")
    rows = [{"text": "The kettle leaks.", "year": 2023}, {"text": "The lamp hums.", "year": 2024}]
    search.Index.build(rows, tmp_path / "made", model="default")
    with start("--index", str(tmp_path / "made")) as server:
        page = open_page(url=server.url)
        page.locator("#tab-search").click()
        page.locator("#query").fill("My lamp makes a noise.")
        page.locator("#search-conditions").fill("the product: 0.7\nthe complaint: 0.3")
        page.locator("summary").press("Enter")
        page.locator("#where").fill("year > 2023")
        page.get_by_role("button", name="Search").last.click()
        page.locator("#hits li").first.wait_for()
        assert page.locator("#hits li").count() == 1
        assert "The lamp hums." in page.locator("#hits li").inner_text()
        page.locator("#where").fill("nothing = 3")
        page.get_by_role("button", name="Search").last.click()
        page.get_by_text("The filter 'nothing = 3' cannot be used").wait_for()
        # No old text stays under an error, and no old error under texts.
        assert page.locator("#hits li").count() == 0
        page.locator("#where").fill("")
        page.route("**/v1/search", lambda route: page.wait_for_timeout(300) or route.continue_())
        page.locator("#query").press("Control+Enter")
        page.get_by_role("button", name="Searching").wait_for()
        assert page.locator("#start-search").is_disabled()
        assert page.locator("#problem").inner_text() == ""
        page.locator("#hits li").first.wait_for()
        assert page.locator("#start-search").is_enabled()
        page.locator("#query").fill(" ")
        page.locator("#start-search").click()
        assert page.locator("#problem").inner_text() == "Write a text to search for."
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1100])
def test_page_is_accessible_and_fits(open_page, tmp_path, scheme, width):
    found = find_spec("axe_playwright_python")
    if found is None:
        pytest.skip("needs axe-playwright-python, which carries axe-core")
    axe = next(Path(found.submodule_search_locations[0]).rglob("axe.min.js"))
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    for view in VIEWS:
        page = open_page(f"/#v={view}", bypass_csp=True, **options)
        ready = {"pair": "#bars button", "table": "#heat td button"}[view]
        page.locator(ready).first.click()
        page.locator("#why .word").first.wait_for()
        page.screenshot(path=tmp_path / f"{view}.png", full_page=True)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        page.add_script_tag(path=axe)
        faults = page.evaluate("() => axe.run()")["violations"]
        serious = [one["id"] for one in faults if one["impact"] in ("serious", "critical")]
        assert not serious, faults
