"""Training rows from tables with labelled criteria."""
