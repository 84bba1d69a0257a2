"""Folder names of runs: readable, and the same for the same run of any experiment."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from condsim.errors import InputError
from condsim.paths import sha256_of
from condsim.training.recipe import PLACE_KEYS, Recipe
from condsim_llm.backend import PromptSettings

_CCL = {"w-acl", "bcl", "mse", "c-mse"}
# Settings that decide the scores of a prompted model, in addition to its data.
_PROMPT_KEYS = (
    "model",
    "backend",
    "instruction",
    "shots",
    "seed",
    "scoring",
    "parsing",
    "max_new_tokens",
)
# Keys in which rows of one table differ.
_SHOWN = ("inputs", "train_rows", "tau", "sigma")
_RECIPES = Path(__file__).resolve().parents[1] / "recipes"


def recipe_file(relative: str) -> Path:
    """Find a recipe of the repository, such as ``contexts/openstax.yaml``."""
    file = _RECIPES / relative
    if not file.is_file():
        raise InputError(f"There is no recipe {file}. Run experiments in a checkout of condsim.")
    return file


def digest(values: Mapping[str, Any]) -> str:
    """Hash values that JSON can hold, independent of their order, to 8 hexadecimal digits."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def slug(model: str) -> str:
    """Shorten the name of a model to lower-case letters, digits, points and hyphens.

    Example:
        >>> slug("google/flan-t5-XL")
        'flan-t5-xl'
    """
    return re.sub(r"[^a-z0-9.]+", "-", Path(model).name.lower()).strip("-.")


def canonical(recipe: Recipe) -> Recipe:
    """A recipe of the same run, its terms in the order of their names and none of weight 0."""
    terms = {term: weight for term, weight in sorted(recipe.objective.items()) if weight}
    return recipe.replaced(objective=terms)


def run_hash(recipe: Recipe, *, train_revision: str, dev_revision: str) -> str:
    """Hash what decides a run: its data, and the recipe's values that differ from the defaults.

    A new recipe key with a default therefore changes no hash.
    """
    values = canonical(recipe).model_dump()
    default = Recipe(name="", train="", dev="").model_dump()
    chosen = {
        key: value
        for key, value in values.items()
        if key not in PLACE_KEYS and value != default[key]
    }
    return digest({"recipe": chosen, "train": train_revision, "dev": dev_revision})


def run_folder(runs: Path, recipe: Recipe, *, train_revision: str, dev_revision: str) -> Path:
    """Name the folder of a run, such as ``runs/all-minilm-l6-v2-bi-mse-quad-s0-1a2b3c4d``."""
    terms = sorted(term for term, weight in recipe.objective.items() if weight)
    objective = "ccl" if set(terms) == _CCL else "-".join(terms)
    encoder = recipe.encoder.removesuffix("-encoder")
    default = Recipe(name="", train="", dev="")
    shown = "".join(
        f"-{key.replace('_', '-')}-{value}"
        for key in _SHOWN
        if (value := getattr(recipe, key)) != getattr(default, key)
    )
    code = run_hash(recipe, train_revision=train_revision, dev_revision=dev_revision)
    return runs / f"{slug(recipe.backbone)}-{encoder}-{objective}{shown}-s{recipe.seed}-{code}"


def deciding(settings: PromptSettings) -> dict[str, Any]:
    """The settings that decide the scores of a prompted model; where it is served is none."""
    return {key: getattr(settings, key) for key in _PROMPT_KEYS}


def prompt_folder(
    runs: Path,
    settings: PromptSettings,
    *,
    train_revision: str,
    dev_revision: str,
    rows: int | None = None,
) -> Path:
    """Name the folder of a prompted model: ``runs/flan-t5-small-short-4-shot-s0-1a2b3c4d``."""
    default = deciding(PromptSettings(model="-"))
    chosen = {key: value for key, value in deciding(settings).items() if value != default[key]}
    where = {"base_url": settings.base_url} if settings.base_url else {}
    model = {"weights": _weights(Path(settings.model))} if settings.backend == "local" else {}
    data: dict[str, Any] = {"train": train_revision, "dev": dev_revision}
    drawn = {"rows": rows} if rows else {}
    # Examples used to be drawn once for all queries.
    examples = {"examples": "of each query"} if settings.shots else {}
    code = digest({"prompt": chosen, **data, **drawn, **examples, **where, **model})
    shown = "" if settings.scoring == "text" else f"-{settings.scoring}"
    name = f"{slug(settings.model)}-{settings.instruction}-{settings.shots}-shot{shown}"
    return runs / f"{name}-s{settings.seed}-{code}"


def _weights(model: Path) -> str:
    """Hash the weights in a folder, which may be trained further; empty for a Hub name."""
    model = model.expanduser()
    patterns = ("*.safetensors", "*.gguf")
    found = (file for pattern in patterns for file in model.glob(pattern))
    files = [model] if model.is_file() else sorted(found)
    return digest({file.name: sha256_of(file) for file in files}) if files else ""
