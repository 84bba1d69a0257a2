"""Coherence model."""
