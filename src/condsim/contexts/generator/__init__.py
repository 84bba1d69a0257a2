"""Generators of sentences from their contexts."""
