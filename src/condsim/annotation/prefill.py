"""Answers of models that annotators start from: ratings and proposed conditions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from condsim.annotation.stages import Item, Stage, TaskAnswer, text_of
from condsim.annotation.store import AnnotationStore, Proposal
from condsim.loading import load_scorer
from condsim.prompting.ask import Asker
from condsim.prompting.scorer import PromptScorer, open_asker
from condsim.types import FloatArray, Scorer

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
    items = _unanswered_items(store, "verification", model)
    rated = 0
    for start in range(0, len(items), _ITEMS_PER_BATCH):
        batch = items[start : start + _ITEMS_PER_BATCH]
        scores = _unit_scores(scorer, batch)
        proposals = [
            Proposal(item.item_id, model, TaskAnswer(rating=1 + int(4 * score + 0.5)))
            for item, score in zip(batch, scores.tolist(), strict=True)
            if math.isfinite(score)
        ]
        store.write("verification", proposals)
        rated += len(proposals)
    return rated


def _unit_scores(scorer: Scorer, items: Sequence[Item]) -> FloatArray:
    """Score rows from 0 to 1; NaN where an answer is not on the scale."""
    sentences1, sentences2, conditions = (
        [item.shown[name] for item in items] for name in ("sentence1", "sentence2", "condition")
    )
    if isinstance(scorer, PromptScorer):
        predictions = scorer.predict(sentences1, sentences2, conditions)
        return np.where(predictions.in_range, predictions.unit, np.nan)
    return np.clip(scorer.score(sentences1, sentences2, conditions), 0, 1)


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
    items = store.pushed_items(stage)
    answered = {row.item for row in store.proposals(stage) if row.model == model}
    return [item for item_id, item in items.items() if item_id not in answered]
