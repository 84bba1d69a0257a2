"""The registry with every labelling function that ships."""

from __future__ import annotations

from condsim.construction.weak import people, places, things
from condsim.construction.weak.registry import REGISTRY as REGISTRY

BUILT_IN = (people, places, things)  # importing them registered their functions
