"""Training rows without annotators: from labeled tables, labeling functions and models."""
