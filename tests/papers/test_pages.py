"""Pages of results name commands that exist."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from condsim.data.held_out import text_digest
from condsim.data.tables import iter_criteria
from papers import names

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted((PROJECT / "papers" / "docs").rglob("*.md"))
COMMAND = re.compile(r"python\s+-m\s+((?:papers|benchmarks)[.\w]*)(?:\s+([a-z][\w-]+))?")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_names_commands_that_exist(page):
    for module, name in COMMAND.findall(page.read_text(encoding="utf-8")):
        path = PROJECT / module.rstrip(".").replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module
        if module == "papers" and name:
            assert name in (*names(), "default-model"), name


FOLDER = Path(__file__).resolve().parents[2] / "data" / "attributes"


def test_published_attributes_have_criteria_with_two_values_of_two_texts_each():
    files = sorted(FOLDER.glob("*.jsonl"))
    assert len(files) == 246
    seen: set[bytes] = set()
    for file in files:
        values: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in iter_criteria(file):
            assert text_digest(row.text) not in seen, row.location
            seen.add(text_digest(row.text))
            for criterion, found in row.attributes.items():
                values[criterion].update(found)
        usable = [name for name, count in values.items() if sum(n > 1 for n in count.values()) > 1]
        assert len(usable) >= 4, file.name
    assert len(seen) == 12_491
