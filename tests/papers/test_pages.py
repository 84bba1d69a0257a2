"""Pages of results name commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from papers import names

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted((PROJECT / "papers" / "docs").rglob("*.md"))
COMMAND = re.compile(r"python\s+-m\s+((?:papers|benchmarks)[.\w]*)(?:\s+([a-z][\w-]+))?")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_names_commands_that_exist(page: Path) -> None:
    for module, name in COMMAND.findall(page.read_text(encoding="utf-8")):
        path = PROJECT / module.rstrip(".").replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module
        if module == "papers" and name:
            assert name in (*names(), "default-model"), name
