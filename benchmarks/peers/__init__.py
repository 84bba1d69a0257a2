"""What condsim is measured against: how the same work is done without it."""

from __future__ import annotations
