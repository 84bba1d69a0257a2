"""What ``condsim build prefill`` does with a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from condsim.errors import InputError

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
    from condsim.prompting.asking import Asker, Budget
    from condsim.prompting.settings import load_settings
    from condsim.scorers.open_prompt import open_backend

    if Path(model).suffix not in (".yaml", ".yml"):
        raise InputError(
            "Conditions are proposed by a language model: give the YAML file that 'condsim prompt "
            f"--save' writes. Got {model!r}."
        )
    settings = load_settings(Path(model))
    settings = replace(settings, max_new_tokens=max(settings.max_new_tokens, PROPOSAL_TOKENS))
    backend = open_backend(settings)
    asker = Asker(
        backend, settings.answers, budget=Budget(settings.max_requests, settings.max_tokens)
    )
    shown = name or backend.name
    proposed, unread = propose_conditions(store, asker, model=shown)
    return (
        f"conditions: {proposed} pairs started by {shown}, {unread} answers that could not be read"
    )
