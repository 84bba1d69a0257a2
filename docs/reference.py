"""Write the pages that are generated from the code: api.md, commands.md and recipe.md.

Run it as ``python docs/reference.py``; a test compares the pages with the code. Signatures and
docstrings of the API are added by mkdocstrings when the site is built.
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

import typer
from pydantic import BaseModel

import condsim

FOLDER = Path(__file__).parent
SOURCE = FOLDER.parent / "src"
PACKAGES = {
    "data": "Read data files. Needs no extra.",
    "model": "Models that score pairs. Needs no extra.",
    "model.builders": "Build encoders. Needs `condsim[train]`.",
    "evaluation": "Measure scorers. Plots need `condsim[train]`.",
    "training": "Recipes, training, adapting, export. Needs `condsim[train]`.",
    "search": "Search, clusters, duplicates. Needs `condsim[search]`.",
    "serving": "The HTTP server as an ASGI app. Needs `condsim[serve]`.",
}
COMPANIONS = {
    "condsim_contexts": "Similarity from plain text. Needs `condsim[contexts]`.",
    "condsim_integrations.pandas": "Needs `condsim[pandas]`.",
    "condsim_integrations.polars": "Needs `condsim[polars]`.",
    "condsim_integrations.duckdb": "Needs `condsim[duckdb]`.",
    "condsim_integrations.langchain": "Needs `condsim[langchain]`.",
    "condsim_integrations.llama_index": "Needs `condsim[llama-index]`.",
    "condsim_integrations.haystack": "Needs `condsim[haystack]`.",
    "condsim_integrations.bertopic": "Needs `condsim[bertopic]`.",
    "condsim_integrations.ray": "Needs `condsim[ray]`.",
    "condsim_llm": "Language models as scorers. Needs `condsim[llm]`.",
    "condsim_mteb": "Models and data in mteb. Needs `condsim[mteb]`.",
    "condsim_sweep": "Search for the best recipe. Needs `condsim[sweep]`.",
}
API_START = """# Python API

This page lists the public names of condsim. All other names are internal and may change without
notice. Import a name from the package under which it is listed; `help(condsim.load)` shows the same
text in Python.

`import condsim` loads nothing heavy: each name is imported on first use, and none needs torch or a
network until you open a trained model folder or a Hub name. If an extra is missing, the error says
what to install.
"""
COMMANDS_START = """# Commands

Every command has `--help`. [The command line](command-line.md) explains what all commands share:
files, columns, streams and exit statuses.
"""
RECIPE_START = """# Recipe keys

A recipe is a YAML file that describes a [training](training.md) run. An unknown key or a wrong
value is an error that names it. `--set key=value` changes a key on the command line.
"""


def names_of(package: str) -> list[str]:
    """Public names of a package, or of a module at the root."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == package
    ]
    return sorted(names, key=str.lower)


def directive(package: str, name: str) -> str:
    """Directive with which mkdocstrings shows a public name under its import path.

    A function of the same name as its module is found through the module that defines it.
    """
    path = f"{package}.{name}"
    if not (SOURCE / (path.replace(".", "/") + ".py")).exists():
        return f"::: {path}"
    value = getattr(importlib.import_module(package), name)
    return f'::: {value.__module__}.{name}\n    options:\n      heading: "{path}"'


def api_page() -> str:
    """Page of Python names."""
    sections = [API_START]
    documented: set[int] = set()
    for package, about in {
        "condsim": "",
        **{f"condsim.{k}": v for k, v in PACKAGES.items()},
        **COMPANIONS,
    }.items():
        module = importlib.import_module(package)
        new, repeated = [], []
        for name in names_of(package):
            value = getattr(module, name)
            is_repeated = inspect.isclass(value) and id(value) in documented
            (repeated if is_repeated else new).append(name)
            documented.add(id(value))
        sections += [f"## {package}\n", *([f"{about}\n"] if about else [])]
        if repeated:
            listed = ", ".join(f"`{name}`" for name in repeated)
            sections.append(f"Also importable from here: {listed}.\n")
        sections += [f"{directive(package, name)}\n" for name in new]
    return "\n".join(sections)


def cell(text: object) -> str:
    """Text of a table cell."""
    return " ".join(str(text).split()).replace("|", r"\|")


def parameter_row(parameter: Any) -> str:  # noqa: ANN401  (a click parameter)
    """Row of the table of an argument or option."""
    if parameter.param_type_name == "argument":
        names = f"`{(parameter.metavar or parameter.name).strip('[]')}`"
    else:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    shown = getattr(parameter, "show_default", None)
    if parameter.required:
        default = "required"
    elif isinstance(shown, str):
        default = shown
    else:
        value = None if callable(parameter.default) else parameter.default
        is_plain = isinstance(value, str | int | float | Path) and not isinstance(value, bool)
        default = f"`{value}`" if is_plain and str(value) else ""
    return f"| {names} | {cell(default)} | {cell(getattr(parameter, 'help', None) or '')} |"


def command_lines(path: str, command: Any) -> Iterator[str]:  # noqa: ANN401  (a click command)
    """Lines about one command."""
    about = inspect.cleandoc(command.help or "").replace("\b\n", "")
    text, _, examples = about.partition("**Examples**")
    yield from [f"## {path}", "", text.strip().replace("\f", ""), ""]
    if lines := [" ".join(line.split()) for line in re.findall(r"`([^`]+)`", examples)]:
        yield from ["<!-- no-run -->", "```bash", *lines, "```", ""]
    rows = [parameter_row(p) for p in command.params if not getattr(p, "hidden", False)]
    yield from ["| argument or option | default | meaning |", "|---|---|---|", *rows, ""]


def commands_of(command: Any, path: str = "condsim") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Paths and commands below a group, in order."""
    if subcommands := getattr(command, "commands", None):
        for name, subcommand in subcommands.items():
            yield from commands_of(subcommand, f"{path} {name}")
    else:
        yield path, command


def commands_page() -> str:
    """Page of commands, their arguments and options."""
    from condsim.cli.main import app

    commands = list(commands_of(typer.main.get_command(app)))
    lines = [COMMANDS_START, "| command | what it does |", "|---|---|"]
    for path, command in commands:
        about = inspect.cleandoc(command.help or "").partition("\n\n")[0]
        lines.append(f"| [`{path}`](#{path.replace(' ', '-')}) | {cell(about)} |")
    lines.append("")
    for path, command in commands:
        lines += command_lines(path, command)
    return "\n".join(lines).rstrip() + "\n"


def attributes_of(kind: type) -> dict[str, str]:
    """Descriptions in the ``Attributes:`` section of a class, by field."""
    text = inspect.getdoc(kind) or ""
    section = text.partition("Attributes:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(about.split()).replace("``", "`") for name, about in entries}


def kind_of(hint: Any) -> str:  # noqa: ANN401  (any annotation)
    """Type as a writer of YAML sees it."""
    if get_origin(hint) is Annotated:
        return kind_of(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(kind_of(part) for part in get_args(hint))
    if get_origin(hint) is list:
        return f"list of {kind_of(get_args(hint)[0])}"
    names = {bool: "true or false", float: "number", int: "integer", str: "text", NoneType: "null"}
    return names.get(hint, "mapping")


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
    """Page of recipe keys."""
    from condsim.training.recipe import Recipe, Source

    head = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines = [
        RECIPE_START,
        *head,
        *keys_of(Recipe),
        "",
        "## Keys of a source",
        "",
        "Each of the `sources` is a mapping ([several sources](training.md#several-sources)).",
        "",
        *head,
        *keys_of(Source),
    ]
    return "\n".join(lines).replace("|  |", "| |") + "\n"


PAGES = {"api.md": api_page, "commands.md": commands_page, "recipe.md": recipe_page}

if __name__ == "__main__":
    for file, make in PAGES.items():
        (FOLDER / file).write_text(make(), encoding="utf-8")
    print(f"condsim {condsim.__version__}: {', '.join(PAGES)}")  # noqa: T201
