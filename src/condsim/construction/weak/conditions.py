"""What a condition is about, whatever its wording.

"The number of people.", "How many persons there are" and "people count" have one key: the set of
their words that carry meaning, in the singular, with words of one meaning made one.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["condition_key"]

_EMPTY = frozenset(
    "the a an of is are being in on by to that this these those it for with there do does be was "
    "at present involved shown used involving taking performed played depicted seen visible "
    "mentioned main scene picture image what which how their his her its he she they whether under "
    "who whom each total overall current relative described s has have and".split()
)
_SAME = {
    "people": "person",
    "human": "person",
    "individual": "person",
    "subject": "person",
    "somebody": "person",
    "someone": "person",
    "men": "man",
    "male": "man",
    "women": "woman",
    "female": "woman",
    "kid": "child",
    "children": "child",
    "colour": "color",
    "coloring": "color",
    "coloration": "color",
    "sex": "gender",
    "amount": "number",
    "quantity": "number",
    "count": "number",
    "many": "number",
    "kind": "type",
    "name": "type",
    "sort": "type",
    "species": "type",
    "breed": "type",
    "variety": "type",
    "identity": "type",
    "category": "type",
    "old": "age",
    "location": "place",
    "where": "place",
    "setting": "place",
    "surroundings": "place",
    "surrounding": "place",
    "environment": "place",
    "venue": "place",
    "scenery": "place",
    "backdrop": "place",
    "background": "place",
    "motion": "action",
    "movement": "action",
    "behavior": "action",
    "doing": "action",
    "activities": "activity",
    "hobby": "activity",
    "hobbies": "activity",
    "pastime": "activity",
    "clothe": "clothing",
    "clothes": "clothing",
    "outfit": "clothing",
    "attire": "clothing",
    "apparel": "clothing",
    "wearings": "clothing",
    "worn": "clothing",
    "uniform": "clothing",
    "item": "object",
    "thing": "object",
    "automobile": "vehicle",
    "transportation": "transport",
    "posture": "position",
    "pose": "position",
    "stance": "position",
    "sports": "sport",
    "occupation": "job",
    "profession": "job",
    "absence": "presence",
    "sentiment": "mood",
    "emotion": "mood",
    "expression": "mood",
    "feeling": "mood",
}
_SINGULAR = {"dishes": "dish", "buses": "bus", "sandwiches": "sandwich", "benches": "bench"}
_KEPT = frozenset("bus species tennis glass grass dress surroundings gas series dishes".split())


@cache
def condition_key(condition: str) -> frozenset[str]:
    """Gives the words of a condition that carry its meaning.

    Args:
        condition: The condition, in whatever wording.

    Returns:
        The words; empty if there are none.

    Example:
        >>> condition_key("The number of people.") == condition_key("How many persons there are")
        True
    """
    return frozenset(
        word for word in map(_plain, re.findall(r"[a-z0-9]+", condition.lower())) if word
    )


def _plain(word: str) -> str:
    if word in _EMPTY:
        return ""
    word = _SAME.get(word, word)
    if word in _SINGULAR:
        word = _SINGULAR[word]
    elif word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes", "oes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3 and word not in _KEPT:
        word = word[:-1]
    return _SAME.get(word, word)
