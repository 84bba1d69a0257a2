"""Every package that the code imports is one that it declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def imported_packages() -> dict[str, str]:
    """Top-level packages outside the standard library, and a file that imports each.

    Names given to ``require`` count as well: that is how an optional package is imported late.
    """
    found: dict[str, str] = {}
    for path in sorted((PROJECT / "src").rglob("*.py")):
        names: list[str] = []
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):  # what only type checkers see is taken out
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module or "")
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
                names += [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        for name in names:
            found.setdefault(name.partition(".")[0], str(path.relative_to(PROJECT)))
    own = {"condsim", "papers"}
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names | own}


def test_imports_of_the_package_are_declared():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    declared = {re.split(r"[\[<>=!~ ;]", line)[0].lower().replace("-", "_") for line in lines}
    homes = {
        **metadata.packages_distributions(),
        "h11": ["uvicorn"],
        "pydantic_core": ["pydantic"],  # pinned by it
        "starlette": ["fastapi"],
        "text_to_num": ["text2num"],
    }
    missing = {
        name: file
        for name, file in imported_packages().items()
        if not {one.lower().replace("-", "_") for one in homes.get(name, [name])} & declared
    }
    assert not missing
