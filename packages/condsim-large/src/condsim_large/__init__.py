"""The larger model of condsim; ``condsim.load("large")`` opens the folder ``model``."""
