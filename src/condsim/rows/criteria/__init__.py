"""Training rows from tables with labeled criteria."""
