"""The parts of runs of similarity from contexts: what decides each, what it needs, how it is made.

A part is a folder of `condsim_contexts.pipeline.Pipeline` that holds one step: a corpus
with its vocabulary and index, a coherence model, generators, a harvest, a surrogate. Its name ends
in a code of all that decides it, so rows that need the same part share it. The steps before its own
are links to their own parts, so the folder ``origin`` of a row, all links, is a model for
``condsim evaluate --model`` like any other run.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

from condsim.cache import locked
from condsim.console import Progress, silent
from condsim.errors import InputError
from condsim.io import write_text
from condsim.paths import sha256_of
from condsim.training.folder import HISTORY
from condsim_contexts.coherence import CoherenceScorer
from condsim_contexts.harvest import HARVEST_FORMAT
from condsim_contexts.pipeline import Pipeline, Stage
from condsim_contexts.recipe import (
    COHERENCE,
    CORPUS,
    GENERATORS,
    HARVEST,
    INDEX,
    RECIPE,
    SPEED_KEYS,
    SURROGATE,
    VOCABULARY,
    ContextsRecipe,
    save_contexts_recipe,
)
from condsim_contexts.sentences import find_inputs
from condsim_contexts.tokens import CorpusTokens
from papers.naming import digest, slug

Part = Literal["corpus", "coherence", "generators", "origin", "harvest", "surrogate"]

MADE = "made.json"
"""Written last: a folder that has it is finished."""

_LOGGER = logging.getLogger("condsim")
# Keys of the recipe that a part depends on, in addition to the parts it needs.
_SECTIONS: Mapping[Part, tuple[str, ...]] = {
    "corpus": ("corpus", "vocabulary", "index"),
    "coherence": ("coherence",),
    "generators": ("generators",),
    "origin": ("selection", "scoring"),
    "harvest": ("scoring", "harvest"),
    "surrogate": ("surrogate",),
}
# Its own folders.
_HOLDS: Mapping[Part, tuple[str, ...]] = {
    "corpus": (CORPUS, VOCABULARY, INDEX),
    "coherence": (COHERENCE,),
    "generators": (GENERATORS,),
    "origin": (),
    "harvest": (HARVEST,),
    "surrogate": (SURROGATE,),
}
_NO_MATTER: Mapping[tuple[Part, str], tuple[str, ...]] = {
    # Centering is done on the terms of the origin.
    ("origin", "scoring"): (*SPEED_KEYS, "center"),
    ("harvest", "scoring"): SPEED_KEYS,
}


def part_folder(runs: Path, part: Part, recipe: ContextsRecipe) -> Path:
    """Name the folder of a part, such as ``runs/openstax-generators-1a2b3c4d``.

    All values of the recipe count, the defaults too, and the content of the input files.
    """
    return runs / f"{slug(recipe.name) or 'contexts'}-{part}-{_code(part, recipe)}"


def counts_of(part: Part, runs: Path, recipe: ContextsRecipe) -> dict[str, int]:
    """Counts of a part that is finished; empty if it is not."""
    marker = part_folder(runs, part, recipe) / MADE
    if not marker.is_file():
        return {}
    counts: dict[str, int] = json.loads(marker.read_text(encoding="utf-8"))
    return counts


def _needed(part: Part, recipe: ContextsRecipe) -> tuple[Part, ...]:
    """The parts that must be there first; a model that no weight uses is not made."""
    if part == "corpus":
        return ()
    if part in ("coherence", "generators"):
        return ("corpus",)
    used = recipe.scoring.weights.used
    models: list[Part] = ["coherence"] if "coherence" in used else []
    models += ["generators"] if set(used) - {"coherence"} else []
    before: Mapping[Part, tuple[Part, ...]] = {
        "harvest": ("origin",),
        "surrogate": ("origin", "harvest"),
    }
    return ("corpus", *models, *before.get(part, ()))


def _code(part: Part, recipe: ContextsRecipe) -> str:
    """A code of what decides a part: what it is made of and the codes of what it needs."""
    values: dict[str, Any] = {}
    for section in _SECTIONS[part]:
        own = getattr(recipe, section).model_dump()
        drop = _NO_MATTER.get((part, section), ())
        values[section] = {key: value for key, value in own.items() if key not in drop}
    values["needs"] = [_code(other, recipe) for other in _needed(part, recipe)]
    if part == "generators" and recipe.generators.models == "three":
        values["tasks"] = list(recipe.generators.models_for(recipe.scoring.weights.used))
    if part == "harvest":
        values["format"] = HARVEST_FORMAT
    if part == "corpus":
        files = find_inputs([Path(path) for path in recipe.inputs])
        values["inputs"] = [_sha256(file, file.stat().st_mtime_ns) for file in files]
    return digest(values)


@lru_cache(maxsize=1024)
def _sha256(file: Path, changed: int) -> str:
    """The hash of a file, read again only if it changed."""
    return sha256_of(file)


class PartMaker:
    """Make parts, each once, even if several rows and processes need it."""

    def __init__(self, runs: Path, *, progress: Progress = silent) -> None:
        self._runs = runs
        self._progress = progress

    def make(self, part: Part, recipe: ContextsRecipe) -> None:
        """Make a part with all it needs, or go on with it."""
        for step in (*_needed(part, recipe), part):
            self._make_one(step, recipe)

    def own(self, folder: Path) -> AbstractContextManager[bool]:
        """Keep other processes from work in a folder; the lock file is next to it."""
        return locked(folder.with_name(f"{folder.name}.making.lock"))

    def _make_one(self, part: Part, recipe: ContextsRecipe) -> None:
        folder = part_folder(self._runs, part, recipe)
        if (folder / MADE).is_file():
            return
        with self.own(folder):
            if (folder / MADE).is_file():
                return
            folder.mkdir(parents=True, exist_ok=True)
            save_contexts_recipe(recipe, folder / RECIPE)
            for other in _needed(part, recipe):
                for name in _HOLDS[other]:
                    _link(folder / name, part_folder(self._runs, other, recipe) / name)
            until: Stage = "index" if part == "corpus" else part
            made = Pipeline(folder, recipe, until=until, progress=self._progress)
            with made.locked():
                counts = _MAKERS[part](made, self._progress)
            write_text(folder / MADE, json.dumps(counts))


def _corpus(made: Pipeline, progress: Progress) -> dict[str, int]:
    counts, chunks = made.corpus.counts, len(made.index)
    tokens = CorpusTokens.build(made.corpus, made.vocabulary)
    found = int(tokens.lengths.sum())
    _LOGGER.info("%s; %s tokens, %s chunks", counts.summary(), f"{found:,}", f"{chunks:,}")
    return {"sentences": counts.sentences, "words": counts.words, "tokens": found}


def _coherence(made: Pipeline, progress: Progress) -> dict[str, int]:
    report = made.coherence
    if report is not None:
        _LOGGER.info("%s", report.summary())
        # The first access computes the vectors.
        _ = CoherenceScorer(
            made.folder / COHERENCE, made.corpus, progress=partial(progress, "sentence vectors")
        )
    return {}


def _generators(made: Pipeline, progress: Progress) -> dict[str, int]:
    report = made.generators
    if report is not None:
        _LOGGER.info("%s", report.summary())
    return {}


def _harvest(made: Pipeline, progress: Progress) -> dict[str, int]:
    if (cost := made.harvest_cost()) is not None:
        _LOGGER.info("harvest, to be done: %s", cost)
    _LOGGER.info("%s", made.harvest().summary())
    return {}


def _surrogate(made: Pipeline, progress: Progress) -> dict[str, int]:
    finished = made.surrogate(made.harvest())
    if finished is None:
        raise InputError("Train surrogates in one process, without accelerate launch.")
    spearman = finished.report.model.metrics["spearman"].value
    rows = finished.report.valid_rows
    _LOGGER.info("surrogate: Spearman %.1f with the origin on %d dev pairs", spearman, rows)
    record = json.loads((made.folder / SURROGATE / HISTORY).read_text(encoding="utf-8"))
    return {"training_pairs": int(record["train"]["rows"])}


_MAKERS: Mapping[Part, Callable[[Pipeline, Progress], dict[str, int]]] = {
    "corpus": _corpus,
    "coherence": _coherence,
    "generators": _generators,
    "origin": lambda made, progress: {},
    "harvest": _harvest,
    "surrogate": _surrogate,
}


def _link(link: Path, target: Path) -> None:
    """Link to a neighboring folder, so that both may be moved together."""
    if link.is_dir():
        return
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    except OSError as error:
        raise InputError(f"Cannot link {link} to {target}: {error.strerror or error}.") from error
