"""condsim: how similar are these two texts, *with respect to X*?

Importing it is instant: the public names below are loaded when first used, and none of them needs
torch or a network until a trained model folder is asked for.

Example:
    >>> import condsim
    >>> model = condsim.load()
    >>> sport = model.score("A man throws a ball.", "A girl kicks a ball.", "the sport")
    >>> 0 <= sport <= 1
    True
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condsim.errors import CondSimError, InputError, MissingExtraError, ModelError
    from condsim.evaluation.report import Report
    from condsim.loading import load_scorer as load
    from condsim.model.onnx import OnnxScorer
    from condsim.types import Scorer, Task

__all__ = [
    "CondSimError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "OnnxScorer",
    "Report",
    "Scorer",
    "Task",
    "__version__",
    "load",
]

__version__ = "0.1.0"

# Released ONNX Runtimes report their use over the network unless told otherwise before they load.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_LAZY = {
    "CondSimError": ("condsim.errors", "CondSimError"),
    "InputError": ("condsim.errors", "InputError"),
    "MissingExtraError": ("condsim.errors", "MissingExtraError"),
    "ModelError": ("condsim.errors", "ModelError"),
    "OnnxScorer": ("condsim.model.onnx", "OnnxScorer"),
    "Report": ("condsim.evaluation.report", "Report"),
    "Scorer": ("condsim.types", "Scorer"),
    "Task": ("condsim.types", "Task"),
    "load": ("condsim.loading", "load_scorer"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type is that of the name asked for
    """Imports a public name on first use (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module 'condsim' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
