"""Draws the picture of the README: one pair of texts under six conditions.

Needs ``pip install matplotlib``. Run it as ``python examples/plot_conditions.py conditions.png``.
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

import condsim

PAIR = (
    "A man in a white cap serves a tennis ball on a clay court.",
    "A young girl in a white dress swings her racket on a clay court.",
)
CONDITIONS = (
    "the number of people",
    "the location",
    "the sport being played",
    "the color of the clothes",
    "the age of the player",
    "the gender of the person",
)


def draw(path: str) -> None:
    """Draws the scores of the pair and writes the picture."""
    model = condsim.load()
    scores = [model.score(*PAIR, condition) for condition in CONDITIONS]
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    colors = ["#2a6f97" if score >= 0.5 else "#c8553d" for score in scores]
    bars = axes.barh(CONDITIONS, scores, color=colors, height=0.62)
    axes.bar_label(bars, [f"{score:.2f}" for score in scores], padding=4, fontsize=10)
    axes.set(xlim=(0, 1.08), xlabel="similarity (0.5 is the middle of the human scale)")
    axes.axvline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title("\n".join(f"“{text}”" for text in PAIR), fontsize=10, loc="left")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(sys.argv[1])
