"""What an annotator filled in, read from what Label Studio keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from condsim.construction.annotation.remote import ITEM, RemoteAnswer, RemoteTask
from condsim.construction.annotation.stages import VERDICTS, Answer


def task_of(task: Mapping[str, Any]) -> RemoteTask:
    """Reads a task of an export."""
    models = {
        one["id"]: str(one.get("model_version") or "")
        for one in task.get("predictions") or []
        if isinstance(one, dict)
    }
    item = (task.get("data") or {}).get(ITEM)
    return RemoteTask(
        int(task["id"]),
        None if item is None else str(item),
        tuple(_answer(one, models) for one in task.get("annotations") or []),
    )


def _answer(one: Mapping[str, Any], models: Mapping[int, str]) -> RemoteAnswer:
    account = one.get("completed_by")
    if isinstance(account, dict):
        account = account.get("id")
    seconds = one.get("lead_time")
    prediction = one.get("prediction") or {}
    parent = one.get("parent_prediction")
    # `prediction` is what stood on the page, whether or not the annotation started from it.
    model = models.get(parent or 0) or prediction.get("model_version") or ""
    return RemoteAnswer(
        key=str(one.get("unique_id") or one["id"]),
        account=account,
        answer=answer_of(one.get("result") or []),
        seconds=None if seconds is None else float(seconds),
        created=str(one["created_at"]),
        updated=str(one["updated_at"]),
        prefilled_by=model or ("a model" if parent else ""),
        cancelled=bool(one.get("was_cancelled")),
    )


_LABELS = frozenset(verdict.label for verdict in VERDICTS)


def answer_of(regions: Sequence[Mapping[str, Any]]) -> Answer:
    """Reads the regions of an annotation."""
    values = {region.get("from_name"): region.get("value") or {} for region in regions}
    choices = values.get("rating", {}).get("choices") or []
    return Answer(
        high=text_of(values.get("high", {}).get("text")),
        low=text_of(values.get("low", {}).get("text")),
        rating=rating_of(choices[0]) if len(choices) == 1 else None,
    )


def text_of(value: object) -> str | None:
    """Reads a text field."""
    texts = value if isinstance(value, list) else [value]
    words = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str)).strip()
    return words or None


def rating_of(value: object) -> int | None:
    """Reads a rating."""
    try:
        rating = float(str(value).strip())
    except ValueError:
        return None
    return int(rating) if rating in _LABELS else None
