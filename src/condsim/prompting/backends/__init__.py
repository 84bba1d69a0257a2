"""Back ends that answer prompts: a local model, or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.prompting.backends.address import (
        Address as Address,
        base_address as base_address,
        environment_key as environment_key,
    )
    from condsim.prompting.backends.base import (
        MAX_NEW_TOKENS as MAX_NEW_TOKENS,
        Answer as Answer,
        Backend as Backend,
    )
    from condsim.prompting.backends.dialect import (
        Dialect as Dialect,
        is_completion as is_completion,
        read_answer as read_answer,
        without as without,
    )
    from condsim.prompting.backends.local import LocalBackend as LocalBackend
    from condsim.prompting.backends.local_model import (
        load_weights as load_weights,
        open_checkpoint as open_checkpoint,
    )
    from condsim.prompting.backends.local_tokens import (
        NumberMass as NumberMass,
        Numbers as Numbers,
        PromptTokenizer as PromptTokenizer,
        longest_prompt as longest_prompt,
        padded as padded,
    )
    from condsim.prompting.backends.server import ServerBackend as ServerBackend

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "address": "Address base_address environment_key",
        "base": "Answer Backend MAX_NEW_TOKENS",
        "dialect": "Dialect is_completion read_answer without",
        "local": "LocalBackend",
        "local_model": "load_weights open_checkpoint",
        "local_tokens": "NumberMass Numbers PromptTokenizer longest_prompt padded",
        "server": "ServerBackend",
    },
    extra="llm",
)
