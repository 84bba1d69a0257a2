"""TF-IDF index over sentences."""
