"""Files, models and functions that the cases use."""

from __future__ import annotations

import csv
import itertools
import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden import inputs

PROJECT = Path(__file__).resolve().parents[2]
WRITTEN = PROJECT / "data" / "written" / "test.txt"

CRITERIA = """criteria:
  topic:
    name: the topic of the ticket
    wordings: [topic, what the customer writes about]
  stars:
    order: ["0", "1", "2", "3", "4"]
"""
RERANK = {
    "query": "The staff were rude.",
    "documents": ["The staff were friendly.", "The receptionist was unfriendly."],
    "condition": "the attitude of the staff",
}
CONTEXTS_RECIPE = """name: small
inputs: [c.txt]
corpus: {chunk_sentences: 4}
vocabulary: {size: 300}
coherence: {left: 1, right: 1, embedding: 8, hidden: 8, head_size: 8, batch_sentences: 64,
  max_steps: 3, evaluations: 1, held_out: 0.2}
generators: {size: tiny, left: 1, right: 1, max_tokens: 16, batch_tokens: 512, max_steps: 2,
  evaluations: 1, held_out: 0.2, held_out_examples: 4}
selection: {size: 3, chunks: 5, candidates: 1}
scoring: {references: 2}
harvest: {pairs: 300, shard_pairs: 100}
surrogate:
  width: 16
  layers: 1
  train: {epochs: 1, max_seq_length: 16, precision: float32, attention: eager}
"""
_RECIPE = """name: tiny
train: train.csv
dev: dev.csv
encoder: bi-encoder
backbone: ../models/backbone
objective: {mse: 1.0}
epochs: 2
batch_size: 8
max_seq_length: 96
learning_rate: 1.0e-3
precision: float32
attention: eager
"""
SWEEP = """name: s
recipe: r.yaml
set: {epochs: 1}
space:
  learning_rate: {grid: [1.0e-3, 5.0e-3]}
  objective: {grid: [{mse: 1}, {mse: 1, quad: 1}]}
seeds: 2
test: test.csv
"""
SWEEP_TPE = """name: t
recipe: r.yaml
space:
  learning_rate: {log_uniform: [1.0e-4, 1.0e-2]}
  objective.mse: {uniform: [0.5, 1.5]}
  epochs: {integer: [1, 2]}
sampler: tpe
trials: 3
seed: 5
seeds: [7]
"""
BATCH = (
    "AssignmentId,WorkerId,AssignmentStatus,SubmitTime,WorkTimeInSeconds,Input.condsim_item,"
    "Answer.rating\n"
    "A1,W2,Submitted,Fri Nov 20 09:30:00 PST 2026,31,other,4\n"
)
_WORDS = (
    "man woman girl boy dog dogs cat children people men ride rides walk play soccer eat row boat "
    "brown black red horses apple beach park lake street number color the of on in near with and "
    "is are two three five old activity place animal"
).split()
GLOVE = "".join(
    f"{word} "
    + " ".join(f"{((place + 1) * (axis + 3) * 7) % 19 / 9.5 - 1:.3f}" for axis in range(8))
    + "\n"
    for place, word in enumerate(_WORDS)
)
PLAIN_SCORED = inputs.table(
    {
        "sentence1": inputs.SENTENCES[number],
        "sentence2": inputs.SENTENCES[(7 * number + 3) % 120],
        "score": round((number * 7 % 11) / 10, 1),
    }
    for number in range(16)
)
NLI = inputs.lines(
    {
        "premise": inputs.SENTENCES[number],
        "hypothesis": inputs.SENTENCES[(11 * number + 5) % 120],
        "label": ("entailment", "neutral", "contradiction")[number % 3],
    }
    for number in range(24)
)


def recipe(more: str = "") -> str:
    """The recipe of a tiny model."""
    return _RECIPE + more


def written_slice(lines: int) -> str:
    """The first lines of the written test pairs."""
    with WRITTEN.open(encoding="utf-8") as stream:
        return "".join(itertools.islice(stream, lines))


def write_parquet(path: Path) -> None:
    """Write the pairs with a column of a type that text files do not have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(inputs.NOTED)
    table = table.append_column("place", pa.array(range(len(table)), pa.int16()))
    pq.write_table(table, path)


def write_vectors(path: Path) -> None:
    """Write a vector for each item of the captions."""
    import numpy as np

    np.save(path, np.random.default_rng(0).normal(size=(60, 4)))


def write_teacher_vectors(path: Path) -> None:
    """Write a teacher's vectors of the sentences of the file beside it."""
    import numpy as np

    rows = len(inputs.SENTENCE_FILE.splitlines()) - 1
    vectors = np.random.default_rng(1).normal(size=(rows, 32)).astype(np.float32)
    np.save(path, vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def write_backbone(folder: Path) -> None:
    """Write a random BERT checkpoint: 2 layers, hidden 32, lower-case WordPiece."""
    import torch
    import transformers

    letters = [*string.ascii_lowercase, *string.digits, *".,?!'-"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *_WORDS]
    vocabulary += [f"##{letter}" for letter in letters]
    tokenizer = transformers.BertTokenizer(
        vocab={token: number for number, token in enumerate(vocabulary)}, model_max_length=128
    )
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def public_names(_folder: Path) -> list[str]:
    """Names at the top level of condsim."""
    import condsim

    return sorted(condsim.__all__)


def _scores(rows: list[tuple[str, str, str]]) -> list[float]:
    import condsim

    columns = [list(column) for column in zip(*rows, strict=True)]
    scores = condsim.load().score(*columns)
    assert str(scores.dtype) == "float32"
    return [round(float(score), 8) for score in scores]


def _table_of(name: str) -> Iterator[dict[str, str]]:
    with (PROJECT / "examples" / name).open(newline="", encoding="utf-8") as stream:
        yield from csv.DictReader(stream)


def scores_of_pairs(_folder: Path) -> list[float]:
    """Score the pairs of the examples."""
    return _scores(
        [(row["sentence1"], row["sentence2"], row["condition"]) for row in _table_of("pairs.csv")]
    )


def scores_of_messages(_folder: Path) -> list[float]:
    """Score messages of the examples with each of the next four, under two conditions."""
    texts = [row["text"] for row in _table_of("messages.csv")]
    return _scores(
        [
            (text, other, condition)
            for place, text in enumerate(texts)
            for other in texts[place + 1 : place + 5]
            for condition in ("the product", "the problem")
        ]
    )


def scores_of_written(_folder: Path) -> list[float]:
    """Score 200 rows of the written test pairs, from all over the file."""
    rows = []
    for line in WRITTEN.read_text(encoding="utf-8").splitlines():
        parts = [part.strip() for part in line.split("|||")]
        if len(parts) == 4:
            for label in parts[3].split(";"):
                rows.append((parts[1], parts[2], label.rpartition("=")[0].strip()))
    return _scores(rows[:: len(rows) // 200][:200])


def openapi_names(body: Any, _status: int) -> Any:
    """Paths of an OpenAPI document with their methods, statuses and the keys of requests."""
    schemas = body["components"]["schemas"]
    return {
        "paths": {
            path: {method: sorted(about["responses"]) for method, about in methods.items()}
            for path, methods in body["paths"].items()
        },
        "keys": sorted(json.dumps(sorted(one.get("properties", {}))) for one in schemas.values()),
    }


def error_kind(body: Any, status: int) -> Any:
    """The keys and the type of an error, without its words."""
    if status < 400 or "error" not in body:
        return body
    error = body["error"]
    return {"keys": sorted(error), "type": error.get("type")}


def shortened_vectors(body: Any, status: int) -> Any:
    """Embeddings with the first numbers of each vector."""
    if status == 200:
        for item in body["data"]:
            item["embedding"] = [len(item["embedding"]), *item["embedding"][:6]]
    return body
