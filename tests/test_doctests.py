import doctest
import importlib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SOURCES = [PROJECT / "src", *(PROJECT / "packages").glob("*/src")]
MODULES = sorted(
    ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    for source in SOURCES
    for path in source.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
