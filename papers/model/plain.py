"""Plain vectors of texts, kept on disk: encoded once, whatever asks for them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer

from papers.model.encoder import Encoder, EncoderConfig, load_weights

TOKENS_PER_BATCH = 4096
LONGEST_TEXT_TOKENS = 128


def load_encoder(folder: Path) -> tuple[Encoder, Tokenizer]:
    """Load a checkpoint folder of transformers and its tokenizer, which pads and cuts nothing."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    encoder = Encoder(EncoderConfig.from_transformers(config))
    load_weights(encoder, load_file(folder / "model.safetensors"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return encoder.eval(), tokenizer


def embed_ids(
    encoder: Encoder, rows: Sequence[tuple[Sequence[int], Sequence[int]]], *, device: str = "cpu"
) -> NDArray[np.float32]:
    """Embed (token ids, second-text marks) of each row in batches of similar length."""
    padding = encoder.config.ids[2]
    vectors = np.zeros((len(rows), encoder.config.hidden), np.float32)
    order = sorted(range(len(rows)), key=lambda row: len(rows[row][0]))
    while order:
        longest = len(rows[order[-1]][0])
        size = max(1, TOKENS_PER_BATCH // longest)
        chunk, order = order[-size:], order[:-size]
        ids = torch.full((len(chunk), longest), padding)
        second = torch.zeros((len(chunk), longest), dtype=torch.long)
        mask = torch.zeros((len(chunk), longest), dtype=torch.bool)
        for place, row in enumerate(chunk):
            length = len(rows[row][0])
            ids[place, :length] = torch.as_tensor(rows[row][0])
            second[place, :length] = torch.as_tensor(rows[row][1])
            mask[place, :length] = True
        with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
            embedded = encoder(ids.to(device), mask.to(device), second.to(device))
        vectors[chunk] = embedded.float().cpu().numpy()
    return vectors


class PlainVectors:
    """Vectors of texts without a condition; new ones are encoded and added to a file."""

    def __init__(self, folder: Path, cache: Path) -> None:
        """Take the checkpoint folder and the path of the cache without its suffix."""
        self._folder, self._cache = folder, cache
        self._places: dict[str, int] = {}
        self._vectors: NDArray[np.float16] | None = None
        if cache.with_suffix(".npz").is_file():
            stored = np.load(cache.with_suffix(".npz"))
            self._vectors = stored["vectors"]
            self._places = {str(key): place for place, key in enumerate(stored["keys"])}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of the texts, ``(texts, hidden)``."""
        keys = [hashlib.sha256(text.encode()).hexdigest()[:20] for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._places}
        if new:
            self._add(new)
        assert self._vectors is not None
        return self._vectors[[self._places[key] for key in keys]].astype(np.float32)

    def of_inputs(self, inputs: Sequence[tuple[str | None, str]]) -> NDArray[np.float32]:
        """Unit vectors of the texts of inputs, whatever their conditions."""
        return self([text for _, text in inputs])

    def _add(self, new: dict[str, str]) -> None:
        encoder, tokenizer = load_encoder(self._folder)
        tokenizer.enable_truncation(LONGEST_TEXT_TOKENS)
        encodings = tokenizer.encode_batch(list(new.values()))
        rows = [(encoding.ids, encoding.type_ids) for encoding in encodings]
        vectors = embed_ids(encoder, rows).astype(np.float16)
        for key in new:
            self._places[key] = len(self._places)
        former = self._vectors
        self._vectors = vectors if former is None else np.concatenate([former, vectors])
        partial = self._cache.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, keys=np.array(list(self._places)), vectors=self._vectors)
        partial.replace(self._cache.with_suffix(".npz"))
