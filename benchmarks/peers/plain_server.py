"""The peer of ``serve``: sentence-transformers in a plain FastAPI app, one call a request.

Run it as ``python plain_server.py FOLDER ORDER``; it prints its address.
"""

from __future__ import annotations

import socket
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer


class Request(BaseModel):
    """The same request that condsim's ``/v1/score`` takes."""

    pairs: list[tuple[str, str]]
    conditions: list[str]


def main(folder: str, order: str) -> None:
    """Serves until it is killed; a plain ``def`` runs in FastAPI's own pool of threads."""
    torch.set_num_threads(1)  # requests run side by side; more threads each were slower
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    app = FastAPI()

    @app.post("/v1/score")
    def score(request: Request) -> dict[str, list[list[float]]]:
        rows = [(pair, one) for pair in request.pairs for one in request.conditions]
        texts = [[one, text] for pair, one in rows for text in pair]
        if order == "sentence-first":
            texts = [text[::-1] for text in texts]
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        found = (vectors[::2] * vectors[1::2]).sum(axis=1).reshape(len(request.pairs), -1)
        return {"scores": found.tolist()}

    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sys.stdout.write(f" at http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
