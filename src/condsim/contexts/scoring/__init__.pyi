from .equations import (
    TERMS as TERMS,
    Center as Center,
    ContextTerms as ContextTerms,
    PairTerms as PairTerms,
    ScoringSettings as ScoringSettings,
    Weights as Weights,
    context_scores as context_scores,
    similarity as similarity,
)
from .origin import OriginScorer as OriginScorer
from .selection import (
    ContextSelector as ContextSelector,
    Cost as Cost,
    Selection as Selection,
    chunk_rows as chunk_rows,
    cost_of as cost_of,
    diverse as diverse,
    expected_distinct as expected_distinct,
)
from .weighing import FittedWeights as FittedWeights, fit_weights as fit_weights
