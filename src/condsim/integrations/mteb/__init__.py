"""condsim models in mteb, and C-STS as an mteb task."""
