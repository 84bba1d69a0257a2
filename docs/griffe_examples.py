"""Griffe extension for the API pages: sections ``Example:``, and overloads under a public name.

Griffe reads doctests in sections called ``Examples:`` and takes ``Example:`` for plain text. It
shows the overloads of a function that is public under another name with the name in its module.
"""

from __future__ import annotations

import re

import griffe

# Public names of functions with overloads that are called otherwise in their modules.
PUBLIC_NAMES = {"condsim.loading.load_scorer": "load"}


class ExampleSections(griffe.Extension):
    """Rename the section of every docstring, and the overloads of a renamed function."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rename the section in the docstring of an object."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Rename overloads once all of them are known."""
        for path, name in PUBLIC_NAMES.items():
            function = pkg.modules_collection[path]
            for overload in function.overloads or ():
                overload.name = name
