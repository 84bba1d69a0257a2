"""The coherence model: does a sentence fit its context? (SSBC §3.2.1, Eq. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.coherence.model import CoherenceModel as CoherenceModel
    from condsim.contexts.coherence.scorer import CoherenceScorer as CoherenceScorer
    from condsim.contexts.coherence.settings import CoherenceSettings as CoherenceSettings
    from condsim.contexts.coherence.training import (
        CoherenceReport as CoherenceReport,
        Passages as Passages,
        batch_of as batch_of,
        train_coherence as train_coherence,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "model": "CoherenceModel",
        "scorer": "CoherenceScorer",
        "settings": "CoherenceSettings",
        "training": "CoherenceReport Passages batch_of train_coherence",
    },
    extra="contexts",
)
