"""``condsim info``: installed libraries and facts about the default model."""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import typer

import condsim
from condsim.errors import ModelError

_CORE = ("numpy", "onnxruntime", "tokenizers", "sentencex")
_MISSING = "not installed"
# Extras for work on condsim itself.
_OF_CLONES = {"dev", "docs", "lint"}
_REQUIRED = re.compile(r"^([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]")


def info() -> None:
    """Show the version, the default model and the installed extras.

    **Examples**

    `condsim info`
    """
    lines = [
        ("condsim", condsim.__version__),
        ("python", platform.python_version()),
        *((name, _version(name)) for name in _CORE),
        *_model_lines(),
        *_extra_lines(),
    ]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        typer.echo(f"{name:<{width}}  {value}")


def _model_lines() -> list[tuple[str, str]]:
    """Name and value of each fact about the default model."""
    from condsim.model.settings import DEFAULT_FOLDER, ModelSettings

    try:
        settings = ModelSettings.load(DEFAULT_FOLDER)
    except ModelError as error:
        return [("model", f"damaged: {error}")]
    size = sum(file.stat().st_size for file in Path(DEFAULT_FOLDER).iterdir() if file.is_file())
    lines = [
        ("model", f"default ({settings.name}, {settings.kind}, {settings.order})"),
        ("  size", f"{size / 1e6:.1f} MB"),
        ("  dimension", str(settings.dimension)),
        ("  max tokens", str(settings.max_seq_length)),
        ("  calibrated", "no" if settings.calibration is None else "yes"),
    ]
    for name, value in settings.facts.items():
        text = f"{value:,}" if isinstance(value, int) else str(value)
        lines.append((f"  {name.replace('_', ' ')}", text))
    return lines


def _extra_lines() -> list[tuple[str, str]]:
    """State of each extra, then the versions of all installed libraries."""
    libraries: dict[str, list[str]] = defaultdict(list)
    for required in metadata.requires("condsim") or ():
        if (match := _REQUIRED.match(required)) and match[2] not in _OF_CLONES:
            libraries[match[2]].append(match[1])
    versions = {name: _version(name) for name in set().union(*libraries.values())}
    lines = []
    for extra, names in libraries.items():
        missing = [name for name in names if versions[name] == _MISSING]
        install = f"not installed: pip install 'condsim[{extra}]'"
        if missing and len(missing) < len(names):
            install += f" brings {', '.join(missing)}"
        lines.append((f"extra {extra}", install if missing else "installed"))
    present = sorted(
        f"{name} {version}" for name, version in versions.items() if version != _MISSING
    )
    return [*lines, ("libraries", ", ".join(present) or "none")]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _MISSING
