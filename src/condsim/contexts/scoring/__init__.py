"""The origin score: selection, Eq. 3 and Eq. 4 (SSBC §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.scoring.cost import (
        Cost as Cost,
        cost_of as cost_of,
        expected_distinct as expected_distinct,
    )
    from condsim.contexts.scoring.equations import (
        TERMS as TERMS,
        Center as Center,
        PairTerms as PairTerms,
        Weights as Weights,
        context_scores as context_scores,
        similarity as similarity,
    )
    from condsim.contexts.scoring.origin import TOKENS as TOKENS, OriginScorer as OriginScorer
    from condsim.contexts.scoring.selection import (
        ContextSelector as ContextSelector,
        Selection as Selection,
        chunk_rows as chunk_rows,
        diverse as diverse,
    )
    from condsim.contexts.scoring.terms import ContextTerms as ContextTerms

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "cost": "Cost cost_of expected_distinct",
        "equations": "Center PairTerms TERMS Weights context_scores similarity",
        "origin": "OriginScorer TOKENS",
        "selection": "ContextSelector Selection chunk_rows diverse",
        "terms": "ContextTerms",
    },
    extra="contexts",
)
