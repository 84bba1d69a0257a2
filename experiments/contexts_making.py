"""Makes the parts of runs of similarity from contexts, each once, whichever rows need it.

In the folder of a part, the steps before its own are links to their own parts. So the folder
``origin`` of a row, all links, is a model for ``condsim evaluate --model`` like any other run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from condsim.contexts import (
    COHERENCE,
    RECIPE,
    SURROGATE,
    CoherenceScorer,
    ContextsRecipe,
    CorpusTokens,
    Pipeline,
    Stage,
    save_contexts_recipe,
)
from condsim.errors import InputError, require
from condsim.files import replacing
from condsim.progress import Progress, silent
from condsim.training import HISTORY
from experiments.contexts_parts import HOLDS, MADE, Part, needed, part_folder, steps

Tell = Callable[[str], None]
"""Told what there is to say: the cost of a harvest, and how good a model is."""


class BusyError(Exception):
    """Another process makes a part."""


class PartMaker:
    """Makes parts, or finds them."""

    def __init__(self, runs: Path, *, progress: Progress = silent) -> None:
        """Takes the folder.

        Args:
            runs: The folder of all runs.
            progress: Told how far each step is.
        """
        self._runs = runs
        self._progress = progress

    def make(
        self,
        part: Part,
        recipe: ContextsRecipe,
        *,
        wait: bool,
        tell: Tell,
    ) -> Path:
        """Makes a part with all it needs, or goes on with it.

        Args:
            part: The part.
            recipe: The recipe.
            wait: Whether to wait for another process that makes it.
            tell: Told what there is to say: the cost of a harvest, and how good a model is.

        Returns:
            Its folder.

        Raises:
            BusyError: If another process makes it, or one of those it needs, and ``wait`` is off.
            InputError: If the recipe or its inputs break a rule.
            ModelError: If a training diverged.
        """
        folder = part_folder(self._runs, part, recipe)
        for step in steps(part, recipe):
            self._make_one(step, recipe, wait=wait, tell=tell)
        return folder

    @contextmanager
    def own(self, folder: Path, *, wait: bool) -> Iterator[None]:
        """Keeps other processes from work in a folder; the lock dies with its process.

        Args:
            folder: The folder; the lock file lies beside it.
            wait: Whether to wait for another process.

        Yields:
            None, while the folder is this process's own.

        Raises:
            BusyError: If another process is at work in it and ``wait`` is off.
        """
        filelock = require("filelock", extra="contexts")
        folder.parent.mkdir(parents=True, exist_ok=True)
        path = folder.with_name(f"{folder.name}.making.lock")
        lock = filelock.FileLock(path, timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise BusyError(str(folder)) from error
        try:
            yield
        finally:
            lock.release()

    def _make_one(self, part: Part, recipe: ContextsRecipe, *, wait: bool, tell: Tell) -> None:
        folder = part_folder(self._runs, part, recipe)
        if (folder / MADE).is_file():
            return
        with self.own(folder, wait=wait):
            if (folder / MADE).is_file():
                return
            folder.mkdir(parents=True, exist_ok=True)
            save_contexts_recipe(recipe, folder / RECIPE)
            for other in needed(part, recipe):
                for name in HOLDS[other]:
                    _link(folder / name, part_folder(self._runs, other, recipe) / name)
            until: Stage = "index" if part == "corpus" else part
            made = Pipeline(folder, recipe, until=until, progress=self._progress)
            with made.begun():
                counts = _MAKERS[part](made, tell, self._progress)
            with replacing(folder / MADE) as written:
                written.write_text(json.dumps(counts), encoding="utf-8")


def _corpus(made: Pipeline, tell: Tell, progress: Progress) -> dict[str, int]:
    counts, chunks = made.corpus.counts, len(made.index)
    tokens = CorpusTokens.build(made.corpus, made.vocabulary)  # where trainings look for them
    found = int(tokens.lengths.sum())
    tell(f"{counts.summary()}; {found:,} tokens, {chunks:,} chunks")
    return {"sentences": counts.sentences, "words": counts.words, "tokens": found}


def _coherence(made: Pipeline, tell: Tell, progress: Progress) -> dict[str, int]:
    report = made.coherence
    if report is not None:
        tell(report.summary())
        _ = CoherenceScorer.open(  # computes the vectors
            made.folder / COHERENCE, made.corpus, progress=partial(progress, "sentence vectors")
        )
    return {}


def _generators(made: Pipeline, tell: Tell, progress: Progress) -> dict[str, int]:
    report = made.generators
    if report is not None:
        tell(report.summary())
    return {}


def _harvest(made: Pipeline, tell: Tell, progress: Progress) -> dict[str, int]:
    if (cost := made.harvest_cost()) is not None:
        tell(f"harvest, to be done: {cost}")
    tell(made.harvest().summary())
    return {}


def _surrogate(made: Pipeline, tell: Tell, progress: Progress) -> dict[str, int]:
    finished = made.surrogate(made.harvest())
    if finished is None:
        raise InputError("Train surrogates in one process, without accelerate launch.")
    spearman = finished.report.model.metrics["spearman"].value
    rows = finished.report.valid_rows
    tell(f"surrogate: Spearman {spearman:.1f} with the origin on {rows} dev pairs")
    return {"training_pairs": _training_pairs(made.folder)}


def _training_pairs(folder: Path) -> int:
    """How many pairs a surrogate was trained on, from the record of its run."""
    record = json.loads((folder / SURROGATE / HISTORY).read_text(encoding="utf-8"))
    return int(record["train"]["rows"])


_MAKERS: Mapping[Part, Callable[[Pipeline, Tell, Progress], dict[str, int]]] = {
    "corpus": _corpus,
    "coherence": _coherence,
    "generators": _generators,
    "origin": lambda made, tell, progress: {},
    "harvest": _harvest,
    "surrogate": _surrogate,
}


def _link(link: Path, target: Path) -> None:
    """Links to a folder beside, so that both may be moved together."""
    if link.is_dir():
        return
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    except OSError as error:
        raise InputError(f"Cannot link {link} to {target}: {error.strerror or error}.") from error
