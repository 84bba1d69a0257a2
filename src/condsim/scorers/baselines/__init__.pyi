from .pretrained import (
    BertScoreScorer as BertScoreScorer,
    GloveScorer as GloveScorer,
    read_vectors as read_vectors,
)
from .simple import (
    BASELINES as BASELINES,
    UNFITTED_BASELINES as UNFITTED_BASELINES,
    ConditionOnlyScorer as ConditionOnlyScorer,
    FittedBaseline as FittedBaseline,
    SentencesOnlyScorer as SentencesOnlyScorer,
    WordOverlapScorer as WordOverlapScorer,
    baseline as baseline,
    out_of_fold as out_of_fold,
    tokens_of as tokens_of,
)
from .tfidf import TfIdfCosineScorer as TfIdfCosineScorer, TfIdfRidge as TfIdfRidge
