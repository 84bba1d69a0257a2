"""Training rows from labeling functions."""
