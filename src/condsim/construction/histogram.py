"""The distribution of the labels as a plot (C-STS Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from condsim.construction.votes import LABELS
from condsim.errors import require
from condsim.files import replacing
from condsim.types import Task

__all__ = ["label_histogram"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")  # of Okabe and Ito


def label_histogram(splits: Mapping[str, Task], path: Path) -> None:
    """Draws the share of each label in each split.

    Args:
        splits: Rows with labels by the name of their split.
        path: The PNG file to write.

    Raises:
        InputError: If the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    require("matplotlib", extra="build")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    panel = figure.subplots()
    width = 0.8 / len(splits)
    for number, (name, task) in enumerate(splits.items()):
        labels = task.labels[task.valid]
        # A median between two labels counts for the lower and the upper one half each.
        shares = [100 * float(np.clip(1 - np.abs(labels - label), 0, 1).mean()) for label in LABELS]
        places = np.array(LABELS) + (number - (len(splits) - 1) / 2) * width
        colour = COLOURS[number % len(COLOURS)]
        panel.bar(places, shares, width * 0.92, color=colour, label=f"{name} ({len(labels):,})")
    panel.set_xticks(LABELS)
    panel.set_xlabel("similarity under the condition (1: different, 5: alike)")
    panel.set_ylabel("% of the rows of the split")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, title="split (rows)", alignment="left")
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
