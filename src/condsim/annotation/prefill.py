"""Suggestions by models, marked as such: ratings and conditions that annotators start from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from condsim.annotation.stages import Answer, Item, Stage, text_of
from condsim.annotation.store import AnnotationStore, Proposal
from condsim.errors import InputError
from condsim.loading import load_scorer
from condsim.prompting.ask import Asker
from condsim.prompting.scorer import PromptScorer, open_asker
from condsim.types import Scorer

_PROPOSAL_TOKENS = 80  # longest answer when a model is asked for two conditions
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


class Prefilled(NamedTuple):
    """What a model did for annotators to start from."""

    model: str  # its name, kept with every row it had a hand in
    done: int  # items it has answered now
    unread: int  # answers that could not be read


def prefill(
    store: AnnotationStore,
    stage: Literal["conditions", "verification"],
    model: str,
    *,
    name: str | None = None,
) -> Prefilled:
    """Lets a model rate rows, or propose conditions, for annotators to start from.

    A score in [0, 1] becomes the nearest of 1 to 5. A prompted model's answers that are no number
    on the scale give no rating.

    Args:
        store: The store, with the stage pushed.
        model: verification: as `condsim.loading.load_scorer` takes it. conditions: the YAML file
            of a prompted model.
        name: Name of the model in the rows; its own if None.

    Returns:
        The items answered now; those this model has answered before are left.

    Raises:
        InputError: If the stage was not pushed, or the model is of the wrong kind.
        ModelError: If there is no such model.
        BackendError: If a prompted model does not answer; what was answered is kept.
    """
    if stage == "verification":
        scorer = load_scorer(model)
        called = name or scorer.name
        return Prefilled(called, rate_rows(store, scorer, model=called), 0)
    asker, found = open_asker(Path(model), new_tokens=_PROPOSAL_TOKENS)
    called = name or found
    return Prefilled(called, *propose_conditions(store, asker, model=called))


def rate_rows(store: AnnotationStore, scorer: Scorer, *, model: str) -> int:
    """Rates the rows of the verification stage and gives the number rated now."""
    items = iter(_open_items(store, "verification", model))
    rated = 0
    while some := list(islice(items, _AT_ONCE)):
        proposals = [
            Proposal(one.item_id, model, Answer(rating=rating))
            for one, rating in zip(some, _ratings(scorer, some), strict=True)
            if rating is not None
        ]
        with store.changes():
            store.put_proposals("verification", proposals)
        rated += len(proposals)
    return rated


def propose_conditions(store: AnnotationStore, asker: Asker, *, model: str) -> tuple[int, int]:
    """Asks for two conditions a pair; gives the pairs proposed now, and the answers not read."""
    items = _open_items(store, "conditions", model)
    proposed = 0
    for row, answer in asker.answers(lambda row: _prompt(items[row]), len(items)):
        read = read_proposal(answer.text)
        if read is not None:
            with store.changes():
                store.put_proposals("conditions", [Proposal(items[row].item_id, model, read)])
            proposed += 1
    return proposed, len(items) - proposed


def read_proposal(text: str) -> Answer | None:
    """Reads two conditions out of an answer."""
    found = [(name.lower(), text_of(condition)) for name, condition in _LINE.findall(text)]
    named = dict(found)
    high, low = named.get("high"), named.get("low")
    if len(found) != 2 or high is None or low is None or high.casefold() == low.casefold():
        return None
    return Answer(high=high, low=low)


def _open_items(store: AnnotationStore, stage: Stage, model: str) -> list[Item]:
    """Items that the model has said nothing of."""
    items = store.items(stage)
    if not items:
        raise InputError(
            f"There is nothing for {model} to start: 'condsim build push {stage}' comes first, "
            "and once more afterwards to hand its answers out."
        )
    answered = {one.item for one in store.proposals(stage) if one.model == model}
    return [one for item, one in items.items() if item not in answered]


def _prompt(item: Item) -> str:
    return (
        f"{_INSTRUCTION}\n\nInput: Sentence 1: {item.shown['sentence1']}\n"
        f"Sentence 2: {item.shown['sentence2']}\nOutput:"
    )


def _ratings(scorer: Scorer, items: Sequence[Item]) -> Iterator[int | None]:
    texts = [[one.shown[name] for one in items] for name in ("sentence1", "sentence2", "condition")]
    if isinstance(scorer, PromptScorer):
        predictions = scorer.predict(*texts)
        unit, usable = predictions.unit, predictions.in_range
    else:
        unit = np.clip(scorer.score(*texts), 0, 1)
        usable = np.isfinite(unit)
    for score, known in zip(unit.tolist(), usable.tolist(), strict=True):
        yield 1 + int(4 * score + 0.5) if known else None
