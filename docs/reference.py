"""Writes the pages that the code itself can tell: api.md and recipe.md.

Run it as ``python docs/reference.py``; a test compares the pages with the code.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

import condsim

FOLDER = Path(__file__).parent
PACKAGES = {
    "data": "Read data files. Needs no extra.",
    "model": "Models that score pairs. Needs no extra.",
    "model.builders": "Build encoders. Needs `condsim[train]`.",
    "evaluation": "Measure scorers. Plots need `condsim[train]`.",
    "training": "Recipes, training, adapting, sweeps, export. Needs `condsim[train]`.",
    "search": "Search, clusters, duplicates. Needs `condsim[search]`.",
    "serving": "The HTTP server as an ASGI app. Needs `condsim[serve]`.",
    "prompting": "Language models as scorers. Needs `condsim[llm]`.",
    "contexts": "Similarity from plain text. Needs `condsim[contexts]`.",
    "integrations.pandas": "Needs `condsim[pandas]`.",
    "integrations.polars": "Needs `condsim[polars]`.",
    "integrations.duckdb": "Needs `condsim[duckdb]`.",
    "integrations.langchain": "Needs `condsim[langchain]`.",
    "integrations.llama_index": "Needs `condsim[llama-index]`.",
    "integrations.haystack": "Needs `condsim[haystack]`.",
    "integrations.bertopic": "Needs `condsim[bertopic]`.",
}
START = """# Python names

`import condsim` loads nothing heavy: each name is imported on first use, and none needs torch or a
network until you ask for a trained model folder or a Hub name. A missing extra is one line that
says what to install.

Import from the packages on this page. All other names are internal and may change without notice.

"""


def names_of(package: str) -> list[str]:
    """Public names of a package, or of a module at the root."""
    module = importlib.import_module(package)
    found = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == package
    ]
    return sorted(found, key=str.lower)


def summary_of(value: object) -> str:
    """The first line of a docstring; nothing for constants and type aliases."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", r"\|").replace("``", "`")


def table(package: str) -> Iterator[str]:
    """Rows of the table of a package."""
    module = importlib.import_module(package)
    yield "| name | what it is |"
    yield "|---|---|"
    for name in names_of(package):
        yield f"| `{name}` | {summary_of(getattr(module, name))} |".replace("|  |", "| |")


def api_page() -> str:
    """The page of Python names."""
    lines = ["## condsim", "", *table("condsim")]
    for name, about in PACKAGES.items():
        lines += ["", f"## condsim.{name}", "", about, "", *table(f"condsim.{name}")]
    return START + "\n".join(lines) + "\n"


def attributes_of(kind: type) -> dict[str, str]:
    """Descriptions in the ``Attributes:`` section of a class, by field."""
    text = inspect.getdoc(kind) or ""
    section = text.partition("Attributes:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(line.split()).replace("``", "`") for name, line in found}


def kind_of(hint: Any) -> str:  # noqa: ANN401  (any annotation)
    """A type as a writer of YAML sees it."""
    if get_origin(hint) is Annotated:
        return kind_of(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(kind_of(part) for part in get_args(hint))
    if get_origin(hint) is list:
        return f"list of {kind_of(get_args(hint)[0])}"
    known = {bool: "true or false", float: "number", int: "integer", str: "text", NoneType: "null"}
    return known.get(hint, "mapping")


def keys_of(settings: type[BaseModel]) -> Iterator[str]:
    """Rows of the table of settings."""
    about, hints = attributes_of(settings), get_type_hints(settings, include_extras=True)
    for name, field in settings.model_fields.items():
        if field.is_required():
            default = "required"
        else:
            value = field.get_default(call_default_factory=True)
            default = f"`{json.dumps(value).strip(chr(34))}`"
        yield f"| `{name}` | {kind_of(hints[name])} | {default} | {about[name]} |"


def recipe_page() -> str:
    """The page of recipe keys."""
    from condsim.training.recipe import Recipe, Source

    lines = [
        "# Recipe keys",
        "",
        "A recipe is one YAML file: everything that decides a training run "
        "([training](training.md)). An unknown key or a wrong value is an error that names it. "
        "`--set key=value` changes a key on the command line.",
        "",
        "| key | type | default | what it is |",
        "|---|---|---|---|",
    ]
    lines += [
        *keys_of(Recipe),
        "",
        "## Keys of a source",
        "",
        "Each of the `sources` is a mapping ([several sources](training.md#several-sources)).",
        "",
        "| key | type | default | what it is |",
        "|---|---|---|---|",
        *keys_of(Source),
    ]
    return "\n".join(lines).replace("|  |", "| |") + "\n"


PAGES = {"api.md": api_page, "recipe.md": recipe_page}

if __name__ == "__main__":
    for file, make in PAGES.items():
        (FOLDER / file).write_text(make(), encoding="utf-8")
    print(f"condsim {condsim.__version__}: {', '.join(PAGES)}")  # noqa: T201
