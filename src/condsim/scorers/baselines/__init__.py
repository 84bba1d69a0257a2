"""Baselines that need no trained encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.scorers.baselines.bertscore import BertScoreScorer as BertScoreScorer
    from condsim.scorers.baselines.glove import (
        GloveScorer as GloveScorer,
        read_vectors as read_vectors,
    )
    from condsim.scorers.baselines.simple import (
        BASELINES as BASELINES,
        UNFITTED_BASELINES as UNFITTED_BASELINES,
        ConditionOnlyScorer as ConditionOnlyScorer,
        FittedBaseline as FittedBaseline,
        SentencesOnlyScorer as SentencesOnlyScorer,
        WordOverlapScorer as WordOverlapScorer,
        baseline as baseline,
        out_of_fold as out_of_fold,
    )
    from condsim.scorers.baselines.tfidf import (
        TfIdfCosineScorer as TfIdfCosineScorer,
        TfIdfRidge as TfIdfRidge,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "bertscore": "BertScoreScorer",
        "glove": "GloveScorer read_vectors",
        "simple": (
            "BASELINES ConditionOnlyScorer FittedBaseline SentencesOnlyScorer UNFITTED_BASELINES "
            "WordOverlapScorer baseline out_of_fold"
        ),
        "tfidf": "TfIdfCosineScorer TfIdfRidge",
    },
    extra="train",
)
