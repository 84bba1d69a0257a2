"""A small head that gives each condition its share of the plain vector.

The share is a logistic function of the vector of the condition read alone. It is fitted to the
order of rows of one group, on natural and balanced rows; texts stay as the model embeds them. A
fixed share fitted in the same way is measured next to it.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from papers.model.groups import Input, read_groups
from papers.model.natural import checkpoint_embedder, stored, suite
from papers.model.pack import bare

_LOGGER = logging.getLogger("condsim")

SOURCES = {
    "criteria": 700,
    "attributes": 400,
    "duplicates": 300,
    "graded": 500,
    "queries": 250,
    "written": 300,
    "balanced-csts": 300,
    "balanced-criteria": 100,
}
"""Groups of each source that the head is fitted on."""
SCALE, LEAST_GAP, STEPS = 12.0, 0.1, 400
LARGEST_SHARE = 0.6
# Penalty on the squared weights.
PENALTY = 0.002


def comparisons(
    rows: Path, draw: random.Random
) -> tuple[list[Input], list[tuple[int, int, int, int]]]:
    """Inputs, and rows to compare: two inputs of the higher label, two of the lower."""
    numbers: dict[Input, int] = {}
    compared: list[tuple[int, int, int, int]] = []
    for name, most in SOURCES.items():
        groups = list(read_groups(rows / f"{name}.jsonl.gz"))
        for group in draw.sample(groups, min(most, len(groups))):
            places = [numbers.setdefault(one, len(numbers)) for one in group.inputs]
            pairs = [
                (high, low)
                for high in group.rows
                for low in group.rows
                if high[2] > low[2] + LEAST_GAP
            ]
            for high, low in draw.sample(pairs, min(8, len(pairs))):
                first, second, third, fourth = *high[:2], *low[:2]
                compared.append((places[first], places[second], places[third], places[fourth]))
    return list(numbers), compared


def _cosines(vectors: Tensor, table: Tensor, side: int) -> Tensor:
    return (vectors[table[:, side]] * vectors[table[:, side + 1]]).sum(1)


def main() -> None:
    """Fit a head and write the share of every condition of the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    draw = random.Random(0)
    inputs, compared = comparisons(options.rows, draw)
    asked = sorted({bare(condition) or "" for condition, _ in inputs if condition})
    tests = suite(options.data, quick=True)
    measured = sorted({condition for test in tests for condition, _ in test.inputs if condition})
    wanted: list[Input] = [
        *inputs,
        *((None, text) for _, text in inputs),
        *((None, condition) for condition in asked),
        *((None, bare(condition) or "") for condition in measured),
    ]
    embed = stored(checkpoint_embedder(options.model), options.model, options.vectors)
    whole = torch.from_numpy(embed(wanted))
    sizes = [len(inputs), len(inputs), len(asked), len(measured)]
    with_condition, plain, own, others = torch.split(whole, sizes)
    table = torch.tensor(compared)
    place = {condition: number for number, condition in enumerate(asked)}
    conditions = torch.tensor(
        [place.get(bare(inputs[row[0]][0]) or "", -1) for row in compared], dtype=torch.long
    )
    known = conditions >= 0
    table, conditions = table[known], conditions[known]
    gaps = [_cosines(with_condition, table, 0) - _cosines(with_condition, table, 2)]
    gaps.append(_cosines(plain, table, 0) - _cosines(plain, table, 2))
    # Whole conditions are held out: a head that knows conditions by heart is of no use.
    held_out = torch.rand(len(asked), generator=torch.Generator().manual_seed(0)) < 0.2
    validation = held_out[conditions]
    weight = torch.zeros(own.shape[1], requires_grad=True)
    bias = torch.tensor(-1.0, requires_grad=True)
    results: dict[str, float] = {}
    for head in (False, True):
        trained = [weight, bias] if head else [bias]
        optimizer = torch.optim.Adam(trained, lr=0.03)
        for _ in range(STEPS):
            shares = LARGEST_SHARE * torch.sigmoid(own @ weight + bias)[conditions]
            margins = (1 - shares) * gaps[0] + shares * gaps[1]
            losses = F.softplus(-SCALE * margins)
            loss = losses[~validation].mean() + PENALTY * weight.square().sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        name = "head" if head else "fixed"
        results[name] = float(losses[validation].detach().mean())
        if not head:
            results["fixed share"] = LARGEST_SHARE * float(torch.sigmoid(bias.detach()))
    with torch.no_grad():
        given = LARGEST_SHARE * torch.sigmoid(others @ weight + bias)
    shares_of = {c: round(float(s), 3) for c, s in zip(measured, given, strict=True)}
    mean = float(np.mean(list(shares_of.values())))
    options.out.write_text(
        json.dumps({"mean": mean, "losses": results, "shares": shares_of}, indent=1),
        encoding="utf-8",
    )
    _LOGGER.info("%s; mean share %.2f", results, mean)


if __name__ == "__main__":
    main()
