"""What answers prompts: a model on this machine, or one behind a server."""
