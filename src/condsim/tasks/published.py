"""Row counts as published, and the warning where a file has another number."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["compare_count", "compare_split"]

_LOGGER = logging.getLogger("condsim")


def compare_count(what: str, *, found: int, published: int) -> None:
    """Warns where a data set has another number of rows than published (logger ``condsim``).

    Args:
        what: The data, as the warning names it.
        found: Rows it has; where some have no label, those that have one.
        published: Rows it should have.
    """
    if found != published:
        _LOGGER.warning(
            "%s: has %d rows, and %d are published; figures on it are not comparable with "
            "published ones",
            what,
            found,
            published,
        )


def compare_split(path: Path, *, found: int, published: Mapping[str, int]) -> None:
    """Same as `compare_count`, for the split that the name of a file tells.

    Args:
        path: The file; nothing is compared if none or several of the splits are words of its name.
        found: Rows it has.
        published: Rows of each split by its name, in lower case.
    """
    words = re.findall("[a-z]+", path.name.lower())
    named = [split for split in published if split in words]
    if len(named) == 1:
        compare_count(str(path), found=found, published=published[named[0]])
