"""Train models from recipes, adapt them to your criteria, average and export them.

Recipes can be read without the extra ``train``; the other names need it.
"""

from typing import TYPE_CHECKING

from condsim.errors import lazy_names
from condsim.training.recipe import Recipe, load_recipe

if TYPE_CHECKING:
    from condsim.training.adaptation import AdaptSettings, adapt
    from condsim.training.averaging import average_models
    from condsim.training.export import export_onnx
    from condsim.training.run import fit

__all__ = [
    "AdaptSettings",
    "Recipe",
    "adapt",
    "average_models",
    "export_onnx",
    "fit",
    "load_recipe",
]

_PLACES = {
    "AdaptSettings": "condsim.training.adaptation.AdaptSettings",
    "adapt": "condsim.training.adaptation.adapt",
    "average_models": "condsim.training.averaging.average_models",
    "export_onnx": "condsim.training.export.export_onnx",
    "fit": "condsim.training.run.fit",
}

__getattr__ = lazy_names(__name__, _PLACES)
