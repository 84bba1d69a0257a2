"""The house: packages import downwards only, through faces, and in no circle."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
ORDER = (
    "tasks encoders losses scorers prompting evaluation training contexts loading construction "
    "applicability mteb_bridge search serving integrations cli __main__"
).split()
"""Packages from the bottom up; other modules at the root stand below them all."""


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SRC.rglob("*.py"))}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def package_of(module: str) -> str:
    return module if module in PACKAGES else module.rpartition(".")[0]


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, module and name of each import of something of condsim."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "condsim":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = (inner, "") if inner in MODULES else (str(node.module), alias.name)
                yield node.lineno, *found


def face_of(package: str) -> dict[str, str]:
    """Names that the stub of a package lists, and the module or package each is taken from."""
    stub = MODULES[package].with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        alias.name: f"{package}.{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
        if alias.asname == alias.name
    }


FACES = {package: face_of(package) for package in PACKAGES - {"condsim"}}


def home_of(module: str, name: str) -> str:
    """The module behind a face's name."""
    while name and name in FACES.get(module, {}):
        module = FACES[module][name]
    return module


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def stray(user: str, target: str) -> bool:
    """Whether an import reaches behind the face of a package that the user is not in."""
    mine, theirs = f"{package_of(user)}.", package_of(target)
    if mine.startswith(f"{theirs}.") or theirs == "condsim":
        return False
    shared = ""
    for step in theirs.split("."):
        if not mine.startswith(f"{shared}{step}."):
            return target != f"{shared}{step}"
        shared += f"{step}."
    return False


def test_imports_of_each_module_go_through_faces() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {target}"
        for module, path in MODULES.items()
        if path.name != "__init__.py"
        for line, target, _ in imports(path)
        if stray(module, target)
    ]
    assert not found, "\n".join(found)


def test_imports_of_each_package_go_down_only() -> None:
    height = {name: place for place, name in enumerate(ORDER)}
    found = [
        f"{path.relative_to(ROOT)}:{line} {target}"
        for module, path in MODULES.items()
        if module != "condsim"
        for line, target, _ in imports(path)
        if height.get(room(target), -1) > height.get(room(module), -1)
    ]
    assert not found, "\n".join(found)


def test_imports_of_all_modules_have_no_circle() -> None:
    graph = {
        module: {
            home
            for _, target, name in imports(path)
            if (home := home_of(target, name)) not in ("condsim", module)
        }
        for module, path in MODULES.items()
        if path.name != "__init__.py"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("package", sorted(FACES))
def test_face_of_each_package_is_its_stub(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == sorted(FACES[package])
    for name, home in FACES[package].items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
        assert f"{package}.{name}" not in MODULES, "a module would hide the name"


def test_files_and_functions_are_of_a_size_to_read() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values()}
    assert not [path for path, number in lines.items() if number > 500]
    tiny = [path for path, number in lines.items() if number < 60 and path.name != "__init__.py"]
    assert len(tiny) < 40
    assert len(lines) <= 254
    assert sum(lines.values()) <= 48_803
