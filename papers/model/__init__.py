"""The default model: rows, a larger model, and a small one taught by it."""
