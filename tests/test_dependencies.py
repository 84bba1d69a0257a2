"""Every package that the code imports is one that it declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "condsim": PROJECT,
    "condsim-annotation": PROJECT / "packages" / "condsim-annotation",
    "condsim-contexts": PROJECT / "packages" / "condsim-contexts",
    "condsim-integrations": PROJECT / "packages" / "condsim-integrations",
    "condsim-llm": PROJECT / "packages" / "condsim-llm",
    "condsim-mteb": PROJECT / "packages" / "condsim-mteb",
    "condsim-sweep": PROJECT / "packages" / "condsim-sweep",
}


def imported_packages(source: Path) -> dict[str, str]:
    """Top-level packages outside the standard library, and a file that imports each.

    Names given to ``require`` count as well: that is how an optional package is imported late.
    """
    found: dict[str, str] = {}
    for path in sorted(source.rglob("*.py")):
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
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names}


def requirements(package: str, extras: set[str] | None = None) -> set[str]:
    """Names of what a package and some of its extras (or all) bring."""
    path = PACKAGES[package] / "pyproject.toml"
    project = tomllib.loads(path.read_text("utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra, more in project.get("optional-dependencies", {}).items():
        if extras is None or extra in extras:
            lines += more
    names = {package}
    for line in lines:
        name, brackets = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", line).groups()
        names.add(name.lower())
        if name in PACKAGES.keys() - {package}:
            names |= requirements(name, set((brackets or "").split(",")))
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_of_the_package_are_declared(package):
    declared = {name.replace("-", "_") for name in requirements(package)}
    homes = {
        **metadata.packages_distributions(),
        "h11": ["uvicorn"],
        "pydantic_core": ["pydantic"],  # pinned by it
        "starlette": ["fastapi"],
        "text_to_num": ["text2num"],
    }
    missing = {
        name: file
        for name, file in imported_packages(PACKAGES[package] / "src").items()
        if not {one.lower().replace("-", "_") for one in homes.get(name, [name])} & declared
    }
    assert not missing
