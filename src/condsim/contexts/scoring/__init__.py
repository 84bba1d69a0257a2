"""Score pairs by the contexts that generate them."""
