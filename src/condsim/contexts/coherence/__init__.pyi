from .model import CoherenceModel as CoherenceModel, CoherenceScorer as CoherenceScorer
from .training import (
    CoherenceReport as CoherenceReport,
    Passages as Passages,
    batch_of as batch_of,
    train_coherence as train_coherence,
)
