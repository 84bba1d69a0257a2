"""Settings of the rows that are drawn from labeled tables, and the wordings of conditions."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from condsim.config import Settings
from condsim.errors import InputError


def _check_value(value: object) -> object:
    """Refuse the booleans that YAML makes of an unquoted yes or no."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(
            f"The values of a criterion must be texts or numbers, got {value!r}; write yes, no, "
            "true and false in quotes."
        )
    return value


Value = Annotated[str | int | float, BeforeValidator(_check_value)]
Condition = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class CriterionSettings(Settings):
    """Comparison of the values of one criterion, and its wordings as a condition."""

    subject = "criterion"

    # The condition; the name of the criterion if None.
    name: Condition | None = None
    # Further wordings of the condition; derived from ``name`` if None.
    wordings: list[Condition] | None = None
    # Groups of values that count as one value.
    same: list[list[Value]] = Field(default_factory=list)
    # Groups of values that are neither alike nor different: such pairs are not used.
    near: list[list[Value]] = Field(default_factory=list)
    # Values that are not used, such as "other".
    skip: list[Value] | None = None
    # All values from the lowest to the highest; labels are graded by their distance.
    order: Annotated[list[Value], Field(min_length=2)] | None = None
    # Grades of a criterion of numbers; None takes ``bins`` of `CriteriaSettings`.
    bins: Annotated[int, Field(ge=2)] | None = None
    # Whether the criterion is ignored.
    leave_out: bool = False

    @model_validator(mode="after")
    def _check(self) -> CriterionSettings:
        if self.order is not None and self.bins is not None:
            raise InputError("A criterion has an 'order' of its values or 'bins', not both.")
        return self


_DEFAULT = CriterionSettings()


class CriteriaSettings(Settings):
    """Number, form and balance of the rows that are drawn."""

    subject = "criteria"

    # Maximum number of rows of each table.
    rows: Annotated[int, Field(ge=2)] = 20_000
    # ``groups`` for training: all pairs of a few texts under the same conditions; ``pairs`` for
    # evaluation: two rows a pair, one alike and one different.
    form: Literal["groups", "pairs"] = "groups"
    # Texts in a group.
    group_size: Annotated[int, Field(ge=3, le=32)] = 6
    # Share of groups whose words mislead: different texts share many, alike ones few.
    hard: Share = 0.5
    # Share of rows whose condition is the name of the criterion; others have another wording.
    own_name: Share = 0.5
    # ``exact`` leaves rows out so that each wording of each condition is as often alike as
    # different; ``none`` keeps them.
    balance: Literal["exact", "none"] = "exact"
    # Grades that criteria of numbers are cut into, each of about the same number of texts; None
    # compares numbers as names.
    bins: Annotated[int, Field(ge=2)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    # Settings of single criteria by name.
    criteria: dict[str, CriterionSettings] = Field(default_factory=dict)

    def of(self, criterion: str) -> CriterionSettings:
        """Return the settings of a criterion."""
        return self.criteria.get(criterion, _DEFAULT)


_ARTICLE = re.compile("(?:the|a|an) ", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:who|what|which|where|when|why|how|whether|if)\b.*", re.IGNORECASE)
# Wordings of a name without its article, by the first form that matches it.
_FORMS = (
    (
        re.compile("(?:opinion|sentiment|view|attitude) (?:about|of|on|toward?|to) (.+)"),
        (
            "opinion of {}",
            "what is said about {}",
            "How good is {}?",
            "whether {} is praised or criticized",
        ),
    ),
    (
        re.compile("(?:kind|type|sort|category) of (.+)"),
        ("type of {}", "which {}", "What kind of {} is it?"),
    ),
    (re.compile("whether it is (.+)"), ("if it is {}", "Is it {}?", "{} or not")),
    (_CLAUSE, ()),
    # Names of four words or more.
    (re.compile(r"((?:\S+ ){3}.+)"), ("{}", "the same {}")),
    (re.compile("(.+)"), ("{}", "the {}", "which {}", "the same {}")),
)


def derive_wordings(name: str) -> tuple[str, ...]:
    """Write a criterion as conditions in several ways, the plain name first.

    Example:
        >>> derive_wordings("the kind of food")[:4]
        ('the kind of food', 'type of food', 'which food', 'What kind of food is it?')
        >>> derive_wordings("order_status")[:3]
        ('order status', 'the order status', 'which order status')
    """
    plain = " ".join(name.replace("_", " ").split())
    bare = _ARTICLE.sub("", plain, count=1) if _ARTICLE.match(plain) else plain
    after_preposition = plain if _CLAUSE.match(bare) else f"the {bare}"
    sentence = f"{plain[0].upper()}{plain[1:]}."
    matches = ((form.fullmatch(bare), templates) for form, templates in _FORMS)
    match, templates = next((match, templates) for match, templates in matches if match)
    variants = [template.format(match[1]) for template in templates]
    wordings = (plain, *variants, f"with regard to {after_preposition}", sentence)
    return tuple(dict.fromkeys(wordings))
