"""Models that score pairs: the base class, embedding models, cross-encoders and baselines."""

from condsim.model.applicability import ApplicabilityHead
from condsim.model.base import PairScorer
from condsim.model.baselines import baseline
from condsim.model.calibration import fit_calibration
from condsim.model.embedding import EmbeddingScorer
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER

__all__ = [
    "DEFAULT_FOLDER",
    "ApplicabilityHead",
    "EmbeddingScorer",
    "OnnxScorer",
    "PairScorer",
    "baseline",
    "fit_calibration",
]
