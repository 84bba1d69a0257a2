"""The peer of ``serve``: sentence-transformers in a plain FastAPI app, one call a request.

Run it as ``python plain_server.py FOLDER ORDER``; it prints its address.
"""

from __future__ import annotations

import socket
import sys
from typing import cast

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

from condsim.model.inputs import Order, conditional_sentences


class Request(BaseModel):
    """The same request that condsim's ``/v1/score`` takes."""

    pairs: list[tuple[str, str]]
    conditions: list[str]


def main(folder: str, order: Order) -> None:
    """Serve until it is killed; a plain ``def`` runs in FastAPI's own pool of threads."""
    # Requests run side by side; more threads each were slower.
    torch.set_num_threads(1)
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    app = FastAPI()

    @app.post("/v1/score")
    def score(request: Request) -> dict[str, list[list[float]]]:
        rows = [(pair, one) for pair in request.pairs for one in request.conditions]
        texts = conditional_sentences(
            [text for pair, _ in rows for text in pair],
            [one for _, one in rows for _ in range(2)],
            order=order,
        )
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        found = (vectors[::2] * vectors[1::2]).sum(axis=1).reshape(len(request.pairs), -1)
        return {"scores": found.tolist()}

    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sys.stdout.write(f" at http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1], cast(Order, sys.argv[2]))
