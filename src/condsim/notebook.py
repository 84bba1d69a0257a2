"""Tables in HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

ROWS_SHOWN = 10
"""Maximum number of rows that a notebook shows of a result."""

_MAX_TEXT_CHARACTERS = 120


def shortened(text: str, characters: int = _MAX_TEXT_CHARACTERS) -> str:
    """Put a text on one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def html_table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, more: int = 0
) -> str:
    """Lay out a title and a table without scripts or styles.

    Args:
        head: Names of the columns.
        rows: Cells; floats are rounded to two digits.
        more: Number of rows that are left out, said in a line below.
    """
    lines = [f"<p><strong>{escape(title)}</strong></p>"]
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines.append(f"<table>\n<thead><tr>{cells}</tr></thead>\n<tbody>")
    for row in rows:
        cells = "".join(f'<td dir="auto">{_cell(value)}</td>' for value in row)
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody>\n</table>")
    if more > 0:
        lines.append(f"<p>{more:,} more</p>")
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.2f}"
        case int():
            return f"{value:,}"
    return escape(shortened(str(value)))
