"""A console that shows the control characters of data, apart from `console`: rich loads slowly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Terminal(Console):
    """A console that shows control characters of data as pictures and sends none of them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render as the base class does, without control characters in the text."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control is None and not text.isprintable():
                text = _CONTROL.sub(lambda match: _picture(match.group()), text)
                yield Segment(text, segment.style)
            else:
                yield segment


def _picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"
