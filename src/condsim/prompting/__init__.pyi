from .asking import (
    AnswerStore as AnswerStore,
    Asker as Asker,
    Budget as Budget,
    Usage as Usage,
    answer_key as answer_key,
)
from .backends import (
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
    Shots as Shots,
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
    MAX_NEW_TOKENS as MAX_NEW_TOKENS,
    PromptSettings as PromptSettings,
    Scoring as Scoring,
    load_settings as load_settings,
    prompt_settings as prompt_settings,
    save_settings as save_settings,
)
