"""Ways to write one condition, from short notes to whole questions."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["wordings_of"]

_HEADS: dict[str, tuple[str, ...]] = {
    "number": (
        "amount of {x}",
        "quantity of {x}",
        "how many {x} there are",
        "how many {x} are there?",
        "{x} count",
        "count of {x}",
        "total number of {x}",
    ),
    "color": (
        "colour of {x}",
        "what color the {x} is",
        "which color the {x} has",
        "{x} color",
        "{x}'s color",
        "the main color of the {x}",
    ),
    "type": (
        "kind of {x}",
        "name of {x}",
        "what kind of {x} it is",
        "{x} type",
        "which {x} is shown",
        "sort of {x}",
        "{x}",
    ),
    "gender": ("sex of {x}", "{x}'s gender", "whether the {x} is male or female", "gender"),
    "age": ("how old the {x} is", "{x}'s age", "age group of {x}", "the age of the {x}", "age"),
    "action": (
        "what the {x} is doing",
        "motion of {x}",
        "{x}'s action",
        "movement of {x}",
        "actions of {x}",
        "what is the {x} doing?",
    ),
    "activity": ("activity of the {x}", "{x}'s activity", "what the {x} does", "hobby of {x}"),
    "location": (
        "place of {x}",
        "where the {x} is",
        "{x}'s location",
        "setting of {x}",
        "where is the {x}?",
    ),
    "presence": (
        "presence of a {x}",
        "whether there is a {x}",
        "is there a {x}?",
        "{x} is present",
    ),
    "position": ("posture of {x}", "{x}'s position", "body position of {x}", "stance of {x}"),
    "speed": ("how fast the {x} moves", "{x}'s speed", "the speed of the {x}"),
    "size": ("how big the {x} is", "{x}'s size", "{x} size"),
    "material": ("what the {x} is made of", "{x} material"),
}


def wordings_of(name: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Gives ways to write a condition.

    Args:
        name: The condition in plain words, such as ``"number of people"``; of what stands before
            the first " of ", ``number``, ``color``, ``type`` and more have wordings of their own.
        extra: Further wordings.

    Returns:
        The name first; each wording once, as a note (small letters), and with an article, a capital
        letter and a full stop.

    Example:
        >>> wordings_of("number of dogs")[:3]
        ('number of dogs', 'The number of dogs.', 'the number of dogs')
    """
    made = dict.fromkeys(style for text in _plain(name, extra) for style in _styles(text))
    return tuple(made)


def _plain(name: str, extra: tuple[str, ...]) -> Iterator[str]:
    yield name
    head, _, rest = name.partition(" of ")
    if rest:
        yield from (template.format(x=rest) for template in _HEADS.get(head, ()))
    yield from extra


def _styles(text: str) -> Iterator[str]:
    yield text
    start = text.split(" ")[0]
    if text.endswith("?"):
        yield text[0].upper() + text[1:]
    elif start in ("how", "what", "where", "which", "whether", "the"):
        yield text[0].upper() + text[1:] + "."
    else:
        yield f"The {text}."
        yield f"the {text}"
        yield text[0].upper() + text[1:] + "."
