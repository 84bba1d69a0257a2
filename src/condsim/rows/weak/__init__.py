"""Training rows from labelling functions."""
