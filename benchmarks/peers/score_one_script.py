"""Scores one pair as a user of sentence-transformers would: ``script MODEL s1 s2 condition``."""

from __future__ import annotations

import sys

from sentence_transformers import SentenceTransformer

if __name__ == "__main__":
    folder, sentence1, sentence2, condition = sys.argv[1:]
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    embeddings = model.encode([[condition, sentence1], [condition, sentence2]])  # (2, dim)
    print(f"{model.similarity(embeddings[0], embeddings[1]).item():.3f}")
