"""Train models from recipes, adapt them to your criteria, sweep, average and export them."""

from condsim.errors import requires_extra

with requires_extra("train"):
    from condsim.training.adapt import AdaptSettings, adapt
    from condsim.training.averaging import average_models
    from condsim.training.export import export_onnx
    from condsim.training.recipe import Recipe, load_recipe
    from condsim.training.run import fit
    from condsim.training.sweep import run_sweep
    from condsim.training.sweep_spec import load_sweep

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
