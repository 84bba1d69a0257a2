"""Answers of models that annotators start from: ratings and proposed conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from condsim.annotation.stages import Item, Stage, TaskAnswer, text_of
from condsim.annotation.store import AnnotationStore, Proposal
from condsim.errors import InputError
from condsim.loading import load_scorer
from condsim.prompting.ask import Asker
from condsim.prompting.scorer import PromptScorer, open_asker
from condsim.types import Scorer

_TOKENS_PER_PROPOSAL = 80
_ITEMS_PER_BATCH = 512
_INSTRUCTION = """\
Definition: A condition names one aspect of what two sentences describe, such as "The kind of \
animal". Write one condition under which the two sentences are alike and one under which they \
differ. Both sentences must tell the aspect. Name the aspect and not its value, do not mention the \
sentences, be specific, and prefer an abstract aspect such as a purpose or a feeling. Answer with \
two lines:
High: the condition under which they are alike
Low: the condition under which they differ"""
_PROPOSED_LINE = re.compile(r"^\W*(?:c-)?(high|low)\W*:\W*(.*?)\W*$", re.IGNORECASE | re.MULTILINE)


def prefill_stage(
    store: AnnotationStore, stage: Literal["conditions", "verification"], model: str
) -> tuple[str, int, int]:
    """Let a model rate rows, or propose conditions; items that it has answered are skipped.

    A score in [0, 1] becomes the nearest of 1 to 5. Answers of a prompted model that are not a
    number on the scale give no rating. Conditions need the YAML file of a prompted model.

    Returns:
        Name of the model, items it has answered now, and answers that could not be read.
    """
    if stage == "verification":
        scorer: Scorer = load_scorer(model)
        return scorer.name, rate_rows(store, scorer, model=scorer.name), 0
    asker, name = open_asker(Path(model), new_tokens=_TOKENS_PER_PROPOSAL)
    return name, *propose_conditions(store, asker, model=name)


def rate_rows(store: AnnotationStore, scorer: Scorer, *, model: str) -> int:
    """Rate the rows of the verification stage; return the number of new ratings."""
    items = iter(_unanswered_items(store, "verification", model))
    rated = 0
    while batch := list(islice(items, _ITEMS_PER_BATCH)):
        proposals = [
            Proposal(item.item_id, model, TaskAnswer(rating=rating))
            for item, rating in zip(batch, _model_ratings(scorer, batch), strict=True)
            if rating is not None
        ]
        store.write("verification", proposals)
        rated += len(proposals)
    return rated


def propose_conditions(store: AnnotationStore, asker: Asker, *, model: str) -> tuple[int, int]:
    """Ask for two conditions of each pair; return new proposals, and answers not read."""
    items = _unanswered_items(store, "conditions", model)
    prompts = [
        f"{_INSTRUCTION}\n\nInput: Sentence 1: {item.shown['sentence1']}\n"
        f"Sentence 2: {item.shown['sentence2']}\nOutput:"
        for item in items
    ]
    proposed = 0
    for row, answer in asker.answers(prompts.__getitem__, len(items)):
        proposal = read_proposal(answer.text)
        if proposal is not None:
            store.write("conditions", [Proposal(items[row].item_id, model, proposal)])
            proposed += 1
    return proposed, len(items) - proposed


def read_proposal(text: str) -> TaskAnswer | None:
    """Read two different conditions out of an answer; None if they are not there."""
    lines = [(name.lower(), text_of(words)) for name, words in _PROPOSED_LINE.findall(text)]
    conditions = dict(lines)
    high, low = conditions.get("high"), conditions.get("low")
    if len(lines) != 2 or high is None or low is None or high.casefold() == low.casefold():
        return None
    return TaskAnswer(high=high, low=low)


def _unanswered_items(store: AnnotationStore, stage: Stage, model: str) -> list[Item]:
    items = store.items(stage)
    if not items:
        raise InputError(
            f"The stage {stage!r} has no items for {model}; run 'condsim build push {stage}' "
            "first, and again to send the answers."
        )
    answered = {row.item for row in store.proposals(stage) if row.model == model}
    return [item for item_id, item in items.items() if item_id not in answered]


def _model_ratings(scorer: Scorer, items: Sequence[Item]) -> Iterator[int | None]:
    sentences1, sentences2, conditions = (
        [item.shown[name] for item in items] for name in ("sentence1", "sentence2", "condition")
    )
    if isinstance(scorer, PromptScorer):
        predictions = scorer.predict(sentences1, sentences2, conditions)
        scores, usable = predictions.unit, predictions.in_range
    else:
        scores = np.clip(scorer.score(sentences1, sentences2, conditions), 0, 1)
        usable = np.isfinite(scores)
    for score, is_usable in zip(scores.tolist(), usable.tolist(), strict=True):
        yield 1 + int(4 * score + 0.5) if is_usable else None
