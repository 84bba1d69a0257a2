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
from condsim.errors import InputError
from condsim.io import replacing
from condsim.model.builders import without_progress_bars
from condsim.training.recipe import Recipe
from condsim.types import FloatArray
from condsim_contexts.harvest import SPLITS, Harvest
from condsim_contexts.recipe import ContextsRecipe, SurrogateSettings
from condsim_contexts.tokens import CorpusTokens

MAX_TOKENS = 128

# Largest distance of two tokens that are counted together.
_MAX_TOKEN_DISTANCE = 8
_SMOOTHING = 0.75
_SENTENCES_PER_BLOCK = 50_000
# Of a larger corpus about so many sentences are counted: more would change little.
_MAX_SENTENCES = 1_000_000
# Singular values below this share of the first count as 0.
_MIN_SINGULAR_SHARE = 1e-9
# Mean length of a token vector, in lengths of position vectors, to which it is added.
_TOKEN_LENGTH = 5.0

# A dev file needs three pairs for a correlation.
_MIN_PAIRS = {"train": 1, "dev": 3, "test": 1}
# Quantiles of the harvested scores that become 0 and 1.
_TAIL_QUANTILES = (0.01, 0.99)
_UNITS_PER_HEAD = 64
_PAIR_SCHEMA = pa.schema(
    {"sentence1": pa.string(), "sentence2": pa.string(), "score": pa.float32()}
)


def write_training_pairs(harvest: Harvest, folder: Path) -> dict[str, Path]:
    """Write the harvested pairs as files for the trainer, scores stretched to [0, 1], by split.

    Harvested cosines fill a small part of [-1, 1]. The 1 % and the 99 % quantile of the training
    split become 0 and 1, scores beyond them are clipped; ranks do not change. A dev or test pair
    drawn for several shards is written once.
    """
    scores = [table["score"].to_numpy() for table in harvest.tables("train")]
    low, high = np.quantile(np.concatenate(scores), _TAIL_QUANTILES).tolist()
    if high <= low:
        raise InputError(f"All scores of the harvest in {harvest.folder} are {low:g}.")
    folder.mkdir(parents=True, exist_ok=True)
    files = {split: folder / f"{split}.parquet" for split in SPLITS}
    for split, file in files.items():
        tables = harvest.tables(split)
        if split != "train":
            tables = _distinct_pairs(tables)
        pairs = 0
        with replacing(file) as partial, pq.ParquetWriter(partial, _PAIR_SCHEMA) as writer:
            for table in tables:
                stretched = np.clip((table["score"].to_numpy() - low) / (high - low), 0, 1)
                values = [table["sentence1"], table["sentence2"], stretched.astype(np.float32)]
                writer.write_table(pa.table(values, schema=_PAIR_SCHEMA))
                pairs += len(table)
        if pairs < _MIN_PAIRS[split]:
            raise InputError(
                f"The harvest in {harvest.folder} has {pairs} different {split} pairs, too few to "
                "train a surrogate. Harvest more pairs (one in a hundred is a dev pair, and one a "
                "test pair), or take a larger corpus."
            )
    return files


def _distinct_pairs(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Leave out pairs seen before, in either order."""
    seen: set[frozenset[int]] = set()
    for table in tables:
        new = []
        ids = zip(table["id1"].to_pylist(), table["id2"].to_pylist(), strict=True)
        for row, pair in enumerate(map(frozenset, ids)):
            if pair not in seen:
                seen.add(pair)
                new.append(row)
        yield table.take(new)


def surrogate_recipe(recipe: ContextsRecipe, *, files: dict[str, Path], backbone: Path) -> Recipe:
    """Make the training recipe of a surrogate from the files of `write_training_pairs`.

    Mean pooling, L2 between cosine and score, Adam with the paper's learning rate of 1e-4 (§4.1),
    unless ``surrogate.train`` says otherwise. ``backbone`` is the one from scratch, which is used
    if the recipe has none.
    """
    settings = recipe.surrogate
    decided = {
        "name": f"{recipe.name} surrogate",
        "train": str(files["train"]),
        "dev": str(files["dev"]),
        "encoder": settings.encoder,
        "backbone": str(backbone) if settings.backbone is None else settings.backbone,
    }
    if reserved := sorted(settings.train.keys() & decided.keys()):
        raise InputError(
            f"'surrogate.train' must not have the key '{reserved[0]}': the run decides it, or a "
            "key of 'surrogate' itself."
        )
    defaults = {"pooling": "mean", "objective": {"mse": 1.0}, "learning_rate": 1e-4, "epochs": 1}
    values = {**decided, **defaults, **settings.train}
    training = validated(Recipe, values, subject="surrogate recipe", source="'surrogate.train'")
    if training.pair_terms:
        raise InputError(
            f"The objective {training.pair_terms[0]!r} of 'surrogate.train' compares two "
            "conditions of a pair, and harvested pairs have none. Use 'mse' or 'correlation'."
        )
    return training


@without_progress_bars()
def new_backbone(
    vocabulary: Path, tokens: Callable[[], CorpusTokens], folder: Path, settings: SurrogateSettings
) -> Path:
    """Make a small BERT with the tokenizer of the corpus, or return an existing one.

    Only its token embeddings are learned, from ``tokens``, unless the settings make them random.
    """
    if folder.is_dir():
        return folder
    tokenizer = PreTrainedTokenizerFast.from_pretrained(vocabulary, model_max_length=MAX_TOKENS)
    # Attention heads of 64 units, or of more where the width needs it.
    most = max(1, settings.width // _UNITS_PER_HEAD)
    heads = next(heads for heads in range(most, 0, -1) if settings.width % heads == 0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=heads,
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
        has_vector = torch.from_numpy(vectors).any(dim=1)
        weights = model.embeddings.word_embeddings.weight.data
        length = _TOKEN_LENGTH * config.initializer_range * math.sqrt(settings.width)
        weights[has_vector] = length * torch.from_numpy(vectors)[has_vector]
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    tokenizer.save_pretrained(str(partial))
    model.save_pretrained(str(partial))
    partial.rename(folder)
    return folder


def token_vectors(tokens: CorpusTokens, *, entries: int, size: int) -> FloatArray:
    """Compute a vector for each entry of a vocabulary, from the tokens that occur near it.

    Of a large corpus about a million sentences are read, spread over it. The vectors,
    ``(entries, size)``, have mean length 1; tokens without information have 0, as do columns beyond
    the rank of the counts.
    """
    information = _positive_information(_near_counts(tokens, entries))
    rank = min(size, entries)
    directions, values, _ = randomized_svd(information, rank, n_iter=4, random_state=0)
    values[values < _MIN_SINGULAR_SHARE * values[0]] = 0
    has_vector = np.diff(information.indptr) > 0
    vectors = np.zeros((entries, size))
    vectors[has_vector, :rank] = directions[has_vector] * np.sqrt(values)
    if has_vector.any():
        vectors /= np.linalg.norm(vectors[has_vector], axis=1).mean()
    return vectors.astype(np.float32)


def _near_counts(tokens: CorpusTokens, entries: int) -> sparse.csr_matrix:
    """Count, weighted by distance, how often two tokens are near: ``(entries, entries)``."""
    starts = np.arange(0, len(tokens), _SENTENCES_PER_BLOCK)
    blocks = min(len(starts), max(1, _MAX_SENTENCES // _SENTENCES_PER_BLOCK))
    chosen = np.linspace(0, len(starts) - 1, blocks).round().astype(int)
    counts = sparse.csr_matrix((entries, entries))
    for start in starts[chosen].tolist():
        ids, sentences = tokens.stretch(start, min(start + _SENTENCES_PER_BLOCK, len(tokens)))
        near, far, weights = [], [], []
        for distance in range(1, _MAX_TOKEN_DISTANCE + 1):
            same = sentences[distance:] == sentences[:-distance]
            near.append(ids[:-distance][same])
            far.append(ids[distance:][same])
            weights.append(np.full(len(far[-1]), 1 / distance))
        places = (np.concatenate(near), np.concatenate(far))
        counts += sparse.csr_matrix((np.concatenate(weights), places), shape=counts.shape)
    return counts + counts.T


def _positive_information(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Compute the positive pointwise mutual information of counts."""
    total = np.asarray(counts.sum(axis=1)).ravel()
    shares = total**_SMOOTHING / max(float((total**_SMOOTHING).sum()), 1.0)
    information = counts.tocoo()
    ratios = information.data / (total[information.row] * shares[information.col])
    information.data = np.maximum(np.log(ratios), 0)
    information = information.tocsr()
    information.eliminate_zeros()
    return information
