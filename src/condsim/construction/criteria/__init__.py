"""Conditional rows from any labelled table: each labelled attribute becomes a condition.

Two texts are alike under the condition "the topic" if their labels of the topic are the same.
`docs/criteria.md` says how rows are drawn and balanced.
"""

from condsim.lazy import face

__getattr__, __dir__, __all__ = face(__name__, extra="build")
