from .base import (
    Address as Address,
    Answer as Answer,
    Backend as Backend,
    Dialect as Dialect,
    base_address as base_address,
    environment_key as environment_key,
    is_completion as is_completion,
    read_answer as read_answer,
    without as without,
)
from .local import LocalBackend as LocalBackend
from .local_model import (
    NumberMass as NumberMass,
    Numbers as Numbers,
    PromptTokenizer as PromptTokenizer,
    load_weights as load_weights,
    longest_prompt as longest_prompt,
    open_checkpoint as open_checkpoint,
)
from .server import ServerBackend as ServerBackend
