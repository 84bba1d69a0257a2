"""``condsim info``: what is installed and what the bundled model is."""

from __future__ import annotations

import platform
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import typer

import condsim
from condsim.errors import ModelError

_CORE = ("numpy", "onnxruntime", "tokenizers", "sentencex")
_EXTRAS = {
    "train": ("torch", "sentence_transformers", "transformers", "datasets", "accelerate"),
    "llm": ("openai", "transformers", "torch"),
    "build": ("faiss", "pyarrow", "PIL", "statsmodels", "krippendorff"),
    "contexts": ("pyarrow",),
    "parquet": ("pyarrow",),
    "search": ("lancedb", "faiss", "sklearn", "matplotlib"),
    "serve": ("fastapi", "uvicorn", "prometheus_client"),
}
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "faiss": "faiss-cpu",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
}  # where the module has another name


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
        *(_extra_line(extra, modules) for extra, modules in _EXTRAS.items()),
    ]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        typer.echo(f"{name:<{width}}  {value}")


def _model_lines() -> list[tuple[str, str]]:
    """Name and value of each fact about the bundled model."""
    from condsim.scorers import DEFAULT_FOLDER, Settings

    try:
        settings = Settings.load(DEFAULT_FOLDER)
    except ModelError as error:
        return [("model", f"damaged: {error}")]
    size = sum(file.stat().st_size for file in Path(DEFAULT_FOLDER).iterdir() if file.is_file())
    lines = [
        ("model", f"{settings.name} ({settings.kind}, {settings.order})"),
        ("  size", f"{size / 1e6:.1f} MB"),
        ("  dimension", str(settings.dimension)),
        ("  max tokens", str(settings.max_seq_length)),
        ("  calibrated", "no" if settings.calibration is None else "yes"),
    ]
    for name, value in settings.facts.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        lines.append((f"  {name.replace('_', ' ')}", shown))
    return lines


def _extra_line(extra: str, modules: tuple[str, ...]) -> tuple[str, str]:
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        return f"extra {extra}", f"not installed: pip install 'condsim[{extra}]'"
    return f"extra {extra}", ", ".join(f"{name} {_version(name)}" for name in modules)


def _version(module: str) -> str:
    try:
        return metadata.version(_DISTRIBUTIONS.get(module, module))
    except metadata.PackageNotFoundError:
        return "not installed"
