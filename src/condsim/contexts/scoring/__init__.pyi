from .cost import Cost as Cost, cost_of as cost_of, expected_distinct as expected_distinct
from .equations import (
    TERMS as TERMS,
    Center as Center,
    PairTerms as PairTerms,
    Weights as Weights,
    context_scores as context_scores,
    similarity as similarity,
)
from .origin import TOKENS as TOKENS, OriginScorer as OriginScorer
from .selection import (
    ContextSelector as ContextSelector,
    Selection as Selection,
    chunk_rows as chunk_rows,
    diverse as diverse,
)
from .terms import ContextTerms as ContextTerms
