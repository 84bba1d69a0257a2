"""The parts of runs of similarity from contexts: what decides each, what it needs, where it lies.

A part is a folder of `condsim.contexts.Pipeline` that holds one step of its own: a corpus with its
vocabulary and index, a coherence model, generators, a harvest, a surrogate. Its name ends in a code
of all that decides it, so rows that need the same part share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from condsim.contexts import (
    COHERENCE,
    CORPUS,
    FORMAT,
    GENERATORS,
    HARVEST,
    INDEX,
    SPEED_KEYS,
    SURROGATE,
    VOCABULARY,
    ContextsRecipe,
    find_inputs,
)
from condsim.files import sha256_of
from experiments.naming import digest, slug

Part = Literal["corpus", "coherence", "generators", "origin", "harvest", "surrogate"]

MADE = "made.json"
"""Written last: a folder that has it is finished."""

_SECTIONS: Mapping[Part, tuple[str, ...]] = {
    "corpus": ("corpus", "vocabulary", "index"),
    "coherence": ("coherence",),
    "generators": ("generators",),
    "origin": ("selection", "scoring"),
    "harvest": ("scoring", "harvest"),
    "surrogate": ("surrogate",),
}
"""What of a recipe decides a part, beside the parts it needs."""

HOLDS: Mapping[Part, tuple[str, ...]] = {
    "corpus": (CORPUS, VOCABULARY, INDEX),
    "coherence": (COHERENCE,),
    "generators": (GENERATORS,),
    "origin": (),
    "harvest": (HARVEST,),
    "surrogate": (SURROGATE,),
}
"""The folders that are its own."""

_NO_MATTER: Mapping[tuple[Part, str], tuple[str, ...]] = {
    ("origin", "scoring"): (*SPEED_KEYS, "center"),  # centring is done on what the origin gives
    ("harvest", "scoring"): SPEED_KEYS,
}


def needed(part: Part, recipe: ContextsRecipe) -> tuple[Part, ...]:
    """The parts that must be there before one is made.

    Args:
        part: The part.
        recipe: A model that its weights do not use is not made.

    Returns:
        The parts, each after those it needs itself.
    """
    if part == "corpus":
        return ()
    if part in ("coherence", "generators"):
        return ("corpus",)
    used = recipe.scoring.weights.used
    models: list[Part] = ["coherence"] if "coherence" in used else []
    models += ["generators"] if set(used) - {"coherence"} else []
    more: Mapping[Part, tuple[Part, ...]] = {"surrogate": ("origin", "harvest")}
    own: tuple[Part, ...] = ("origin",) if part == "harvest" else more.get(part, ())
    return ("corpus", *models, *own)


def steps(part: Part, recipe: ContextsRecipe) -> tuple[Part, ...]:
    """A part with all that it needs, in the order they are made.

    Args:
        part: The part.
        recipe: The recipe.

    Returns:
        The parts, the one itself last.
    """
    return (*needed(part, recipe), part)


def part_folder(runs: Path, part: Part, recipe: ContextsRecipe) -> Path:
    """Names the folder of a part.

    Args:
        runs: The folder of all runs.
        part: The part.
        recipe: What it is made of; all its values count, the defaults too, and the content of the
            input files.

    Returns:
        Such as ``runs/openstax-generators-1a2b3c4d``.

    Raises:
        InputError: If an input file is missing.
    """
    return runs / f"{slug(recipe.name) or 'contexts'}-{part}-{_code(part, recipe)}"


def counts_of(part: Part, runs: Path, recipe: ContextsRecipe) -> dict[str, int] | None:
    """Reads what was counted when a part was made.

    Args:
        part: The part.
        runs: The folder of all runs.
        recipe: What it is made of.

    Returns:
        Of a corpus ``sentences``, ``words`` and ``tokens`` (of its own vocabulary), of a surrogate
        ``training_pairs``; None if it is not made.
    """
    marker = part_folder(runs, part, recipe) / MADE
    if not marker.is_file():
        return None
    counts: dict[str, int] = json.loads(marker.read_text(encoding="utf-8"))
    return counts


def _code(part: Part, recipe: ContextsRecipe) -> str:
    """A code of what decides a part: what it is made of and the codes of what it needs."""
    values: dict[str, Any] = {}
    for section in _SECTIONS[part]:
        own = getattr(recipe, section).model_dump()
        drop = _NO_MATTER.get((part, section), ())
        values[section] = {key: value for key, value in own.items() if key not in drop}
    values["needs"] = [_code(other, recipe) for other in needed(part, recipe)]
    if part == "generators" and recipe.generators.models == "three":
        values["tasks"] = list(recipe.generators.models_for(recipe.scoring.weights.used))
    if part == "harvest":
        values["format"] = FORMAT
    if part == "corpus":
        files = find_inputs([Path(path) for path in recipe.inputs])
        values["inputs"] = [_sha256(file, file.stat().st_mtime_ns) for file in files]
    return digest(values)


@lru_cache(maxsize=1024)
def _sha256(file: Path, changed: int) -> str:
    """The hash of a file, read again only if it changed."""
    return sha256_of(file)
