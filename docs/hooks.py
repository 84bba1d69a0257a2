"""MkDocs hook for the pages: fences without the notes that the tests read."""

from __future__ import annotations

import re


def on_page_markdown(markdown: str, **_: object) -> str:
    """Remove ``no-run`` from the fences of a page."""
    return re.sub(r"^```(\w+) no-run$", r"```\1", markdown, flags=re.MULTILINE)
