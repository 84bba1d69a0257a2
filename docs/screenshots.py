"""Picture of the labeling page of each stage for the docs, taken in headless Chromium.

Run by hand, with projects that were pushed to a server (and Debian's chromium installed):

    .venv-services/bin/python docs/screenshots.py URL EMAIL PASSWORD docs/images \
        qualification=1 conditions=2:17 verification=3

The number behind a colon is a task with an annotation; without it, the next task is shown.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
_WAIT_MS = 180_000
_SIZES = {"qualification": (1000, 1020), "conditions": (1000, 700), "verification": (1000, 700)}


def log_in(page: Page, url: str, email: str, password: str) -> None:
    """Log in on the page of the server."""
    page.goto(f"{url}/user/login/", wait_until="domcontentloaded")
    page.fill("input[name=email]", email)
    page.fill("input[name=password]", password)
    page.click("button[type=submit]")
    page.wait_for_url(lambda address: "/login" not in address, wait_until="commit")


def take(page: Page, url: str, project: str, path: Path) -> None:
    """Write the picture of a task of a project."""
    number, _, task = project.partition(":")
    where = f"?task={task}" if task else "?labeling=1"
    page.goto(f"{url}/projects/{number}/data{where}", wait_until="domcontentloaded")
    page.get_by_text("Sentence 2").first.wait_for()
    if not task:
        page.get_by_text("Labeling Instructions").first.wait_for()
        page.wait_for_timeout(1_000)
        # The guidelines are shown first.
        page.keyboard.press("Escape")
        page.get_by_text("Labeling Instructions").first.wait_for(state="hidden")
    page.wait_for_timeout(2_000)
    page.screenshot(path=path)


def main() -> None:
    """Take the pictures that the command line names."""
    url, email, password, folder, *projects = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(_WAIT_MS)
        log_in(page, url, email, password)
        for word in projects:
            stage, _, project = word.partition("=")
            width, height = _SIZES[stage]
            page.set_viewport_size({"width": width, "height": height})
            take(page, url, project, Path(folder, f"annotation-{stage}.png"))
        browser.close()


if __name__ == "__main__":
    main()
