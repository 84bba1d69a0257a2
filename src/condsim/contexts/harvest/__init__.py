"""Collect scored pairs for the surrogate."""
