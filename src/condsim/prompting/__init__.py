"""Language models as scorers: prompts, examples, answers and the back ends that give them.

Source: Deshpande et al. (2023), C-STS, §4.2, A.3 and Appendix B.
"""

from __future__ import annotations

from condsim.prompting.asking import Asker, Budget, Usage
from condsim.prompting.backends.base import Answer, Backend
from condsim.prompting.instructions import instruction_text
from condsim.prompting.parsing import parse_score
from condsim.prompting.prompt import Example, render
from condsim.prompting.settings import PromptSettings, load_settings, save_settings
from condsim.prompting.shots import Shots
from condsim.prompting.store import AnswerStore

__all__ = [
    "Answer",
    "AnswerStore",
    "Asker",
    "Backend",
    "Budget",
    "Example",
    "PromptSettings",
    "Shots",
    "Usage",
    "instruction_text",
    "load_settings",
    "parse_score",
    "render",
    "save_settings",
]
