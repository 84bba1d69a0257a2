"""condsim: how similar are these two texts, *with respect to X*?

The import is instant: public names are loaded on first use, and none of them needs torch or a
network until a trained model folder is loaded.

Example:
    >>> import condsim
    >>> model = condsim.load()
    >>> sport = model.score("A man throws a ball.", "A girl kicks a ball.", "the sport")
    >>> 0 <= sport <= 1
    True
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from condsim.errors import CondSimError, InputError, MissingExtraError, ModelError, lazy_names

if TYPE_CHECKING:
    from condsim.evaluation.report import Report
    from condsim.loading import load_criterion, load_scorer as load
    from condsim.model.criterion import Criterion
    from condsim.model.judge import Judge, Verdict, load_judge, verdict
    from condsim.model.onnx import OnnxScorer
    from condsim.types import Scorer, Task

__all__ = [
    "CondSimError",
    "Criterion",
    "InputError",
    "Judge",
    "MissingExtraError",
    "ModelError",
    "OnnxScorer",
    "Report",
    "Scorer",
    "Task",
    "Verdict",
    "__version__",
    "load",
    "load_criterion",
    "load_judge",
    "verdict",
]

__version__ = "0.1.0"

# ONNX Runtime reports its use over the network unless this is set before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_PLACES = {
    "Criterion": "condsim.model.criterion.Criterion",
    "Judge": "condsim.model.judge.Judge",
    "OnnxScorer": "condsim.model.onnx.OnnxScorer",
    "Report": "condsim.evaluation.report.Report",
    "Scorer": "condsim.types.Scorer",
    "Task": "condsim.types.Task",
    "Verdict": "condsim.model.judge.Verdict",
    "load": "condsim.loading.load_scorer",
    "load_criterion": "condsim.loading.load_criterion",
    "load_judge": "condsim.model.judge.load_judge",
    "verdict": "condsim.model.judge.verdict",
}

__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return list(__all__)
