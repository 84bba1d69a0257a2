"""What decides which rows are drawn from a table, and how conditions are worded."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from condsim.config import Settings
from condsim.errors import InputError


def _plain(value: object) -> object:
    """Refuses what YAML makes of an unquoted yes or no."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(
            f"A value of a criterion must be a text or a number. Got {value!r}; write yes, no, "
            "true and false in quotes."
        )
    return value


Value = Annotated[str | int | float, BeforeValidator(_plain)]
_Share = Annotated[float, Field(ge=0, le=1)]


class CriterionSettings(Settings):
    """How the values of one criterion compare, and how it is written as a condition."""

    what = "criterion"

    name: str | None = None  # the condition; the name of the criterion if None
    wordings: list[str] | None = None  # others of the condition; derived from ``name`` if None
    # Groups of values that count as one value.
    same: list[list[Value]] = Field(default_factory=list)
    # Groups of values that are neither alike nor different: such pairs are not used.
    near: list[list[Value]] = Field(default_factory=list)
    skip: list[Value] | None = None  # values that are not used, such as "other"
    # All values from the lowest to the highest; labels are graded by their distance.
    order: Annotated[list[Value], Field(min_length=2)] | None = None
    # Grades that a criterion of numbers is cut into; None takes ``bins`` of `CriteriaSettings`.
    bins: Annotated[int, Field(ge=2)] | None = None
    leave_out: bool = False  # whether the criterion is not used at all

    @model_validator(mode="after")
    def _fits_together(self) -> CriterionSettings:
        if self.order is not None and self.bins is not None:
            raise InputError("A criterion has an 'order' of its values or 'bins', not both.")
        for text in (self.name, *(self.wordings or ())):
            if text is not None and not text.strip():
                raise InputError("A condition must not be empty: see 'name' and 'wordings'.")
        return self


class CriteriaSettings(Settings):
    """How rows are drawn."""

    what = "criteria"

    rows: Annotated[int, Field(ge=2)] = 20_000  # most rows of each table
    # ``groups`` for training: all pairs of a few texts under the same conditions; ``pairs`` for
    # evaluation: two rows a pair, one alike and one different.
    form: Literal["groups", "pairs"] = "groups"
    group_size: Annotated[int, Field(ge=3, le=32)] = 6  # texts in a group
    # Share of groups whose words mislead: different texts share many, alike ones few.
    hard: _Share = 0.5
    # Share of rows whose condition is the name of the criterion; others have another wording.
    own_name: _Share = 0.5
    # ``exact`` leaves rows out so that each wording of each condition is as often alike as
    # different; ``none`` keeps them.
    balance: Literal["exact", "none"] = "exact"
    # Grades that criteria of numbers are cut into, each of about the same number of texts; None
    # compares numbers as names.
    bins: Annotated[int, Field(ge=2)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    criteria: dict[str, CriterionSettings] = Field(default_factory=dict)  # by name

    def of(self, criterion: str) -> CriterionSettings:
        """The settings of a criterion."""
        return self.criteria.get(criterion, _DEFAULT)


_DEFAULT = CriterionSettings()


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
