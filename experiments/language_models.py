"""Which language models there are: those of the C-STS paper, and any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from condsim.errors import InputError
from experiments.backbones import Backbone
from experiments.naming import slug

PAPER_MODELS = {
    model.key: model
    for model in (
        Backbone("flan-t5-small", "Flan-T5 small", "google/flan-t5-small"),
        Backbone("flan-t5-base", "Flan-T5 base", "google/flan-t5-base"),
        Backbone("flan-t5-large", "Flan-T5 large", "google/flan-t5-large"),
        Backbone("flan-t5-xl", "Flan-T5 XL", "google/flan-t5-xl"),
        Backbone("flan-t5-xxl", "Flan-T5 XXL", "google/flan-t5-xxl"),
        Backbone("flan-ul2", "Flan-UL2", "google/flan-ul2"),
        Backbone("tk-instruct-3b", "Tk-Instruct 3B", "allenai/tk-instruct-3b-def-pos"),
        Backbone("tk-instruct-11b", "Tk-Instruct 11B", "allenai/tk-instruct-11b-def-pos"),
        Backbone("gpt-3.5-turbo-0301", "ChatGPT-3.5", "gpt-3.5-turbo-0301"),
        Backbone("gpt-4-0314", "GPT-4", "gpt-4-0314"),
    )
}
"""The language models of the C-STS paper, by key, in the order of its Table 11."""

_HOSTED = ("gpt-3.5-turbo-0301", "gpt-4-0314")


def hosted(model: Backbone) -> bool:
    """Whether a model can be had from OpenAI only.

    Args:
        model: The model.

    Returns:
        True for the two GPT models of the paper.
    """
    return model.key in _HOSTED


def resolve_models(given: Sequence[str]) -> tuple[Backbone, ...]:
    """Reads the values of ``--model``.

    Args:
        given: Keys or names of the paper's models, Hub names, folders, or a server's names.

    Returns:
        The models, each once, in the order given.

    Raises:
        InputError: If a name is empty, or two models would have the same name in the tables.
    """
    named = PAPER_MODELS | {model.model: model for model in PAPER_MODELS.values()}
    found: dict[str, Backbone] = {}
    for name in given:
        model = named.get(name) or _other(name)
        if found.setdefault(model.label, model) != model:
            raise InputError(
                f"--model: {found[model.label].model!r} and {model.model!r} would have one name, "
                f"{model.label!r}; run them one at a time."
            )
    return tuple(found.values())


def _other(name: str) -> Backbone:
    """A model that is none of the paper's, whatever it is called: its key is no key of these."""
    if not slug(name):
        raise InputError(
            f"--model takes a Hub name, a folder or a server's name for its model. Got {name!r}."
        )
    path = Path(name)
    return Backbone(f"other:{name}", path.name if path.is_absolute() else name, name)
