"""Several wordings of a condition, derived from the name of a criterion."""

from __future__ import annotations

import re

_ARTICLE = re.compile("(?:the|a|an) ", re.IGNORECASE)
_OPINION = re.compile("(?:opinion|sentiment|view|attitude) (?:about|of|on|towards?|to) ")
_KIND = re.compile("(?:kind|type|sort|category) of ")
_CLAUSE = re.compile(r"(?:who|what|which|where|when|why|how|whether|if)\b", re.IGNORECASE)


def derive_wordings(name: str) -> tuple[str, ...]:
    """Writes a criterion as conditions in several ways.

    Args:
        name: The criterion, such as ``"the opinion about the food"`` or ``"order_status"``.

    Returns:
        Its plain name first, then other wordings, each once.

    Example:
        >>> derive_wordings("the kind of food")[:4]
        ('the kind of food', 'type of food', 'which food', 'What kind of food is it?')
        >>> derive_wordings("order_status")[:3]
        ('order status', 'the order status', 'which order status')
    """
    plain = " ".join(name.replace("_", " ").split())
    bare = _ARTICLE.sub("", plain, count=1) if _ARTICLE.match(plain) else plain
    found = [*_special(plain, bare), f"with regard to {_noun(plain, bare)}", _sentence(plain)]
    return tuple(dict.fromkeys((plain, *found)))


def _special(plain: str, bare: str) -> list[str]:
    """Wordings by the form of the name."""
    if match := _OPINION.match(bare):
        about = bare[match.end() :]
        return [
            f"opinion of {about}",
            f"what is said about {about}",
            f"How good is {about}?",
            f"whether {about} is praised or criticised",
        ]
    if match := _KIND.match(bare):
        kind = bare[match.end() :]
        return [f"type of {kind}", f"which {kind}", f"What kind of {kind} is it?"]
    if bare.startswith("whether it is "):
        rest = bare.removeprefix("whether it is ")
        return [f"if it is {rest}", f"Is it {rest}?", f"{rest} or not"]
    if _CLAUSE.match(bare):
        return []
    if len(bare.split()) > 3:
        return [bare, f"the same {bare}"]
    return [bare, f"the {bare}", f"which {bare}", f"the same {bare}"]


def _noun(plain: str, bare: str) -> str:
    """The name as it stands after a preposition."""
    return plain if _CLAUSE.match(bare) else f"the {bare}"


def _sentence(plain: str) -> str:
    return f"{plain[0].upper()}{plain[1:]}."
