"""Training rows without annotators: from labelled tables, labelling functions and models."""
