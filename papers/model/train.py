"""Train an encoder on packed rows; the one loop for CPU and accelerator.

``python -m papers.model.train --settings large.yaml --packed FOLDER --start CHECKPOINT --out
FOLDER``. It needs torch, numpy, safetensors and PyYAML, and resumes where it was killed. The
learning rate stays the same between its warm-up and its cool-down, so that a run may be extended
until what it is measured by stops rising; the running average of the weights is what is measured
and shipped.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from condsim.model.inputs import token_batches
from papers.model.encoder import Encoder, EncoderConfig, load_weights, weights_of

_LOGGER = logging.getLogger("condsim")

STATE_FILE = "state.pt"
WEIGHTS_FILE = "model.safetensors"
# Minimum difference of two labels whose order counts.
LEAST_GAP = 0.05


@dataclass(frozen=True)
class Settings:
    """Settings of a run; ``shares`` may be changed, and sources added, between two starts.

    Attributes:
        shares: Share of each source in the inputs of a batch.
        steps: Updates.
        inputs_per_step: Inputs of a batch.
        tokens_per_chunk: Tokens of one forward pass, padding included.
        frozen_layers: Lower layers whose weights stay, with the embeddings.
        learning_rate: After the warm-up.
        warmup_steps: Steps over which it rises.
        cooldown_steps: Last steps, over which it falls to zero; 0 keeps it to the end.
        weight_decay: The weight decay of AdamW.
        average: Decay of the running average of the weights.
        mse, correlation, ranking, vectors: Weights of the objectives.
        ranking_scale, ranking_margin: Of the logistic loss on the order of two rows.
        checkpoint_minutes: Time between checkpoints.
        seed: Of the order of the groups.
    """

    shares: dict[str, float]
    steps: int
    inputs_per_step: int = 128
    tokens_per_chunk: int = 768
    frozen_layers: int = 0
    learning_rate: float = 1e-4
    warmup_steps: int = 50
    cooldown_steps: int = 0
    weight_decay: float = 0.01
    average: float = 0.99
    mse: float = 2.0
    correlation: float = 1.0
    ranking: float = 0.33
    vectors: float = 2.0
    ranking_scale: float = 10.0
    ranking_margin: float = 0.1
    checkpoint_minutes: float = 8.0
    seed: int = 0

    @classmethod
    def load(cls, path: Path) -> Settings:
        """Read the settings of a run; ``extends`` names a file whose values hold otherwise."""
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        base = values.pop("extends", None)
        if base is not None:
            values = yaml.safe_load((path.parent / base).read_text(encoding="utf-8")) | values
        return cls(**values)

    def rate_share(self, step: int) -> float:
        """Return the share of the learning rate that applies at a step, from 0 to 1."""
        warmup = (step + 1) / self.warmup_steps
        cooldown = (self.steps - step) / self.cooldown_steps if self.cooldown_steps else 1.0
        return min(1.0, warmup, cooldown)


@dataclass
class Source:
    """The packed groups of one source, drawn in a random order."""

    name: str
    arrays: dict[str, NDArray[Any]]
    seed: int
    drawn: int = 0
    _order: NDArray[np.int64] | None = None

    @classmethod
    def load(cls, path: Path, *, seed: int) -> Source:
        """Read a ``.npz`` of ``papers.model.pack``."""
        with np.load(path) as stored:
            return cls(path.stem, {name: stored[name] for name in stored.files}, seed)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.arrays["input_starts"]) - 1

    def next_group(self) -> int:
        """Draw a group; each comes once before any comes again."""
        epoch, place = divmod(self.drawn, self.groups)
        if self._order is None or place == 0:
            draw = np.random.default_rng((self.seed, epoch, len(self.name)))
            self._order = draw.permutation(self.groups)
        self.drawn += 1
        return int(self._order[place])

    def input_ids(self, number: int, special: tuple[int, int, int], *, double: bool) -> list[int]:
        """Token ids of an input: condition and text, or the text alone."""
        condition, text = self.arrays["inputs"][number]
        first, separator, _ = special
        own = self._piece("text", int(text))
        if condition < 0:
            return [first, *own, separator]
        between = [separator] * (2 if double else 1)
        return [first, *self._piece("condition", int(condition)), *between, *own, separator]

    def second_start(self, number: int, *, double: bool) -> int:
        """Return where the second text of an input begins; past its end where there is none."""
        condition = int(self.arrays["inputs"][number][0])
        if condition < 0:
            return 1 << 20
        return len(self._piece("condition", condition)) + 2 + int(double)

    def _piece(self, kind: str, number: int) -> list[int]:
        starts = self.arrays[f"{kind}_starts"]
        piece: list[int] = self.arrays[f"{kind}_ids"][starts[number] : starts[number + 1]].tolist()
        return piece


@dataclass
class Batch:
    """Inputs and targets of a step."""

    ids: list[list[int]] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    second: list[int] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    # Group and condition of each list; group and texts of each pair.
    lists: list[tuple[int, int]] = field(default_factory=list)
    pairs: list[tuple[int, int, int]] = field(default_factory=list)
    targets: list[tuple[int, NDArray[np.float16]]] = field(default_factory=list)


class Mixture:
    """Sampler of batches from sources by their shares."""

    def __init__(self, folder: Path, settings: Settings, config: EncoderConfig) -> None:
        self.settings, self.config = settings, config
        shares = {name: share for name, share in settings.shares.items() if share > 0}
        total = sum(shares.values())
        self.sources = {
            name: Source.load(folder / f"{name}.npz", seed=settings.seed) for name in shares
        }
        self.shares = {name: share / total for name, share in shares.items()}
        self.debt = dict.fromkeys(shares, 0.0)
        self._random = random.Random(settings.seed)

    def state(self) -> dict[str, Any]:
        """Return the state that a later run needs to resume."""
        drawn = {name: source.drawn for name, source in self.sources.items()}
        return {"drawn": drawn, "debt": self.debt}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`; sources that are new begin at their start."""
        for name, source in self.sources.items():
            source.drawn = state["drawn"].get(name, 0)
            self.debt[name] = state["debt"].get(name, 0.0)
            if source.drawn % source.groups:
                # The order of the epoch under way is drawn again.
                source.drawn, place = source.drawn - source.drawn % source.groups, source.drawn
                source.next_group()
                source.drawn = place

    def batch(self) -> Batch:
        """The next batch."""
        batch = Batch()
        for number, (name, source) in enumerate(self.sources.items()):
            self.debt[name] += self.shares[name] * self.settings.inputs_per_step
            while self.debt[name] > 0:
                group = source.next_group()
                self.debt[name] -= self._add(batch, source, group, number)
        return batch

    def _add(self, batch: Batch, source: Source, group: int, number: int) -> int:
        arrays, double = source.arrays, self.config.kind == "mpnet"
        start, stop = arrays["input_starts"][group : group + 2]
        begin = len(batch.ids)
        for place in range(start, stop):
            batch.ids.append(source.input_ids(place, self.config.ids, double=double))
            batch.seconds.append(source.second_start(place, double=double))
        rows = slice(*arrays["row_starts"][group : group + 2])
        pairs = arrays["pairs"][rows].astype(int) + begin
        weights = arrays["weights"][rows].astype(float)
        # A group counts as many times as it has inputs, whatever the number of its rows.
        if len(weights):
            weights = weights * (stop - start) / len(weights)
        unit = len(batch.lists) + (number << 32)
        for (one, two), label, weight in zip(pairs, arrays["labels"][rows], weights, strict=True):
            conditions = arrays["inputs"][start + one - begin, 0]
            texts = sorted(arrays["inputs"][start + side - begin, 1] for side in (one, two))
            batch.first.append(int(one))
            batch.second.append(int(two))
            batch.labels.append(float(label))
            batch.weights.append(float(weight))
            batch.lists.append((unit, int(conditions)))
            batch.pairs.append((unit, int(texts[0]), int(texts[1])))
        if "vectors" in arrays:
            batch.targets += [
                (begin + place - start, arrays["vectors"][place]) for place in range(start, stop)
            ]
        return int(stop - start)


def embed_batch(encoder: Encoder, batch: Batch, settings: Settings, device: str) -> Tensor:
    """Embed the inputs of a batch in chunks of similar length, ``(inputs, hidden)``."""
    padding = encoder.config.ids[2]
    sizes = np.array([len(ids) for ids in batch.ids])
    places, chunks = [], []
    for rows in token_batches(sizes, tokens=settings.tokens_per_chunk):
        chunk, longest = rows.tolist(), int(sizes[rows[-1]])
        ids = torch.full((len(chunk), longest), padding)
        for place, row in enumerate(chunk):
            ids[place, : len(batch.ids[row])] = torch.as_tensor(batch.ids[row])
        starts = torch.tensor([batch.seconds[row] for row in chunk])
        lengths = torch.tensor([len(batch.ids[row]) for row in chunk])
        tokens = torch.arange(longest)
        mask = tokens < lengths[:, None]
        second = ((tokens >= starts[:, None]) & mask).long()
        with torch.autocast(device, torch.bfloat16), _attention(device):
            chunks.append(encoder(ids.to(device), mask.to(device), second.to(device)))
        places += chunk
    return torch.cat(chunks)[torch.tensor(places).argsort()]


def _attention(device: str) -> AbstractContextManager[None]:
    """Choose the kernel: on CPUs the backward pass of flash attention takes twice as long."""
    return sdpa_kernel(SDPBackend.MATH) if device == "cpu" else nullcontext()


def objectives(vectors: Tensor, batch: Batch, settings: Settings) -> dict[str, Tensor]:
    """The losses of a batch, each before its weight."""
    losses: dict[str, Tensor] = {}
    device = vectors.device
    if batch.first:
        first, second = (torch.tensor(side, device=device) for side in (batch.first, batch.second))
        cosines = (vectors[first] * vectors[second]).sum(1)
        labels = torch.tensor(batch.labels, device=device)
        shares = torch.tensor(batch.weights, device=device)
        shares = shares / shares.sum()
        losses["mse"] = (shares * (cosines - labels).square()).sum()
        x, y = (side - (shares * side).sum() for side in (cosines, labels))
        covariance = (shares * x * y).sum()
        spread = ((shares * x * x).sum() * (shares * y * y).sum()).clamp(min=1e-8).sqrt()
        losses["correlation"] = 1 - covariance / spread
        losses["ranking"] = _ranking(cosines, labels, shares, batch, settings)
    if batch.targets:
        places = torch.tensor([place for place, _ in batch.targets], device=device)
        wanted = np.stack([vector for _, vector in batch.targets]).astype(np.float32)
        targets = F.normalize(torch.from_numpy(wanted).to(device), dim=-1)
        losses["vectors"] = 1 - (vectors[places] * targets).sum(1).mean()
    return losses


def _ranking(
    cosines: Tensor, labels: Tensor, shares: Tensor, batch: Batch, settings: Settings
) -> Tensor:
    """Order of rows of one group under one condition, and of one pair under two."""
    comparable = torch.zeros((len(labels), len(labels)), dtype=torch.bool, device=labels.device)
    for keys in (batch.lists, batch.pairs):
        numbers: dict[object, int] = {}
        ids = torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])
        comparable |= (ids[:, None] == ids[None, :]).to(labels.device)
    gaps = labels[:, None] - labels[None, :]
    high, low = torch.nonzero(comparable & (gaps > LEAST_GAP), as_tuple=True)
    if not len(high):
        return 0.0 * cosines.sum()
    counts = gaps[high, low] * (shares[high] * shares[low]).sqrt()
    margins = settings.ranking_margin * gaps[high, low].clamp(max=1.0)
    scores = settings.ranking_scale * (cosines[high] - cosines[low] - margins)
    return (counts * F.softplus(-scores)).sum() / counts.sum()


class Run:
    """A training run and its folder."""

    def __init__(self, settings: Settings, packed: Path, start: Path, out: Path) -> None:
        self.settings, self.out = settings, out
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        config = json.loads((start / "config.json").read_text(encoding="utf-8"))
        self.encoder = Encoder(EncoderConfig.from_transformers(config))
        load_weights(self.encoder, load_file(start / WEIGHTS_FILE))
        self.encoder.freeze(settings.frozen_layers)
        self.mixture = Mixture(packed, settings, self.encoder.config)
        self.encoder.to(self.device)
        self._embed_plain()
        named: dict[str, Tensor] = dict(self.encoder.named_parameters())
        self.trained = {name: value for name, value in named.items() if value.requires_grad}
        self.average = {name: value.detach().clone() for name, value in self.trained.items()}
        decayed = [value for value in self.trained.values() if value.ndim > 1]
        others = [value for value in self.trained.values() if value.ndim == 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": settings.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
        )
        self.step, self.stopped = 0, False
        out.mkdir(parents=True, exist_ok=True)
        if (out / STATE_FILE).is_file():
            self._restore()

    def _embed_plain(self) -> None:
        """Embed the texts of plain sources that were packed without vectors."""
        special, double = self.encoder.config.ids, self.encoder.config.kind == "mpnet"
        for source in self.mixture.sources.values():
            arrays = source.arrays
            if not bool(arrays.get("plain", np.zeros(1)).any()) or "vectors" in arrays:
                continue
            alone = replace(source, arrays=arrays | {"inputs": arrays["inputs"].copy()})
            alone.arrays["inputs"][:, 0] = -1
            batch = Batch()
            for number in range(len(arrays["inputs"])):
                batch.ids.append(alone.input_ids(number, special, double=double))
                batch.seconds.append(alone.second_start(number, double=double))
            with torch.inference_mode():
                vectors = embed_batch(self.encoder, batch, self.settings, self.device)
            arrays["vectors"] = vectors.cpu().numpy().astype(np.float16)

    def train(self) -> Iterator[dict[str, float]]:
        """Run the steps that are left; yield what each logged."""
        saved = time.monotonic()
        signal.signal(signal.SIGTERM, self._stop)
        while self.step < self.settings.steps and not self.stopped:
            began = time.monotonic()
            facts = self._one_step()
            facts["seconds"] = time.monotonic() - began
            yield facts
            if time.monotonic() - saved > 60 * self.settings.checkpoint_minutes:
                self.save()
                saved = time.monotonic()
        self.save()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """End the run after the step under way, with a checkpoint."""
        self.stopped = True

    def _one_step(self) -> dict[str, float]:
        settings = self.settings
        rate = settings.learning_rate * settings.rate_share(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        batch = self.mixture.batch()
        vectors = embed_batch(self.encoder, batch, settings, self.device)
        losses = objectives(vectors, batch, settings)
        weights = vars(settings)
        loss = torch.stack([weights[name] * value for name, value in losses.items()]).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(list(self.trained.values()), 1.0)
        self.optimizer.step()
        self.step += 1
        decay = min(settings.average, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for name, value in self.trained.items():
                self.average[name].lerp_(value.detach(), 1 - decay)
        facts = {name: float(value.detach()) for name, value in losses.items()}
        tokens = sum(map(len, batch.ids))
        inputs = len(batch.ids)
        return {"step": self.step, **facts, "norm": float(norm), "inputs": inputs, "tokens": tokens}

    def save(self) -> None:
        """Write the state to go on from, and the averaged weights."""
        state = {
            "step": self.step,
            "weights": {name: value.detach() for name, value in self.trained.items()},
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            "mixture": self.mixture.state(),
        }
        partial = self.out / f"{STATE_FILE}.partial"
        torch.save(state, partial)
        partial.replace(self.out / STATE_FILE)
        self._save_average()

    def _save_average(self) -> None:
        current = {name: value.detach().clone() for name, value in self.trained.items()}
        with torch.no_grad():
            for name, value in self.trained.items():
                value.copy_(self.average[name])
            weights = weights_of(self.encoder)
            halves = {name: value.half().contiguous().cpu() for name, value in weights.items()}
            for name, value in self.trained.items():
                value.copy_(current[name])
        partial = self.out / f"{WEIGHTS_FILE}.partial"
        save_file(halves, partial, metadata={"step": str(self.step), "format": "pt"})
        partial.replace(self.out / WEIGHTS_FILE)

    def _restore(self) -> None:
        state = torch.load(self.out / STATE_FILE, map_location=self.device, weights_only=True)
        with torch.no_grad():
            for name, value in self.trained.items():
                value.copy_(state["weights"][name])
        self.average = {name: state["average"][name] for name in self.trained}
        self.optimizer.load_state_dict(state["optimizer"])
        self.mixture.restore(state["mixture"])
        self.step = state["step"]


def train(settings: Settings, packed: Path, start: Path, out: Path) -> Path:
    """Train, or go on; returns the folder, whose weights are the running average."""
    if _steps_done(out) >= settings.steps:
        return out
    torch.manual_seed(settings.seed)
    run = Run(settings, packed, start, out)
    for name in ("config.json", "tokenizer.json"):
        source = start / name
        if source.is_file():
            (out / name).write_bytes(source.read_bytes())
    _LOGGER.info("from step %d", run.step)
    with (out / "log.jsonl").open("a", encoding="utf-8") as log:
        for facts in run.train():
            rounded = {name: round(value, 4) for name, value in facts.items()}
            log.write(json.dumps(rounded) + "\n")
            log.flush()
            if not all(math.isfinite(value) for value in facts.values()):
                raise SystemExit(f"step {run.step}: a loss is not finite")
    if run.stopped:
        raise SystemExit(f"stopped at step {run.step}; the same command continues")
    return out


def _steps_done(out: Path) -> int:
    if not (out / WEIGHTS_FILE).is_file():
        return 0
    with safe_open(out / WEIGHTS_FILE, "pt") as stored:
        return int(stored.metadata()["step"])


def main() -> None:
    """Train, or go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--packed", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "1")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(options.threads)
    train(Settings.load(options.settings), options.packed, options.start, options.out)


if __name__ == "__main__":
    main()
