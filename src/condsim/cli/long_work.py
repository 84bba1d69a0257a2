"""What a slow scorer has to say while it works: an origin model (SSBC) may take hours."""

from __future__ import annotations

import logging

__all__ = ["tell_of_long_work"]


def tell_of_long_work() -> None:
    """Shows on stderr what scoring by contexts will cost, and how far it is."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("condsim.contexts").setLevel(logging.INFO)
