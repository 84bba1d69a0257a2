"""Client of a Label Studio server through label-studio-sdk."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from condsim.annotation import stages
from condsim.annotation.stages import Stage, TaskAnswer
from condsim.annotation.store import Annotation, Proposal
from condsim.errors import BackendError, InputError, one_line, require
from condsim.io import Closing
from condsim.prompting.backend import Address

if TYPE_CHECKING:
    import httpx

TOKEN = "LABEL_STUDIO_API_KEY"
"""Environment variable with a personal access token."""

ITEM = "condsim_item"
"""Task variable with the id of an item."""

_TASKS_PER_REQUEST = 500
# An export of 20,000 annotations takes a small server a minute.
_TIMEOUT_S = 600.0


class RemoteTask(NamedTuple):
    """A task on the server; ``item`` is None if condsim did not push it.

    The annotator of an answer is the number of the account, or empty if that was deleted.
    """

    task: int
    item: str | None
    answers: tuple[Annotation, ...]


def result_of(stage: Stage, answer: TaskAnswer) -> list[dict[str, object]]:
    """Convert an answer to the regions of a prediction or an annotation."""
    regions: list[dict[str, object]] = []
    for name in stages.FIELDS[stage]:
        value = getattr(answer, name)
        if value is not None and name == "rating":
            rated = "condition" if stage == "verification" else "test_condition"
            region = {"to_name": rated, "type": "choices", "value": {"choices": [str(value)]}}
            regions.append({"from_name": name, **region})
        elif value is not None:
            region = {"to_name": "sentence1", "type": "textarea", "value": {"text": [value]}}
            regions.append({"from_name": name, **region})
    return regions


def answer_of(regions: Sequence[Mapping[str, Any]]) -> TaskAnswer:
    """Read the regions of an annotation."""
    values = {region.get("from_name"): region.get("value") or {} for region in regions}
    choices = values.get("rating", {}).get("choices") or []
    return TaskAnswer(
        high=stages.text_of(values.get("high", {}).get("text")),
        low=stages.text_of(values.get("low", {}).get("text")),
        rating=stages.rating_of(choices[0]) if len(choices) == 1 else None,
    )


def _read_task(task: Mapping[str, Any]) -> RemoteTask:
    """Read a task of an export."""
    models: dict[int, str] = {}
    for prediction in task.get("predictions") or []:
        if isinstance(prediction, dict):
            models[prediction["id"]] = str(prediction.get("model_version") or "")
    item = (task.get("data") or {}).get(ITEM)
    answers = []
    for row in task.get("annotations") or []:
        account, seconds = row.get("completed_by"), row.get("lead_time")
        if isinstance(account, dict):
            account = account.get("id")
        # `prediction` was on the page, whether or not the annotation started from it.
        parent = row.get("parent_prediction")
        model = models.get(parent or 0) or (row.get("prediction") or {}).get("model_version")
        annotation = Annotation(
            source="",
            annotation=str(row.get("unique_id") or row["id"]),
            item=str(item),
            annotator="" if account is None else str(account),
            answer=answer_of(row.get("result") or []),
            seconds=None if seconds is None else float(seconds),
            created=str(row["created_at"]),
            updated=str(row["updated_at"]),
            prefilled_by=model or ("a model" if parent else ""),
            cancelled=bool(row.get("was_cancelled")),
        )
        answers.append(annotation)
    return RemoteTask(int(task["id"]), None if item is None else str(item), tuple(answers))


def open_server(url: str) -> LabelStudioServer:
    """Open a server with the token of the environment; this sends nothing."""
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InputError(
            "The server must be an http:// or https:// URL without user name and password, such as "
            "'http://localhost:8080'."
        )
    token = os.environ.get(TOKEN, "").strip()
    if not re.fullmatch("[!-~]+", token):
        raise InputError(
            f"The environment variable {TOKEN} must hold a personal access token, ASCII without "
            "spaces. Create one in Label Studio under Account & Settings."
        )
    return LabelStudioServer(url, token)


class LabelStudioServer(Closing):
    """A Label Studio server, a context manager; all calls may raise InputError or BackendError."""

    def __init__(self, url: str, token: str, *, client: httpx.Client | None = None) -> None:
        make_client = require("httpx", extra="build").Client
        library = _import_quietly("label_studio_sdk", "LabelStudio")
        self._address = Address(url=url, local=True, key=token)
        self._connection = client or make_client(timeout=_TIMEOUT_S, follow_redirects=True)
        with self._one_line_errors():
            self._client: Any = library(
                base_url=url, api_key=token, timeout=_TIMEOUT_S, httpx_client=self._connection
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def url(self) -> str:
        """Base URL, without a slash at its end."""
        return self._address.url

    def create_project(self, stage: Stage, *, title: str, annotators: int) -> int:
        """Create the project of a stage, and return its number."""
        with self._one_line_errors():
            project = self._client.projects.create(
                title=title,
                label_config=stages.labelling_config(stage),
                expert_instruction=stages.guidelines(stage),
                show_instruction=True,
                show_skip_button=True,
                # Otherwise "Submit" stays gray until Enter is pressed in a text field. The page
                # itself requires the fields.
                enable_empty_annotation=True,
                maximum_annotations=annotators,
                sampling="Sequential sampling",
            )
        return int(project.id)

    def count_annotations(self, project: int) -> int:
        """Return the number of annotations of a project without skipped ones."""
        with self._one_line_errors(project):
            return self._client.projects.get(id=project).total_annotations_number or 0

    def tasks(self, project: int) -> list[RemoteTask]:
        """Fetch all tasks of a project with their annotations, in one request."""
        with self._one_line_errors(project):
            chunks = self._client.projects.exports.download_sync(
                id=project, export_type="JSON", download_all_tasks=True
            )
            message = f"{self.url} gave an export of project {project} that cannot be read"
            causes = (ValueError, TypeError, KeyError, AttributeError)
            advice = "condsim needs Label Studio 1.13 or later."
            with one_line(message, *causes, advice=advice, kind=BackendError):
                return [_read_task(task) for task in json.loads(b"".join(chunks))]

    def add_tasks(self, project: int, tasks: Sequence[Mapping[str, str]]) -> None:
        """Add tasks, 500 in a request."""
        for start in range(0, len(tasks), _TASKS_PER_REQUEST):
            batch = tasks[start : start + _TASKS_PER_REQUEST]
            request = [{"data": dict(task)} for task in batch]
            with self._one_line_errors(project):
                self._client.projects.import_tasks(id=project, request=request)

    def accounts(self) -> dict[str, str]:
        """Fetch the names of the accounts by number."""
        with self._one_line_errors():
            users = self._client.users.list()
        return {
            str(user.id): (user.email or user.username or f"account-{user.id}").casefold()
            for user in users
        }

    def add_predictions(
        self, project: int, stage: Stage, proposals: Sequence[tuple[int, Proposal]]
    ) -> None:
        """Add proposals to tasks in one request, and show those of the last one's model."""
        batch = [
            {"task": task, "model_version": row.model, "result": result_of(stage, row.answer)}
            for task, row in proposals
        ]
        settings = {"model_version": proposals[-1][1].model, "show_collab_predictions": True}
        with self._one_line_errors(project):
            self._client.projects.import_predictions(id=project, request=batch)
            self._client.projects.update(id=project, **settings)

    def change_task(self, task: int, variables: Mapping[str, str]) -> None:
        """Replace the variables of a task."""
        with self._one_line_errors():
            self._client.tasks.update(id=str(task), data=dict(variables))

    @contextmanager
    def _one_line_errors(self, project: int | None = None) -> Iterator[None]:
        """Convert the errors of the library to one line each, without the token."""
        http_error = require("httpx", extra="build").HTTPError
        api_error = _import_quietly("label_studio_sdk.core.api_error", "ApiError")
        try:
            # The library's own use of other libraries causes warnings.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                yield
        except http_error as error:
            raise BackendError(
                f"No Label Studio answers at {self.url} ({type(error).__name__}). Start it, or "
                "give its address with --server."
            ) from None
        except json.JSONDecodeError:
            raise BackendError(
                f"The server at {self.url} is not Label Studio: its answer is not JSON."
            ) from None
        except api_error as error:
            status = error.status_code
            if status in (401, 403):
                raise InputError(
                    f"{self.url} refuses the token in {TOKEN} (status {status}). Create a personal "
                    "access token under Account & Settings; legacy tokens are off by default."
                ) from None
            if status == 404 and project is not None:
                raise InputError(
                    f"Project {project} is not on {self.url}: it was deleted, or this is another "
                    "server. 'condsim build push --again' makes a new project for the unfinished "
                    "items; pulled annotations are safe."
                ) from None
            body = self._address.clean(json.dumps(error.body, default=str))
            raise BackendError(f"{self.url} refused a request (status {status}): {body}") from None


def _import_quietly(module: str, name: str) -> Any:  # noqa: ANN401
    """Return a class of the library, without the warnings of its imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(require(module, extra="build"), name)
