"""What ``condsim build prefill`` does with a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from condsim.construction.annotation.store import Store

__all__ = ["propose", "rate"]


def rate(store: Store, model: str, name: str | None) -> str:
    """Rates the verification stage.

    Args:
        store: The store.
        model: As `condsim.scorers.load.load_scorer` takes it.
        name: Name of the model in the rows; its own if None.

    Returns:
        What was done, one line.
    """
    from condsim.construction.annotation.prefill import rate_rows
    from condsim.scorers.load import load_scorer

    scorer = load_scorer(model)
    shown = name or scorer.name
    return f"verification: {rate_rows(store, scorer, model=shown)} rows rated by {shown}"


def propose(store: Store, model: str, name: str | None) -> str:
    """Proposes conditions.

    Args:
        store: The store.
        model: YAML file of a prompted model.
        name: Name of the model in the rows; its own if None.

    Returns:
        What was done, one line.

    Raises:
        InputError: If the model is no YAML file.
    """
    from condsim.construction.annotation.prefill import PROPOSAL_TOKENS, propose_conditions
    from condsim.scorers.open_prompt import open_asker

    asker, found = open_asker(Path(model), new_tokens=PROPOSAL_TOKENS)
    shown = name or found
    proposed, unread = propose_conditions(store, asker, model=shown)
    return (
        f"conditions: {proposed} pairs started by {shown}, {unread} answers that could not be read"
    )
