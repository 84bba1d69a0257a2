"""Training rows without annotators: from tables with labeled criteria, and from models."""
