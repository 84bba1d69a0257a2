"""Evaluate several models on several sets."""
