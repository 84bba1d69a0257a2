"""Training of a judge: one encoder, a head for each kind of row.

``python -m papers.judge.train --rows FOLDER --start CHECKPOINT --out FOLDER`` trains, or continues.
A step draws the same rows whenever it is made, so that a killed run resumes where it was.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertModel

from condsim.config import read_mapping
from condsim.io import replacing
from condsim.model.judge import VERDICTS
from condsim.types import IntArray
from papers.judge.rows import ENTAILMENT, Row, request_rows, verdict_rows

_TURNED = {"contradiction": "contradiction", "new": "new", "update": "related"}
HEADS = ("verdict", "entailment", "similarity")
KINDS = (*HEADS, "request", "rule", "taught")


_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes:
        shares: Rows per step of each of `KINDS`.
        weights: Weight of the loss of each kind.
        swapped: Share of verdict rows read from B to A, where the verdict is then known.
    """

    shares: Mapping[str, int]
    weights: Mapping[str, float]
    steps: int
    learning_rate: float = 5e-5
    head_rate: float = 5e-4
    warmup_steps: int = 100
    weight_decay: float = 0.01
    most_tokens: int = 128
    chunks: int = 4
    average: float = 0.998
    swapped: float = 0.2
    smoothing: float = 0.05
    seed: int = 0
    minutes: float = 5.0

    def rate(self, step: int) -> float:
        """Share of the learning rate at a step: up, then down in a line."""
        return min(step / self.warmup_steps, max(0.02, 1 - step / self.steps))


class Judge(nn.Module):
    """Encoder of (condition, A, B) with a head for each kind of row."""

    def __init__(self, encoder: BertModel) -> None:
        super().__init__()
        self.encoder = encoder
        width = encoder.config.hidden_size
        sizes = {"verdict": len(VERDICTS), "entailment": len(ENTAILMENT), "similarity": 1}
        self.dense = nn.Linear(width, width)
        self.heads = nn.ModuleDict({kind: nn.Linear(width, size) for kind, size in sizes.items()})

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return logits by kind: (n, 5), (n, 3), (n, 1)."""
        states = self.encoder(ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        pooled = torch.tanh(self.dense(states[:, 0].float()))
        pooled = nn.functional.dropout(pooled, 0.1, self.training)
        return {kind: head(pooled) for kind, head in self.heads.items()}


Tokens = tuple[list[int], list[int]]


class Reader:
    """Reader of rows as token ids: the condition and A are the first segment, B the second."""

    def __init__(self, folder: Path, most: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._most = most
        self._kept: dict[str, list[int]] = {}
        self._start = self._id("[CLS]")
        self._end = self._id("[SEP]")

    def _id(self, mark: str) -> int:
        number = self._tokenizer.token_to_id(mark)
        assert number is not None, mark
        return number

    def _ids(self, text: str) -> list[int]:
        if text not in self._kept:
            ids = self._tokenizer.encode(text, add_special_tokens=False).ids
            self._kept[text] = ids[: self._most]
        return self._kept[text]

    def __call__(self, row: Row) -> Tokens:
        """Return token ids and segments of a row."""
        head = [*self._ids(row.condition), self._end] if row.condition else []
        first = [self._start, *head, *self._ids(row.first), self._end]
        second = [*self._ids(row.second), self._end]
        return first + second, [0] * len(first) + [1] * len(second)


def padded(batch: Sequence[Tokens]) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, segments, and mask, all (n, longest)."""
    longest = max(len(ids) for ids, _ in batch)
    arrays = np.zeros((3, len(batch), longest), dtype=np.int64)
    for place, (ids, types) in enumerate(batch):
        arrays[:, place, : len(ids)] = ids, types, np.ones(len(ids))
    ids, types, mask = torch.from_numpy(arrays)
    return ids, types, mask


class Run:
    """A training that can go on."""

    def __init__(
        self, settings: Settings, rows: Path, start: Path, out: Path, before: Path | None = None
    ) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.out = settings, out
        self.judge = torch_judge(start, before)
        self.average = {name: value.clone() for name, value in self.judge.state_dict().items()}
        self.read = Reader(start, settings.most_tokens)
        written = {"verdict": verdict_rows, "request": request_rows}
        self.rows = {
            kind: list(read("train")) for kind, read in written.items() if kind in settings.shares
        }
        for kind in ("entailment", "similarity", "rule", "taught"):
            if kind in settings.shares:
                lines = (rows / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
                self.rows[kind] = [Row(*json.loads(line)) for line in lines]
        self.dev = list(verdict_rows("dev"))
        parts: list[dict[str, Any]] = [
            {"params": list(self.judge.encoder.parameters()), "lr": settings.learning_rate},
            {
                "params": [*self.judge.dense.parameters(), *self.judge.heads.parameters()],
                "lr": settings.head_rate,
            },
        ]
        self.optimizer = torch.optim.AdamW(parts, weight_decay=settings.weight_decay)
        self._orders: dict[tuple[str, int], IntArray] = {}
        self.step = 0
        if (out / "state.pt").is_file():
            self._restore()

    def _batch(self) -> list[tuple[str, Row]]:
        draw = np.random.default_rng((self.settings.seed, self.step))
        batch: list[tuple[str, Row]] = []
        for kind, number in self.settings.shares.items():
            rows = self.rows[kind]
            # Every row comes up once before any comes up again.
            first = self.step * number
            for place in range(first, first + number):
                epoch, rest = divmod(place, len(rows))
                order = self._order(kind, epoch, len(rows))
                batch.append((kind, self._turned(kind, rows[order[rest]], draw)))
        return sorted(batch, key=lambda item: len(self.read(item[1])[0]))

    def _order(self, kind: str, epoch: int, number: int) -> IntArray:
        key = (kind, epoch)
        if key not in self._orders:
            seed = (self.settings.seed, epoch, KINDS.index(kind))
            self._orders[key] = np.random.default_rng(seed).permutation(number)
        return self._orders[key]

    def _turned(self, kind: str, row: Row, draw: np.random.Generator) -> Row:
        label = row.label
        turned = {"similarity": 0.5, "rule": 0.5, "verdict": self.settings.swapped}.get(kind, 0.0)
        if kind == "verdict":
            # What a duplicate or a related text becomes depends on which of the two says more.
            name = _TURNED.get(VERDICTS[row.place])
            turned, label = (turned, VERDICTS.index(name)) if name else (0.0, label)
        if draw.random() >= turned:
            return row
        return Row(row.condition, row.second, row.first, label)

    def _loss(self, batch: Sequence[tuple[str, Row]]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.judge(*padded([self.read(row) for _, row in batch]))
        losses = []
        for kind in self.settings.shares:
            places = [place for place, (name, _) in enumerate(batch) if name == kind]
            if not places:
                continue
            found = logits[kind if kind in HEADS else "verdict"].float()[places]
            wanted = torch.tensor([batch[place][1].label for place in places])
            if kind == "request":
                # One answer serves both requests where the second is a duplicate of the first.
                rest = found[:, 1:].logsumexp(1)
                loss = nn.functional.binary_cross_entropy_with_logits(found[:, 0] - rest, wanted)
            elif kind == "similarity":
                loss = nn.functional.binary_cross_entropy_with_logits(found[:, 0], wanted)
            elif kind == "taught":
                loss = nn.functional.cross_entropy(found, wanted)
            else:
                smoothing = self.settings.smoothing
                loss = nn.functional.cross_entropy(found, wanted.long(), label_smoothing=smoothing)
            share = len(places) / self.settings.shares[kind]
            losses.append(loss * share * self.settings.weights.get(kind, 1.0))
        return torch.stack(losses).sum()

    def train(self) -> Iterator[dict[str, float]]:
        """Train to the last step; yields the loss and the dev figures now and then."""
        started = saved = time.monotonic()
        total, counted = 0.0, 0
        while self.step < self.settings.steps:
            self.judge.train()
            for group, rate in zip(
                self.optimizer.param_groups,
                (self.settings.learning_rate, self.settings.head_rate),
                strict=True,
            ):
                group["lr"] = rate * self.settings.rate(self.step + 1)
            batch = self._batch()
            for part in np.array_split(np.arange(len(batch)), self.settings.chunks):
                loss = self._loss([batch[place] for place in part])
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            counted += 1
            nn.utils.clip_grad_norm_(self.judge.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.step += 1
            keep = min(self.settings.average, (self.step + 1) / (self.step + 10))
            for name, value in self.judge.state_dict().items():
                if value.is_floating_point():
                    self.average[name].lerp_(value, 1 - keep)
            last = self.step == self.settings.steps
            if last or time.monotonic() - saved > self.settings.minutes * 60:
                saved = time.monotonic()
                self.save()
                yield {
                    "step": self.step,
                    "minutes": (saved - started) / 60,
                    "loss": total / counted,
                    **self.figures(),
                }
                total, counted = 0.0, 0

    def figures(self) -> dict[str, float]:
        """Macro F1 of the running average on the verdicts of dev."""
        if not self.dev:
            return {}
        kept = {name: value.clone() for name, value in self.judge.state_dict().items()}
        self.judge.load_state_dict(self.average)
        found = logits_of(self.judge, self.read, self.dev)["verdict"].argmax(1)
        self.judge.load_state_dict(kept)
        wanted = [row.place for row in self.dev]
        return {"dev": 100 * f1_score(wanted, found, average="macro")}

    def save(self) -> None:
        """Write the state and the averaged weights."""
        self.out.mkdir(parents=True, exist_ok=True)
        state = {
            "step": self.step,
            "judge": self.judge.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            "settings": asdict(self.settings),
        }
        with replacing(self.out / "state.pt") as path:
            torch.save(state, path)

    def _restore(self) -> None:
        state = torch.load(self.out / "state.pt", weights_only=True)
        self.step, self.average = state["step"], state["average"]
        self.judge.load_state_dict(state["judge"])
        self.optimizer.load_state_dict(state["optimizer"])


@torch.no_grad()
def logits_of(judge: Judge, read: Reader, rows: Sequence[Row]) -> dict[str, Tensor]:
    """Return the logits of rows by kind."""
    judge.eval()
    tokens = [read(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda place: len(tokens[place][0]))
    parts: dict[str, list[Tensor]] = {kind: [] for kind in HEADS}
    for start in range(0, len(rows), 32):
        with torch.autocast("cpu", torch.bfloat16):
            logits = judge(*padded([tokens[place] for place in order[start : start + 32]]))
        for kind, values in logits.items():
            parts[kind].append(values.float())
    back = torch.tensor(order).argsort()
    return {kind: torch.cat(values)[back] for kind, values in parts.items()}


def torch_judge(start: Path, run: Path | None = None) -> Judge:
    """Make a judge from a checkpoint, with the averaged weights of a run if one is given."""
    judge = Judge(BertModel.from_pretrained(start, add_pooling_layer=False))
    if run is not None:
        state = torch.load(run / "state.pt", weights_only=True)
        judge.load_state_dict(state["average"])
    return judge


def main() -> None:
    """Train a judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("settings", "rows", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="Run whose weights this one begins with.")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings(**read_mapping(options.settings, subject="settings"))
    run = Run(settings, options.rows, options.start, options.out, options.before)
    for line in run.train():
        _LOGGER.info(json.dumps({name: round(value, 3) for name, value in line.items()}))


if __name__ == "__main__":
    main()
