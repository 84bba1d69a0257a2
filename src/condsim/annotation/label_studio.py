"""A Label Studio server through label-studio-sdk, and answers as it keeps them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from condsim.annotation.stages import (
    FIELDS,
    Answer,
    Stage,
    guidelines,
    labelling_config,
    rating_of,
    text_of,
)
from condsim.errors import BackendError, InputError, require
from condsim.io import Closing
from condsim.prompting.backend import Address

if TYPE_CHECKING:
    import httpx


TOKEN = "LABEL_STUDIO_API_KEY"  # the variable, not its value
"""Environment variable that holds a personal access token."""

ITEM = "condsim_item"
"""Name of the task variable that holds the id of an item."""

_AT_ONCE = 500  # tasks in one request
_TIMEOUT_S = 600.0  # an export of 20,000 annotations takes a small server a minute


class RemoteAnswer(NamedTuple):
    """One annotation on the server."""

    key: str  # its id, the same after an edit and unlike any other
    account: int | None  # who gave it; None where the account is gone
    answer: Answer
    seconds: float | None
    created: str  # ISO 8601
    updated: str
    prefilled_by: str  # the model whose prediction was on the page, changed or not
    cancelled: bool  # the annotator skipped the task


class RemoteTask(NamedTuple):
    """One task on the server."""

    task: int
    item: str | None  # None for a task that condsim did not push
    answers: tuple[RemoteAnswer, ...]


class Prediction(NamedTuple):
    """What annotators of a task start from."""

    task: int
    model: str
    answer: Answer


def result_of(stage: Stage, answer: Answer) -> list[dict[str, object]]:
    """Writes an answer as Label Studio holds it, for a prediction or an annotation."""
    rated = "condition" if stage == "verification" else "test_condition"
    regions: list[dict[str, object]] = []
    for name, value in answer._asdict().items():
        if value is None or name not in FIELDS[stage]:
            continue
        rating = name == "rating"
        regions.append(
            {
                "from_name": name,
                "to_name": rated if rating else "sentence1",
                "type": "choices" if rating else "textarea",
                "value": {"choices": [str(value)]} if rating else {"text": [value]},
            }
        )
    return regions


def answer_of(regions: Sequence[Mapping[str, Any]]) -> Answer:
    """Reads the regions of an annotation."""
    values = {region.get("from_name"): region.get("value") or {} for region in regions}
    choices = values.get("rating", {}).get("choices") or []
    return Answer(
        high=text_of(values.get("high", {}).get("text")),
        low=text_of(values.get("low", {}).get("text")),
        rating=rating_of(choices[0]) if len(choices) == 1 else None,
    )


def _task_of(task: Mapping[str, Any]) -> RemoteTask:
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
        tuple(_remote_answer(one, models) for one in task.get("annotations") or []),
    )


def _remote_answer(one: Mapping[str, Any], models: Mapping[int, str]) -> RemoteAnswer:
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


def open_server(url: str) -> LabelStudioServer:
    """Opens a server with the token of the environment; nothing is sent.

    Args:
        url: Base URL, such as ``http://localhost:8080``.

    Raises:
        InputError: If the URL is invalid, or `TOKEN` is not set.
        MissingExtraError: If label-studio-sdk is not installed.
    """
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InputError(
            "The server must be an http:// or https:// URL without user name or password, such as "
            "'http://localhost:8080'; the token goes into the environment variable "
            f"{TOKEN}."
        )
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise InputError(
            f"No token for {url}: make a personal access token under Account & Settings in Label "
            f"Studio and set {TOKEN} in the environment."
        )
    if not all("!" <= letter <= "~" for letter in token):
        raise InputError(f"{TOKEN} must be ASCII without spaces: copy the token again.")
    return LabelStudioServer(url, token)


class LabelStudioServer(Closing):
    """A Label Studio server, a context manager; every call may raise InputError or BackendError."""

    def __init__(self, url: str, token: str, *, client: httpx.Client | None = None) -> None:
        make_client = require("httpx", extra="build").Client
        library = _part("label_studio_sdk", "LabelStudio")
        self._address = Address(url=url, local=True, key=token)
        self._connection = client or make_client(timeout=_TIMEOUT_S, follow_redirects=True)
        with self._errors():
            self._client: Any = library(
                base_url=url, api_key=token, timeout=_TIMEOUT_S, httpx_client=self._connection
            )

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    @property
    def url(self) -> str:
        """Base URL, without a slash at its end."""
        return self._address.url

    def create_project(self, stage: Stage, *, title: str, annotators: int) -> int:
        """Makes the project of a stage."""
        with self._errors():
            project = self._client.projects.create(
                title=title,
                label_config=labelling_config(stage),
                expert_instruction=guidelines(stage),
                show_instruction=True,
                show_skip_button=True,
                # Else "Submit" stays grey until Enter was pressed in a text field. What is asked is
                # required on the page all the same.
                enable_empty_annotation=True,
                maximum_annotations=annotators,
                sampling="Sequential sampling",
            )
        return int(project.id)

    def count_annotations(self, project: int) -> int:
        """Asks for the number of annotations of a project, skipped ones left out."""
        with self._errors(project):
            return self._client.projects.get(id=project).total_annotations_number or 0

    def tasks(self, project: int) -> list[RemoteTask]:
        """Fetches all tasks of a project with their annotations, in one request."""
        with self._errors(project):
            chunks = self._client.projects.exports.download_sync(
                id=project, export_type="JSON", download_all_tasks=True
            )
            try:
                tasks = json.loads(b"".join(chunks))
                return [_task_of(task) for task in tasks]
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise BackendError(
                    f"{self.url} gave an export of project {project} that condsim cannot read "
                    f"({type(error).__name__}); nothing was changed. Is it Label Studio 1.13 or "
                    "later?"
                ) from error

    def add_tasks(self, project: int, tasks: Sequence[Mapping[str, str]]) -> None:
        """Adds tasks, 500 in a request."""
        for start in range(0, len(tasks), _AT_ONCE):
            some = [{"data": dict(task)} for task in tasks[start : start + _AT_ONCE]]
            with self._errors(project):
                self._client.projects.import_tasks(id=project, request=some)

    def accounts(self) -> dict[int, str]:
        """Fetches the accounts."""
        with self._errors():
            found = self._client.users.list()
        return {
            account.id: (account.email or account.username or f"account-{account.id}").casefold()
            for account in found
        }

    def add_predictions(
        self, project: int, stage: Stage, predictions: Sequence[Prediction]
    ) -> None:
        """Adds predictions in one request and shows those of the last one's model to annotators."""
        some = [
            {"task": task, "model_version": model, "result": result_of(stage, answer)}
            for task, model, answer in predictions
        ]
        with self._errors(project):
            self._client.projects.import_predictions(id=project, request=some)
            self._client.projects.update(
                id=project, model_version=predictions[-1].model, show_collab_predictions=True
            )

    def change_task(self, task: int, variables: Mapping[str, str]) -> None:
        """Replaces the variables of a task."""
        with self._errors():
            self._client.tasks.update(id=str(task), data=dict(variables))

    @contextmanager
    def _errors(self, project: int | None = None) -> Iterator[None]:
        """Turns the errors of the library into one line each, without the token."""
        http_error = require("httpx", extra="build").HTTPError
        api_error = _part("label_studio_sdk.core.api_error", "ApiError")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of the library's own use
                yield
        except http_error as error:
            raise BackendError(
                f"No Label Studio answers at {self.url} ({type(error).__name__}). Start it, or "
                "name the right address with --server."
            ) from None
        except api_error as error:
            raise self._refused(error, project) from None
        except json.JSONDecodeError:
            raise BackendError(
                f"What answers at {self.url} is no Label Studio: its answer is no JSON. Name the "
                "right address with --server."
            ) from None

    def _refused(self, error: Any, project: int | None) -> Exception:  # noqa: ANN401
        status = error.status_code
        if status in (401, 403):
            return InputError(
                f"{self.url} refuses the token in {TOKEN} (status {status}). Make a personal "
                "access token under Account & Settings in Label Studio; its old-style tokens are "
                "off unless an administrator allows them."
            )
        if status == 404 and project is not None:
            return InputError(
                f"Project {project} is not on {self.url}: it was deleted, or this is another "
                "server. What was pulled before is kept; 'condsim build push' with --again makes "
                "a new project for what is not done."
            )
        said = self._address.clean(json.dumps(error.body, default=str))
        return BackendError(f"{self.url} refused a request (status {status}): {said}")


def _part(module: str, name: str) -> Any:  # noqa: ANN401  (a class of the library)
    """A class of the library, without what that says of its own libraries while it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(require(module, extra="build"), name)
