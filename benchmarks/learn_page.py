"""The page and the picture of ``python -m benchmarks.learn_curve``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.io import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Figures = dict[str, float]
Results = dict[str, dict[str, list[Figures]]]
"""The figures of each draw, by number of labels and by set."""

_BOOTSTRAPS = 2_000
_LINES = {
    "criterion": ("C0", "criterion"),
    "condition alone": ("C7", "condition alone"),
    "no condition": ("C1", "learned without the condition"),
}
_F1_LINES = {
    "F1 criterion": ("C0", "criterion"),
    "F1 SetFit": ("C3", "SetFit"),
    "F1 regression": ("C2", "logistic regression"),
    "F1 neighbor": ("C4", "nearest neighbor"),
}


def mean_of(sets: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Average over draws and sets, with a 95 % interval: a bootstrap over sets, then draws."""
    generator = np.random.default_rng(0)
    drawn = np.stack(
        [generator.choice(draws, (_BOOTSTRAPS, len(draws))).mean(axis=1) for draws in sets]
    )
    shape = (_BOOTSTRAPS, len(sets))
    rows, columns = (
        generator.integers(0, len(sets), shape),
        generator.integers(0, _BOOTSTRAPS, shape),
    )
    means = drawn[rows, columns].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(np.mean([np.mean(draws) for draws in sets])), float(low), float(high)


def column(sets: Mapping[str, list[Figures]], name: str) -> list[list[float]]:
    """List one figure of the draws of each set that has it."""
    return [
        [draw[name] for draw in draws if name in draw]
        for draws in sets.values()
        if any(name in draw for draw in draws)
    ]


def gains(sets: Mapping[str, list[Figures]], better: str, base: str) -> list[list[float]]:
    """List by how much one figure exceeds another, where a draw has both."""
    both = {
        key: [{"gain": draw[better] - draw[base]} for draw in draws if {better, base} <= set(draw)]
        for key, draws in sets.items()
    }
    return column(both, "gain")


def tables(results: Results, unseen: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of two tables for each number of labels, with means and intervals."""
    for labels, sets in results.items():
        names = list(dict.fromkeys(name for draws in sets.values() for name in draws[0]))
        yield f"\n## {labels} labels\n\nAUC of pairs:\n"
        yield from _table([name for name in names if name in _LINES], sets, unseen)
        gained = gains(sets, "criterion", "condition alone")
        mean, low, high = mean_of(gained)
        changes = [change for draws in gained for change in draws]
        yield (
            f"\nAgainst the condition alone: {mean:+.1f} [{low:+.1f}, {high:+.1f}], "
            f"{min(changes):+.1f} in the worst of {len(changes)} draws; "
            f"{sum(change < -1 for change in changes)} lose more than a point."
        )
        yield "\nMacro F1 and accuracy of the values:\n"
        yield from _table([name for name in names if name not in _LINES], sets, unseen)


def _table(
    names: Sequence[str], sets: Mapping[str, list[Figures]], unseen: tuple[str, ...]
) -> Iterator[str]:
    yield "| set, criterion | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * len(names)
    for key, draws in sets.items():
        cells = (_mean([draw[name] for draw in draws if name in draw]) for name in names)
        yield f"| {key} | " + " | ".join(cells) + " |"
    held = {key: draws for key, draws in sets.items() if key.startswith(unseen)}
    compared = {
        key: [draw for draw in draws if "F1 SetFit" in draw]
        for key, draws in sets.items()
        if "F1 SetFit" in draws[0]
    }
    for title, chosen in (
        ("mean", sets),
        ("mean, sets not trained on", held),
        ("mean, draws of SetFit", compared),
    ):
        if chosen and not (chosen is compared and names[0] in _LINES):
            cells = (_interval(column(chosen, name)) for name in names)
            yield f"| **{title}** | " + " | ".join(cells) + " |"


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.1f}" if values else ""


def _interval(sets: list[list[float]]) -> str:
    if not sets:
        return ""
    mean, low, high = mean_of(sets)
    return f"**{mean:.1f}** [{low:.0f}, {high:.0f}]"


def plot(results: Results, path: Path) -> None:
    """Draw AUC and macro F1 against the number of labels, of the sets that have all numbers."""
    from matplotlib.figure import Figure

    whole = set.intersection(*(set(sets) for sets in results.values()))
    compared = {
        key
        for sets in results.values()
        for key, draws in sets.items()
        if key in whole and "F1 SetFit" in draws[0]
    }
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    auc, f1 = figure.subplots(1, 2)
    _draw(auc, results, whole, _LINES, ("criterion", "condition alone"))
    auc.set_title(f"AUC of pairs, {len(whole)} criteria", fontsize=10)
    _draw(f1, results, compared or whole, _F1_LINES, ("F1 criterion", "F1 regression"))
    f1.set_title(f"macro F1 of assigned values, {len(compared or whole)} criteria", fontsize=10)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=110, metadata={"Software": None})


def _draw(
    panel: Axes,
    results: Results,
    keys: set[str],
    lines: Mapping[str, tuple[str, str]],
    gain: tuple[str, str],
) -> None:
    """Draw lines of figures, and a band: the interval of what one of them gains over another."""
    chosen = {
        int(labels): {key: draws for key, draws in sets.items() if key in keys}
        for labels, sets in results.items()
    }
    for name, (color, label) in lines.items():
        means = {
            number: mean_of(column(sets, name))[0]
            for number, sets in chosen.items()
            if column(sets, name)
        }
        panel.plot(list(means), list(means.values()), "o-", color=color, markersize=4, label=label)
        base = [gains(sets, *gain) for sets in chosen.values()]
        if name == gain[0] and all(base):
            ends = [mean_of(gained) for gained in base]
            below = [
                middle - mean + low
                for middle, (mean, low, _) in zip(means.values(), ends, strict=True)
            ]
            above = [
                middle - mean + high
                for middle, (mean, _, high) in zip(means.values(), ends, strict=True)
            ]
            panel.fill_between(list(means), below, above, color=color, alpha=0.12, linewidth=0)
    panel.set_xscale("log")
    panel.set_xticks(list(chosen), [str(number) for number in chosen])
    panel.minorticks_off()
    panel.set_xlabel("labeled texts")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=8)
