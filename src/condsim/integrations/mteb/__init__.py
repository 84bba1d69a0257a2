"""condsim models in mteb, and C-STS as an mteb task."""

from condsim.errors import requires_extra

with requires_extra("mteb"):
    import mteb as _mteb  # noqa: F401
