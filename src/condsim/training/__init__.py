"""Train models from recipes, adapt them to your criteria, sweep, average and export them.

Recipes and sweeps can be read without the extra ``train``; the other names need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from condsim.training.recipe import Recipe, load_recipe
from condsim.training.sweep_spec import load_sweep

if TYPE_CHECKING:
    from condsim.training.adaptation import AdaptSettings, adapt
    from condsim.training.averaging import average_models
    from condsim.training.export import export_onnx
    from condsim.training.run import fit
    from condsim.training.sweep import run_sweep

__all__ = [
    "AdaptSettings",
    "Recipe",
    "adapt",
    "average_models",
    "export_onnx",
    "fit",
    "load_recipe",
    "load_sweep",
    "run_sweep",
]

_MODULES = {
    "AdaptSettings": "adaptation",
    "adapt": "adaptation",
    "average_models": "averaging",
    "export_onnx": "export",
    "fit": "run",
    "run_sweep": "sweep",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a name that needs the extra on first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
