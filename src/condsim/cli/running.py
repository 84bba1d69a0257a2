"""What the commands share."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from condsim.errors import InputError


def check_output(option: str, path: Path | None) -> None:
    """Refuses a file that could not be written.

    Args:
        option: The option that names it, such as ``--json``.
        path: The file; nothing is checked if None.

    Raises:
        InputError: If its folder does not exist or it is a folder.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise InputError(f"{option}: the folder {path.parent} does not exist; make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: {path} cannot be written; name another file.")
    if path.is_dir():
        raise InputError(f"{option}: {path} is a folder; give the name of a file to write.")


def tell_of_long_work() -> None:
    """Shows on stderr what scoring by contexts will cost, and how far it is."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("condsim.contexts").setLevel(logging.INFO)
