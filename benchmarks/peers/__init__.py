"""Peers of condsim: the same work done without it."""

from __future__ import annotations
