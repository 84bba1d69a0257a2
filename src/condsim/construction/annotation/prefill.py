"""Help of models, marked as such: ratings and conditions that annotators start from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from condsim.construction.annotation.results import text_of
from condsim.construction.annotation.stages import Answer, Stage, Work
from condsim.construction.annotation.store import Proposal, Store
from condsim.errors import InputError
from condsim.prompting import Asker
from condsim.types import Scorer

PROPOSAL_TOKENS = 80
"""Longest answer in tokens when a model is asked for two conditions."""

_AT_ONCE = 512

_INSTRUCTION = """\
Definition: A condition names one aspect of what two sentences describe, such as "The kind of \
animal". Write one condition under which the two sentences are alike and one under which they \
differ. Both sentences must tell the aspect. Name the aspect and not its value, do not mention the \
sentences, be specific, and prefer an abstract aspect such as a purpose or a feeling. Answer with \
two lines:
High: the condition under which they are alike
Low: the condition under which they differ"""

_LINE = re.compile(r"^\W*(?:c-)?(high|low)\W*:\W*(.*?)\W*$", re.IGNORECASE | re.MULTILINE)


def rate_rows(store: Store, scorer: Scorer, *, model: str) -> int:
    """Rates the rows of the verification stage with a model, for annotators to start from.

    A score in [0, 1] becomes the nearest of 1 to 5. A prompted model's answers that are no number
    on the scale give no rating.

    Args:
        store: The store, with the verification pushed.
        scorer: The model.
        model: Its name, kept with every row it had a hand in.

    Returns:
        Rows rated now; those this model has rated before are left.

    Raises:
        InputError: If the stage was not pushed.
        BackendError: If a prompted model does not answer; what was rated before is kept.
    """
    works = iter(_open_works(store, "verification", model))
    rated = 0
    while some := list(islice(works, _AT_ONCE)):
        ratings = _ratings(scorer, some)
        proposals = [
            Proposal(work.item_id, model, Answer(rating=rating))
            for work, rating in zip(some, ratings, strict=True)
            if rating is not None
        ]
        with store.changes():
            store.put_proposals("verification", proposals)
        rated += len(proposals)
    return rated


def propose_conditions(store: Store, asker: Asker, *, model: str) -> tuple[int, int]:
    """Asks a language model for two conditions a pair, for annotators to start from.

    Args:
        store: The store, with the conditions stage pushed.
        asker: Asks the model, of at least `PROPOSAL_TOKENS` new tokens.
        model: Its name, kept with every row it had a hand in.

    Returns:
        Pairs with both conditions proposed now, and answers that could not be read.

    Raises:
        InputError: If the stage was not pushed.
        BackendError: If the model does not answer; what was answered is kept.
    """
    works = _open_works(store, "conditions", model)
    proposed = 0
    prompt_of = _prompts(works)
    for row, answer in asker.answers(prompt_of, len(works)):
        read = read_proposal(answer.text)
        if read is not None:
            with store.changes():
                store.put_proposals("conditions", [Proposal(works[row].item_id, model, read)])
            proposed += 1
    return proposed, len(works) - proposed


def read_proposal(text: str) -> Answer | None:
    r"""Reads two conditions out of an answer.

    Example:
        >>> read_proposal("High: The sport\nLow: The place").low
        'The place'
    """
    found = [(name.lower(), text_of(condition)) for name, condition in _LINE.findall(text)]
    named = dict(found)
    high, low = named.get("high"), named.get("low")
    if len(found) != 2 or high is None or low is None or high.casefold() == low.casefold():
        return None
    return Answer(high=high, low=low)


def _open_works(store: Store, stage: Stage, model: str) -> list[Work]:
    """Items that the model has said nothing of."""
    items = store.items(stage)
    if not items:
        raise InputError(
            f"There is nothing for {model} to start: 'condsim build push {stage}' comes first, "
            "and once more afterwards to hand its answers out."
        )
    answered = {one.item for one in store.proposals(stage) if one.model == model}
    return [stored.work for item, stored in items.items() if item not in answered]


def _prompts(works: Sequence[Work]) -> Callable[[int], str]:
    def prompt(row: int) -> str:
        shown = works[row].shown
        return (
            f"{_INSTRUCTION}\n\nInput: Sentence 1: {shown['sentence1']}\n"
            f"Sentence 2: {shown['sentence2']}\nOutput:"
        )

    return prompt


def _ratings(scorer: Scorer, works: Sequence[Work]) -> Iterator[int | None]:
    from condsim.prompting import PromptScorer

    texts = [
        [work.shown[name] for work in works] for name in ("sentence1", "sentence2", "condition")
    ]
    if isinstance(scorer, PromptScorer):
        predictions = scorer.predict(*texts)
        unit, usable = predictions.unit, predictions.in_range
    else:
        unit = np.clip(scorer.score(*texts), 0, 1)
        usable = np.isfinite(unit)
    for score, known in zip(unit.tolist(), usable.tolist(), strict=True):
        yield 1 + int(4 * score + 0.5) if known else None
