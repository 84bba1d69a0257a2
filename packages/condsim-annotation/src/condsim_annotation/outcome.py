"""Outcome of a stage: annotations that count, the pool of annotators, rows of the next stage.

Models may answer first; annotators start from their ratings and proposed conditions.

C-STS accepts those who do well at both conditions and ratings (§2.2.2, stage 1), and does not say
how the two are scored; `score_test` is condsim's way.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, cast

import numpy as np

from condsim.errors import InputError
from condsim.io import write_json
from condsim.loading import load_scorer
from condsim.rows.records import manifest_of, write_rows
from condsim.types import FloatArray, Scorer
from condsim_annotation.records import HUMAN, Condition, Intended, Rating
from condsim_annotation.stages import Item, Stage, TaskAnswer, hints_of, text_of
from condsim_annotation.store import Annotation, AnnotationStore, PoolMember, Proposal
from condsim_annotation.tables import DOES_NOT_APPLY
from condsim_llm.ask import Asker
from condsim_llm.scorer import PromptScorer, open_asker

UNKNOWN = "(unknown)"
"""Annotator whose account was deleted before its first pull."""

# This rule states a preference; a condition that breaks it is acceptable.
_PREFERENCE_RULE = 6
_FIELD_NAMES = {"high": "high condition", "low": "low condition", "rating": "rating"}

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


class StageOutcome(NamedTuple):
    """Target of answers for each item (0: no limit), and annotations that count, by item.

    ``set_aside`` has the numbers of annotations that do not count by reason, largest first.
    """

    target: int
    counted: dict[str, list[Annotation]]
    set_aside: dict[str, int]

    @property
    def done(self) -> int:
        """Number of items that have enough answers."""
        return sum(self.has_enough(item) for item in self.counted)

    def has_enough(self, item: str) -> bool:
        """Return whether an item has enough answers; never without a limit."""
        return bool(self.target) and len(self.counted.get(item, ())) >= self.target


def stage_outcome(store: AnnotationStore, stage: Stage) -> StageOutcome:
    """Sort the annotations of a stage.

    An annotation counts if it is complete, its annotator is in the pool (or the stage is open to
    anyone) and did not write the condition that is rated (C-STS §2.2.2: "new annotators"). Of
    several by one annotator the latest counts, of more than the target the earliest.
    """
    project = store.project(stage)
    target = 0 if stage == "qualification" or project is None else project.annotators
    items, pool = store.items(stage), store.pool()
    open_to_all = stage == "qualification" or (project is not None and project.anyone)
    by_item: dict[str, dict[str, Annotation]] = defaultdict(dict)
    reasons: Counter[str] = Counter()
    for row in store.annotations(stage):
        author = str(items[row.item].facts.get("author", "")) if row.item in items else ""
        member = pool.get(row.annotator)
        if stage != "qualification" and member is not None and not member.accepted:
            standing = "the annotator was rejected"
        else:
            standing = "" if open_to_all or member else "the annotator is not in the pool"
        # Names of accounts are stored in lower case.
        if not standing and row.annotator == author.casefold():
            standing = "the annotator wrote the condition"
        reason = _fault_of(stage, row) or standing
        if reason:
            reasons[reason] += 1
            continue
        answers = by_item[row.item]
        earlier = answers.get(row.annotator)
        if earlier is not None:
            reasons["answered again by the same annotator"] += 1
        if earlier is None or row.updated >= earlier.updated:
            answers[row.annotator] = row
    counted: dict[str, list[Annotation]] = {}
    for item in items:
        usable = sorted(by_item[item].values(), key=lambda row: row.created)
        counted[item] = usable[:target] if target else usable
        reasons[f"beyond the {target} wanted"] += len(usable) - len(counted[item])
    return StageOutcome(target, counted, dict((+reasons).most_common()))


def _fault_of(stage: Stage, row: Annotation) -> str:
    """Return why an annotation is not complete; empty if it is."""
    missing = row.answer.missing(stage)
    if row.canceled:
        return "skipped by the annotator"
    if row.annotator == UNKNOWN:
        return "the account is gone"
    if row.answer == TaskAnswer() and missing != ("rating",):
        return "no answer at all"
    return " and ".join(f"no {_FIELD_NAMES[name]}" for name in missing)


def write_stage(
    store: AnnotationStore, stage: Stage, output: Path | None = None
) -> tuple[Path, int] | None:
    """Write the conditions or ratings that count, and a manifest; return the file and its rows."""
    if stage == "qualification":
        return None
    if stage == "conditions":
        path = output or store.path.with_name("conditions.parquet")
        rows = write_rows(conditions_of(store), path, kind=Condition)
    else:
        path = output or store.path.with_name("ratings.parquet")
        rows = write_rows(ratings_of(store), path, kind=Rating)
    outcome, project = stage_outcome(store, stage), store.project(stage)
    models = Counter(proposal.model for proposal in store.proposals(stage))
    content = {
        "stage": stage,
        "rows": rows,
        "items": len(outcome.counted),
        "done": outcome.done,
        "annotators_per_item": outcome.target,
        "pool_only": project is not None and not project.anyone,
        "pool": sum(member.accepted for member in store.pool().values()),
        "set_aside": outcome.set_aside,
        "proposals_by_model": dict(sorted(models.items())),
    }
    write_json(content, manifest_of(path))
    return path, rows


def conditions_of(store: AnnotationStore) -> Iterator[Condition]:
    """Yield the conditions that count."""
    items = store.items("conditions")
    proposals = {(row.item, row.model): row.answer for row in store.proposals("conditions")}
    for item, rows in stage_outcome(store, "conditions").counted.items():
        shown = items[item].shown
        sentences = (shown["sentence1"], shown["sentence2"])
        for row in rows:
            proposed = proposals.get((item, row.prefilled_by), TaskAnswer())
            texts: dict[Intended, tuple[str | None, str | None]] = {
                "high": (row.answer.high, proposed.high),
                "low": (row.answer.low, proposed.low),
            }
            for intended, (text, proposed_text) in texts.items():
                hints = hints_of(text or "", *sentences)
                yield Condition(
                    str(items[item].facts["pair_id"]),
                    *sentences,
                    condition=text or "",
                    intended=intended,
                    annotator=row.annotator,
                    seconds=row.seconds,
                    origin=row.prefilled_by if proposed_text == text else HUMAN,
                    prefilled_by=row.prefilled_by,
                    hints=" | ".join(f"{hint.rule}: {hint.text}" for hint in hints),
                )


def ratings_of(store: AnnotationStore) -> Iterator[Rating]:
    """Yield the ratings that count, and the ratings of models."""
    items = store.items("verification")
    proposals = defaultdict(list)
    for proposal in store.proposals("verification"):
        proposals[proposal.item].append(proposal)
    for item, rows in stage_outcome(store, "verification").counted.items():
        for row in rows:
            rating = _rating_of(items[item], row.annotator, row.answer)
            yield replace(
                rating, seconds=row.seconds, updated_at=row.updated, prefilled_by=row.prefilled_by
            )
        for proposal in proposals[item]:
            rating = _rating_of(items[item], proposal.model, proposal.answer)
            yield replace(rating, origin=proposal.model)


def _rating_of(item: Item, annotator: str, answer: TaskAnswer) -> Rating:
    shown, facts = item.shown, item.facts
    return Rating(
        row_id=item.item_id,
        pair_id=str(facts["pair_id"]),
        sentence1=shown["sentence1"],
        sentence2=shown["sentence2"],
        condition=shown["condition"],
        intended=cast(Intended, facts["intended"]),
        annotator=annotator,
        label=cast(int, answer.rating),
        condition_origin=str(facts.get("proposed_by") or HUMAN),
    )


class QualificationResult(NamedTuple):
    """Result of one annotator in the test; ``accepted`` is None until all items are answered.

    The scores are the share of conditions without a hint of rules 1 to 5, and the share of ratings
    at most 1 from the known answer.
    """

    annotator: str
    answered: int
    items: int
    condition_score: float
    rating_score: float
    accepted: bool | None


def score_test(
    store: AnnotationStore, *, min_conditions: float = 0.8, min_ratings: float = 0.8
) -> tuple[QualificationResult, ...]:
    """Score all who took the test and write the pool; decisions by hand stay."""
    items, pool = store.pushed_items("qualification"), store.pool()
    by_annotator: dict[str, list[Annotation]] = defaultdict(list)
    for rows in stage_outcome(store, "qualification").counted.values():
        for row in rows:
            by_annotator[row.annotator].append(row)
    results, members = [], []
    for name, rows in sorted(by_annotator.items()):
        conditions = fmean(_condition_score(items[row.item], row.answer) for row in rows)
        ratings = fmean(_rating_score(items[row.item], row.answer) for row in rows)
        passed = conditions >= min_conditions and ratings >= min_ratings
        accepted = passed if len(rows) == len(items) else None
        counts = (len(rows), len(items))
        results.append(QualificationResult(name, *counts, conditions, ratings, accepted))
        if accepted is not None and not (name in pool and pool[name].decided_by == "hand"):
            members.append(PoolMember(name, accepted, "test", conditions, ratings))
    store.write("qualification", members)
    return tuple(results)


def _condition_score(item: Item, answer: TaskAnswer) -> float:
    """Return the share of the two conditions that are acceptable."""
    texts = (answer.high or "", answer.low or "")
    if texts[0].casefold() == texts[1].casefold():
        return 0.0
    good = 0
    for text in texts:
        hints = hints_of(text, item.shown["sentence1"], item.shown["sentence2"])
        good += all(hint.rule == _PREFERENCE_RULE for hint in hints)
    return good / 2


def _rating_score(item: Item, answer: TaskAnswer) -> float:
    label, rating = int(item.facts["label"]), answer.rating
    if DOES_NOT_APPLY in (label, rating):
        return float(label == rating)
    return float(rating is not None and abs(rating - label) <= 1)


def decide_by_hand(
    store: AnnotationStore, *, accept: Iterable[str] = (), reject: Iterable[str] = ()
) -> tuple[PoolMember, ...]:
    """Accept or reject people by e-mail address or worker id, independent of the test."""
    accepted = {name.strip().casefold() for name in accept}
    rejected = {name.strip().casefold() for name in reject}
    if accepted & rejected:
        raise InputError(f"{min(accepted & rejected)!r} is both accepted and rejected.")
    pool = store.pool()
    members = []
    for name in sorted(accepted | rejected):
        member = pool.get(name, PoolMember(name, accepted=False, decided_by="hand"))
        members.append(replace(member, accepted=name in accepted, decided_by="hand"))
    store.write("qualification", members)
    return tuple(members)


def prefill_stage(
    store: AnnotationStore, stage: Literal["conditions", "verification"], model: str
) -> tuple[str, int, int]:
    """Let a model rate rows, or propose conditions; items that it has answered are skipped.

    A score in [0, 1] becomes the nearest of 1 to 5. Answers of a prompted model that are not a
    number on the scale give no rating. Conditions need the YAML file of a prompted model. Returns
    the name of the model, items it has answered now, and answers that could not be read.
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
