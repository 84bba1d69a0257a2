"""Tasks and annotations read from the JSON export of Label Studio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condsim.construction.annotation.remote import ITEM, RemoteAnswer, RemoteTask
from condsim.construction.annotation.results import answer_of

__all__ = ["task_of"]


def task_of(task: Mapping[str, Any]) -> RemoteTask:
    """Reads a task of an export.

    Args:
        task: The task as Label Studio's JSON export has it.

    Returns:
        The task with its annotations.

    Raises:
        ValueError: If a value is of the wrong kind; also TypeError, KeyError and AttributeError.
    """
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
