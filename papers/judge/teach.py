"""Verdicts of a larger judge on pairs without a label, for a smaller one to learn from.

``python -m papers.judge.teach --run FOLDER --start CHECKPOINT --rows FOLDER`` writes
``taught.jsonl`` next to the rows. The pairs are the written verdicts read from B to A, and the
texts of the rows of entailment and of similarity without their condition.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
from collections.abc import Iterator
from pathlib import Path

from condsim.io import replacing
from papers.judge.rows import Row, verdict_rows
from papers.judge.train import Reader, logits_of, torch_judge

MOST_PAIRS = 30_000
TOKENS = 128

_LOGGER = logging.getLogger("condsim")


def pairs(rows: Path) -> Iterator[Row]:
    """Pairs of train, each once: the turned ones, and others in an order by chance."""
    turned = [Row("", row.second, row.first, 0.0) for row in verdict_rows("train")]
    others = [
        Row("", first, second, 0.0)
        for kind in ("entailment", "similarity")
        for line in (rows / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        for _, first, second, _ in [json.loads(line)]
    ]
    random.Random(0).shuffle(others)
    seen: set[tuple[str, str]] = set()
    for row in (*turned, *others):
        if row[1:3] not in seen and row.first != row.second:
            seen.add((row.first, row.second))
            yield Row("", row.first, row.second, 0.0)


def teach(run: Path, start: Path, rows: Path) -> int:
    """Write the pairs with the probabilities that a judge gives each verdict; their number."""
    chosen = list(pairs(rows))[:MOST_PAIRS]
    judge, read = torch_judge(start, run), Reader(start, TOKENS)
    probabilities = logits_of(judge, read, chosen)["verdict"].softmax(1).tolist()
    with replacing(rows / "taught.jsonl") as path, path.open("w", encoding="utf-8") as stream:
        for row, found in zip(chosen, probabilities, strict=True):
            taught = row._replace(label=[round(value, 4) for value in found])
            stream.write(json.dumps(taught, ensure_ascii=False) + "\n")
    return len(chosen)


def main() -> None:
    """Let a judge teach."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("run", "start", "rows"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    _LOGGER.info("%d pairs", teach(options.run, options.start, options.rows))


if __name__ == "__main__":
    main()
