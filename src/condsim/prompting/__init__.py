"""Language models as scorers: prompts, examples, answers and the back ends that give them.

Source: Deshpande et al. (2023), C-STS, §4.2, A.3 and Appendix B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.prompting.asking import Asker as Asker, Budget as Budget, Usage as Usage
    from condsim.prompting.backends import (
        MAX_NEW_TOKENS as MAX_NEW_TOKENS,
        Address as Address,
        Answer as Answer,
        Backend as Backend,
        LocalBackend as LocalBackend,
        ServerBackend as ServerBackend,
    )
    from condsim.prompting.prompt import (
        INSTRUCTIONS as INSTRUCTIONS,
        Example as Example,
        Instruction as Instruction,
        check_parsing as check_parsing,
        instruction_text as instruction_text,
        parse_score as parse_score,
        render as render,
    )
    from condsim.prompting.scorer import (
        PromptScorer as PromptScorer,
        likert_range as likert_range,
        open_asker as open_asker,
        open_prompt_scorer as open_prompt_scorer,
    )
    from condsim.prompting.settings import (
        ANSWERS as ANSWERS,
        PromptSettings as PromptSettings,
        Scoring as Scoring,
        load_settings as load_settings,
        prompt_settings as prompt_settings,
        save_settings as save_settings,
    )
    from condsim.prompting.shots import Shots as Shots
    from condsim.prompting.store import AnswerStore as AnswerStore, answer_key as answer_key

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "asking": "Asker Budget Usage",
        "backends": "Address Answer Backend LocalBackend MAX_NEW_TOKENS ServerBackend",
        "prompt": (
            "Example INSTRUCTIONS Instruction check_parsing instruction_text parse_score render"
        ),
        "scorer": "PromptScorer likert_range open_asker open_prompt_scorer",
        "settings": "ANSWERS PromptSettings Scoring load_settings prompt_settings save_settings",
        "shots": "Shots",
        "store": "AnswerStore answer_key",
    },
    extra="llm",
)
