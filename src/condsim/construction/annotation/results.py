"""What an annotator filled in, read from what Label Studio keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from condsim.construction.annotation.stages import VERDICTS, Answer

__all__ = ["answer_of", "rating_of", "text_of"]

_LABELS = frozenset(verdict.label for verdict in VERDICTS)


def answer_of(regions: Sequence[Mapping[str, Any]]) -> Answer:
    """Reads the regions of an annotation.

    Args:
        regions: The ``result`` of an annotation; what condsim did not ask for is passed over.

    Returns:
        The answer; a field without a usable value is None.
    """
    values = {region.get("from_name"): region.get("value") or {} for region in regions}
    choices = values.get("rating", {}).get("choices") or []
    return Answer(
        high=text_of(values.get("high", {}).get("text")),
        low=text_of(values.get("low", {}).get("text")),
        rating=rating_of(choices[0]) if len(choices) == 1 else None,
    )


def text_of(value: object) -> str | None:
    """Reads a text field.

    Args:
        value: A text, or the list of texts that Label Studio keeps.

    Returns:
        The words with single spaces; None if there are none.
    """
    texts = value if isinstance(value, list) else [value]
    words = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str)).strip()
    return words or None


def rating_of(value: object) -> int | None:
    """Reads a rating.

    Args:
        value: A number, or a text of one.

    Returns:
        1 to 5, -1 for a condition that does not apply, or None for anything else.
    """
    try:
        rating = float(str(value).strip())
    except ValueError:
        return None
    return int(rating) if rating in _LABELS else None
