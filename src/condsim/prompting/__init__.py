"""Language models as scorers."""

from condsim.errors import requires_extra

with requires_extra("llm"):
    from condsim.prompting.prompt import Example, instruction_text, render

__all__ = ["Example", "instruction_text", "render"]
