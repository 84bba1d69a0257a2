"""The surrogate: an encoder that learns the origin's scores and is then used alone (SSBC §3.4)."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from condsim.config import validated
from condsim.contexts.corpus.vocabulary import CorpusTokens, Vocabulary
from condsim.contexts.harvest.stored import SPLITS, Harvest
from condsim.contexts.recipe import SurrogateSettings
from condsim.errors import InputError
from condsim.io import replacing
from condsim.model.backbone import without_progress_bars
from condsim.training.recipe import Recipe
from condsim.types import FloatArray

MAX_TOKENS = 128

_REACH = 8  # places to each side
_SMOOTHING = 0.75
_BLOCK = 50_000  # sentences counted at once
_MOST = 1_000_000  # sentences counted, about, if there are more: they would change little
_ROUNDING = 1e-9  # singular values below this share of the first count as 0
_LEAST_JUDGED = 3  # pairs that a dev file needs for a correlation
_TAILS = (0.01, 0.99)  # quantiles of the harvested scores that become 0 and 1
_LENGTH = 5.0  # of a token vector on average, in lengths of those of places, which are added to it
_OWN_KEYS = ("name", "train", "dev", "encoder", "backbone")
_SCHEMA = pa.schema({"sentence1": pa.string(), "sentence2": pa.string(), "score": pa.float32()})


def token_vectors(tokens: CorpusTokens, *, entries: int, size: int) -> FloatArray:
    """Computes a vector for each entry of a vocabulary: tokens of similar company are similar.

    Args:
        tokens: The corpus; of a large one about a million sentences are read, spread over it.

    Returns:
        The vectors, ``(entries, size)``, of mean length 1 among those that are not 0; tokens that
        say nothing of others have 0, as do columns beyond the rank of the counts.
    """
    information = _information(_counts(tokens, entries))
    most = min(size, entries)
    left, values, _ = randomized_svd(information, most, n_iter=4, random_state=0)
    values[values < _ROUNDING * values[0]] = 0
    known = np.diff(information.indptr) > 0
    vectors = np.zeros((entries, size))
    vectors[known, :most] = left[known] * np.sqrt(values)
    if known.any():
        vectors /= np.linalg.norm(vectors[known], axis=1).mean()
    return vectors.astype(np.float32)


def _counts(tokens: CorpusTokens, entries: int) -> sparse.csr_matrix:
    """How often two tokens are near each other, sparse ``(entries, entries)``."""
    starts = np.arange(0, len(tokens), _BLOCK)
    read = np.linspace(0, len(starts) - 1, min(len(starts), max(1, _MOST // _BLOCK)))
    counts = sparse.csr_matrix((entries, entries))
    for start in starts[read.round().astype(int)].tolist():
        ids, sentences = tokens.stretch(start, min(start + _BLOCK, len(tokens)))
        near, far, weights = [], [], []
        for distance in range(1, _REACH + 1):
            same = sentences[distance:] == sentences[:-distance]
            near.append(ids[:-distance][same])
            far.append(ids[distance:][same])
            weights.append(np.full(len(far[-1]), 1 / distance))
        places = (np.concatenate(near), np.concatenate(far))
        counts += sparse.csr_matrix((np.concatenate(weights), places), shape=counts.shape)
    return counts + counts.T


def _information(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Positive pointwise mutual information of counts, sparse."""
    total = np.asarray(counts.sum(axis=1)).ravel()
    shares = total**_SMOOTHING / max(float((total**_SMOOTHING).sum()), 1.0)
    found = counts.tocoo()
    found.data = np.maximum(np.log(found.data / (total[found.row] * shares[found.col])), 0)
    found = found.tocsr()
    found.eliminate_zeros()
    return found


def write_training_pairs(made: Harvest, folder: Path) -> dict[str, Path]:
    """Writes the harvested pairs as files the trainer reads, scores stretched to [0, 1].

    Harvested cosines fill a small part of [-1, 1]. The 1 % and the 99 % quantile of the training
    split become 0 and 1, scores beyond them are clipped; ranks do not change. A dev or test pair
    drawn for several shards is kept once.

    Args:
        made: A harvest; its finished shards are read twice, one at a time.
        folder: Where ``train.parquet``, ``dev.parquet`` and ``test.parquet`` go.

    Raises:
        InputError: If there are fewer than three dev pairs, no training or test pair, or all scores
            are equal.
    """
    scores = [table["score"].to_numpy() for table in made.tables("train")]
    if not scores:
        raise _too_few(made, "train", 0)
    low, high = np.quantile(np.concatenate(scores), _TAILS).tolist()
    if high <= low:
        raise InputError(f"All scores of the harvest in {made.folder} are {low:g}.")
    folder.mkdir(parents=True, exist_ok=True)
    files = {split: folder / f"{split}.parquet" for split in SPLITS}
    for split, file in files.items():
        tables = made.tables(split)
        tables = tables if split == "train" else _distinct(tables)
        written = _write(tables, file, low=low, high=high)
        if written < (_LEAST_JUDGED if split == "dev" else 1):
            raise _too_few(made, split, written)
    return files


@without_progress_bars()
def new_backbone(
    vocabulary: Vocabulary,
    tokens: Callable[[], CorpusTokens],
    folder: Path,
    settings: SurrogateSettings,
) -> Path:
    """Makes a small BERT with the tokenizer of the corpus; only its token embeddings are trained.

    Args:
        tokens: Gives the corpus that token embeddings are learned from, unless they are random.
        folder: Where the checkpoint goes; an existing one is kept.
        settings: Its size, and where its embeddings come from.
    """
    if folder.is_dir():
        return folder
    tokenizer = PreTrainedTokenizerFast.from_pretrained(
        vocabulary.folder, model_max_length=MAX_TOKENS
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=4 * settings.width,
        max_position_embeddings=MAX_TOKENS,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
    if settings.embeddings == "corpus":
        vectors = token_vectors(tokens(), entries=len(tokenizer), size=settings.width)
        known = torch.from_numpy(vectors).any(dim=1)
        weights = model.embeddings.word_embeddings.weight.data
        length = _LENGTH * config.initializer_range * math.sqrt(settings.width)
        weights[known] = length * torch.from_numpy(vectors)[known]
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    tokenizer.save_pretrained(str(partial))
    model.save_pretrained(str(partial))
    partial.rename(folder)
    return folder


def surrogate_recipe(
    settings: SurrogateSettings, *, name: str, files: dict[str, Path], backbone: Path
) -> Recipe:
    """Gives the training recipe of a surrogate.

    Args:
        files: Those of `write_training_pairs`.
        backbone: The backbone from scratch; not used if ``settings.backbone`` names one.

    Returns:
        The recipe: mean pooling, L2 between cosine and score, Adam with the paper's learning rate
        of 1e-4 (§4.1), unless ``settings.train`` says otherwise.

    Raises:
        InputError: If a key of ``settings.train`` is unknown, decided elsewhere, or its value is
            wrong.
    """
    for key in _OWN_KEYS:
        if key in settings.train:
            raise InputError(
                f"'surrogate.train' must not have the key '{key}': the run decides it, or a key of "
                "'surrogate' itself."
            )
    values = {
        "name": name,
        "train": str(files["train"]),
        "dev": str(files["dev"]),
        "encoder": settings.encoder,
        "backbone": str(backbone) if settings.backbone is None else settings.backbone,
        "pooling": "mean",
        "objective": {"mse": 1.0},
        "learning_rate": 1e-4,
        "epochs": 1,
        **settings.train,
    }
    recipe = validated(Recipe, values, what="surrogate recipe", source="'surrogate.train'")
    if recipe.pair_terms:
        raise InputError(
            f"The objective {recipe.pair_terms[0]!r} of 'surrogate.train' compares two conditions "
            "of a pair, and harvested pairs have none. Use 'mse' or 'correlation'."
        )
    return recipe


def _write(tables: Iterable[pa.Table], file: Path, *, low: float, high: float) -> int:
    """Writes pairs with stretched scores, a shard at a time; returns their number."""
    written = 0
    with replacing(file) as partial, pq.ParquetWriter(partial, _SCHEMA) as writer:
        for table in tables:
            stretched = np.clip((table["score"].to_numpy() - low) / (high - low), 0, 1)
            values = [table["sentence1"], table["sentence2"], stretched.astype(np.float32)]
            writer.write_table(pa.table(values, schema=_SCHEMA))
            written += len(table)
    return written


def _distinct(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Leaves out pairs seen before, in whichever order."""
    seen: set[frozenset[int]] = set()
    for table in tables:
        new = []
        ids = zip(table["id1"].to_pylist(), table["id2"].to_pylist(), strict=True)
        for row, pair in enumerate(map(frozenset, ids)):
            if pair not in seen:
                seen.add(pair)
                new.append(row)
        yield table.take(new)


def _too_few(made: Harvest, split: str, found: int) -> InputError:
    return InputError(
        f"The harvest in {made.folder} has {found} different {split} pairs, too few to train a "
        "surrogate. Harvest more pairs (one in a hundred is a dev pair, and one a test pair), or "
        "take a larger corpus."
    )
