"""The report of a suite as a picture. Needs the ``train`` extra (matplotlib)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condsim.errors import require
from condsim.evaluation.suite_published import PUBLISHED
from condsim.evaluation.suite_result import AVERAGE, SuiteReport
from condsim.files import replacing

__all__ = ["heat_map"]

_DARK = 0.45  # share of the colour scale from which on text is black


def heat_map(report: SuiteReport, path: Path, *, published: bool = False) -> None:
    """Draws figures as colours with the numbers in them: a row a scorer, a column a data set.

    Args:
        report: The report.
        path: The PNG file to write.
        published: Whether the published rows are drawn below ours, where they can be compared.

    Raises:
        InputError: If the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    names, values = [], []
    for row in report.rows:
        names.append(row.name)
        found = [report.main_figure(row, key) for key in report.keys]
        values.append([np.nan if figure is None else figure.value for figure in found])
    if published:
        same = {column.key for column in report.columns if column.published} | {AVERAGE}
        for line in PUBLISHED:
            shown = [
                line.figures.get(key, np.nan) if key in same else np.nan for key in report.keys
            ]
            if not np.isnan(shown).all():
                names.append(f"{line.name} ({line.source})")
                values.append(shown)
    cells = np.array(values, dtype=np.float64)  # (rows, columns)
    columns, rows = len(report.keys), len(names)
    figure = Figure(figsize=(2.8 + 0.72 * columns, 1.0 + 0.34 * rows), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.clip(cells, 0, 100), vmin=0, vmax=100, cmap="viridis", aspect="auto")
    axes.set_xticks(range(columns), [report.title(key) for key in report.keys])
    axes.set_yticks(range(rows), names, parse_math=False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    for (row_number, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            colour = "black" if value / 100 > _DARK else "white"
            axes.text(
                column,
                row_number,
                f"{value:.1f}",
                ha="center",
                va="center",
                fontsize=8,
                color=colour,
            )
    if published:
        axes.axhline(len(report.rows) - 0.5, color="white", linewidth=3)
    figure.colorbar(image, ax=axes, label="x 100", fraction=0.03, pad=0.01)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
