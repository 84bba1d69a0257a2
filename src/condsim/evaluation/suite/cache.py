"""Keeps what the suite has computed: scores by model and rows, bootstrap draws, drawn triplets.

Nothing here is told by name or date: a key is made of the version of the model, of the texts that
were scored and of the options, so a figure that is found is the figure that would be computed.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from condsim import __version__
from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.kept import digest
from condsim.tasks import Triplets, load_triplets, write_triplets
from condsim.types import Task

FORMAT = 1
"""Changes when the same model and rows are scored otherwise than before."""

_LOGGER = logging.getLogger("condsim")


def default_cache() -> Path:
    """Where the command line keeps figures.

    Returns:
        ``condsim/suite`` in the user's folder for caches (``XDG_CACHE_HOME``).
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "condsim" / "suite"


def rows_digest(task: Task, *, labels: bool = False) -> str:
    """Hashes the rows of a task."""
    content: dict[str, object] = {
        "sentences1": task.sentences1,
        "sentences2": task.sentences2,
        "conditions": task.conditions,
    }
    if labels:
        content["labels"] = hashlib.sha256(task.gold.tobytes()).hexdigest()
    return digest(content)


def kept_triplets(folder: Path | None, text: Path, *, draw: Callable[[], Triplets]) -> Triplets:
    """Draws triplets from running text, or reads those drawn before."""
    if folder is None:
        return draw()
    whole = sha256_of(text)
    key = digest({"format": FORMAT, "condsim": __version__, "triplets": whole})
    path = folder / f"triplets-{key}.tsv"
    if not path.is_file():
        drawn = draw()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_triplets(drawn, path)
        except (OSError, InputError) as error:
            _LOGGER.warning("%s: nothing can be kept there (%s)", folder, error)
            return drawn
    read = load_triplets(path, name=text.name.partition(".")[0])
    return replace(read, revision=whole[:12])
