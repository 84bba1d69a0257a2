"""Language models as scorers.

The names are imported when they are asked for: ``condsim --help`` must not load what they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.errors import lazy_names, requires_extra

if TYPE_CHECKING:
    from condsim_llm.prompt import Example, instruction_text, render

__all__ = ["Example", "instruction_text", "render"]

_PLACES = {name: f"condsim_llm.prompt.{name}" for name in __all__}

__getattr__ = requires_extra("llm")(lazy_names(__name__, _PLACES))
