"""Griffe extension for the API pages: a section ``Example:`` is one of ``Examples:``.

Griffe reads doctests in sections of the second name only and takes the first for plain text.
"""

from __future__ import annotations

import re

import griffe


class ExampleSections(griffe.Extension):
    """Rename the section of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rename the section in the docstring of an object."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
