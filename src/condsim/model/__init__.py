"""Models that score pairs: the base class, embedding models, cross-encoders and baselines.

`OnnxScorer` is imported when it is used: ONNX Runtime is slow to import.
"""

from typing import TYPE_CHECKING

from condsim.errors import lazy_names
from condsim.model.applicability import ApplicabilityHead
from condsim.model.base import PairScorer
from condsim.model.baselines import baseline
from condsim.model.calibration import fit_calibration
from condsim.model.embedding import EmbeddingScorer
from condsim.model.settings import DEFAULT_FOLDER

if TYPE_CHECKING:
    from condsim.model.onnx import OnnxScorer

__all__ = [
    "DEFAULT_FOLDER",
    "ApplicabilityHead",
    "EmbeddingScorer",
    "OnnxScorer",
    "PairScorer",
    "baseline",
    "fit_calibration",
]

__getattr__ = lazy_names(__name__, {"OnnxScorer": "condsim.model.onnx.OnnxScorer"})
