from .asking import Asker as Asker, Budget as Budget, Usage as Usage
from .backends import (
    MAX_NEW_TOKENS as MAX_NEW_TOKENS,
    Address as Address,
    Answer as Answer,
    Backend as Backend,
    LocalBackend as LocalBackend,
    ServerBackend as ServerBackend,
)
from .prompt import (
    INSTRUCTIONS as INSTRUCTIONS,
    Example as Example,
    Instruction as Instruction,
    check_parsing as check_parsing,
    instruction_text as instruction_text,
    parse_score as parse_score,
    render as render,
)
from .scorer import (
    PromptScorer as PromptScorer,
    likert_range as likert_range,
    open_asker as open_asker,
    open_prompt_scorer as open_prompt_scorer,
)
from .settings import (
    ANSWERS as ANSWERS,
    PromptSettings as PromptSettings,
    Scoring as Scoring,
    load_settings as load_settings,
    prompt_settings as prompt_settings,
    save_settings as save_settings,
)
from .shots import Shots as Shots
from .store import AnswerStore as AnswerStore, answer_key as answer_key
