"""The larger judge of condsim; ``condsim.load_judge("large")`` opens the folder ``model``."""
