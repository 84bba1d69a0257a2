"""The stages of a run: their order, their folders, and what a recipe may change when."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from condsim.contexts.harvest import MANIFEST as HARVEST_MANIFEST, Harvest
from condsim.contexts.recipe import ContextsRecipe
from condsim.errors import InputError
from condsim.scorers import CONTEXTS_FILE

Stage = Literal["corpus", "index", "coherence", "generators", "origin", "harvest", "surrogate"]
STAGES: tuple[Stage, ...] = get_args(Stage)

RECIPE = CONTEXTS_FILE
CORPUS = "corpus"
VOCABULARY = "vocabulary"
INDEX = "index"
COHERENCE = "coherence"
GENERATORS = "generators"
HARVEST = "harvest"
SURROGATE = "surrogate"
SCORED = "scored"

Progress = Callable[[str, int, int], None]
"""Called with the stage, what is done and what there is; 0 for what there is where none knows."""

_BEGUN = {
    "inputs": f"{CORPUS}/manifest.json",
    "corpus": f"{CORPUS}/manifest.json",
    "vocabulary": f"{VOCABULARY}/settings.json",
    "index": f"{INDEX}/manifest.json",
    "coherence": f"{COHERENCE}/settings.json",
    "generators": f"{GENERATORS}/settings.json",
}
"""The file that says a section of the recipe has been used, so it may not change any more."""


def silent(stage: str, done: int, total: int) -> None:
    """Tells nobody how far a stage is."""


SPEED_KEYS = ("batch_size", "memory_gb")
"""Keys of the section ``scoring`` that decide memory and speed, not the scores."""


def scored_by(recipe: ContextsRecipe) -> Mapping[str, Any]:
    """All of a recipe that decides an origin score, apart from the corpus."""
    plain = dataclasses.asdict(recipe)
    for key in SPEED_KEYS:
        plain["scoring"].pop(key)
    sections = ("vocabulary", "index", "coherence", "generators", "selection", "scoring")
    return {section: plain[section] for section in sections}


def check_unchanged(
    folder: Path, kept: ContextsRecipe, wanted: ContextsRecipe, *, until: Stage
) -> None:
    """Refuses a recipe that differs in what was already made by it."""
    before, now = dataclasses.asdict(kept), dataclasses.asdict(wanted)
    changed = [
        section
        for section, file in _BEGUN.items()
        if before[section] != now[section] and (folder / file).exists()
    ]
    if STAGES.index(until) >= STAGES.index("harvest"):
        if (folder / HARVEST / HARVEST_MANIFEST).exists():
            made = Harvest.open(folder / HARVEST)
            harvested = made.changes(wanted.harvest, scored_by(wanted))
            changed += [section for section in harvested if section not in changed]
        surrogate = (folder / SURROGATE / "recipe.yaml").exists()
        if surrogate and kept.surrogate != wanted.surrogate:
            changed.append("surrogate")
    if changed:
        raise InputError(
            f"{folder} holds a run of another recipe: {', '.join(map(repr, changed))} changed. "
            "Give another folder, or that recipe."
        )
