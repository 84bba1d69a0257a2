"""Store documents as sentences and paragraphs."""
