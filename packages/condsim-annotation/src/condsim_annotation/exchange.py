"""Exchange with a Label Studio server: its client, push of items, pull of annotations, hints."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from condsim.cache import sole_process
from condsim.errors import InputError, one_line, require
from condsim_annotation.outcome import UNKNOWN, stage_outcome
from condsim_annotation.stages import (
    DEFAULT_ANNOTATORS,
    FIELDS,
    NO_HINTS,
    Item,
    Stage,
    TaskAnswer,
    guidelines,
    hints_of,
    labeling_config,
    rating_of,
    text_of,
)
from condsim_annotation.store import Annotation, AnnotationStore, Project, Proposal
from condsim_llm.backend import Address
from condsim_llm.errors import BackendError

if TYPE_CHECKING:
    import httpx

TOKEN = "LABEL_STUDIO_API_KEY"
"""Environment variable with a personal access token."""

ITEM = "condsim_item"
"""Task variable with the id of an item."""

MTURK = "mturk"
"""Server and source of annotations from Mechanical Turk."""

_PREDICTIONS_PER_REQUEST = 500
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
    rated = "condition" if stage == "verification" else "test_condition"
    regions: list[dict[str, object]] = []
    for name in FIELDS[stage]:
        value = getattr(answer, name)
        region = {"to_name": "sentence1", "type": "textarea", "value": {"text": [value]}}
        if name == "rating":
            region = {"to_name": rated, "type": "choices", "value": {"choices": [str(value)]}}
        if value is not None:
            regions.append({"from_name": name, **region})
    return regions


def answer_of(regions: Sequence[Mapping[str, Any]]) -> TaskAnswer:
    """Read the regions of an annotation."""
    values = {region.get("from_name"): region.get("value") or {} for region in regions}
    choices = values.get("rating", {}).get("choices") or []
    return TaskAnswer(
        high=text_of(values.get("high", {}).get("text")),
        low=text_of(values.get("low", {}).get("text")),
        rating=rating_of(choices[0]) if len(choices) == 1 else None,
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
            canceled=bool(row.get("was_cancelled")),
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


class LabelStudioServer(AbstractContextManager["LabelStudioServer"]):
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

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Base URL, without a slash at its end."""
        return self._address.url

    def create_project(self, stage: Stage, *, title: str, annotators: int) -> int:
        """Create the project of a stage, and return its number."""
        with self._one_line_errors():
            project = self._client.projects.create(
                title=title,
                label_config=labeling_config(stage),
                expert_instruction=guidelines(stage),
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
        """Add proposals to tasks in one request, and show the proposals of the last one's model."""
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
        except (http_error, json.JSONDecodeError) as error:
            raise BackendError(
                f"No Label Studio answers at {self.url} ({type(error).__name__}). Start it, or "
                "give its address with --server."
            ) from None
        except api_error as error:
            status = error.status_code
            body = self._address.clean(json.dumps(error.body, default=str))
            fault: Exception = BackendError(
                f"{self.url} refused a request (status {status}): {body}"
            )
            if status in (401, 403):
                fault = InputError(
                    f"{self.url} refuses the token in {TOKEN} (status {status}). Create a personal "
                    "access token under Account & Settings; legacy tokens are off by default."
                )
            elif status == 404 and project is not None:
                fault = InputError(
                    f"Project {project} is not on {self.url}: it was deleted, or this is another "
                    "server. 'condsim build push --again' makes a new project for the unfinished "
                    "items; pulled annotations are safe."
                )
            raise fault from None


def _import_quietly(module: str, name: str) -> Any:  # noqa: ANN401
    """Return a class of the library, without the warnings of its imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(require(module, extra="build"), name)


class PushOptions(NamedTuple):
    """Title of a new project, and answers for each item; defaults depend on the stage.

    ``anyone``: answers of people outside the pool count; ``again``: make a new project.
    """

    title: str | None = None
    annotators: int | None = None
    anyone: bool = False
    again: bool = False


DEFAULT_OPTIONS = PushOptions()


class PushReport(NamedTuple):
    """Number of the project, all items of the stage, and counts of the push."""

    project: int
    is_new: bool
    items: int
    added: int
    repeated: int
    predictions: int


def push_items(
    store: AnnotationStore,
    server: LabelStudioServer,
    stage: Stage,
    items: Iterable[Item],
    options: PushOptions = DEFAULT_OPTIONS,
) -> PushReport:
    """Push items, see `items_to_annotate`, to the project of a stage; tasks that are there stay."""
    items = list(items)
    with sole_process(store.path.parent / "push"):
        check_push(store, stage, items, options)
        earlier = store.project(stage)
        is_new = earlier is None or options.again
        if is_new:
            default = earlier.annotators if earlier else DEFAULT_ANNOTATORS[stage]
            answers = options.annotators or default
            title = (options.title or f"{store.path.resolve().parent.name}: {stage}")[:50]
            number = server.create_project(stage, title=title, annotators=answers)
            everyone = options.anyone or stage == "qualification"
            # A server that was reinstalled gives the same number again.
            source = f"{server.url}#{number}#{token_hex(4)}"
            project = Project(server.url, number, source, answers, everyone)
            unsent = [replace(proposal, sent=False) for proposal in store.proposals(stage)]
            store.write(stage, [project, *unsent])
        else:
            number = project_on(store, server, stage).project
        fresh = store.add_items(stage, items)
        added = _add_missing_tasks(store, server, stage, number)
        predictions = _send_proposals(store, server, stage, number)
    total = len(store.items(stage))
    return PushReport(number, is_new, total, added, len(items) - fresh, predictions)


def check_push(
    store: AnnotationStore, stage: Stage, items: Sequence[Item], options: PushOptions
) -> None:
    """Reject items that no answer could count for."""
    project, annotators = store.project(stage), options.annotators
    if not items and not store.items(stage):
        raise InputError(f"There is nothing to annotate: the input of {stage!r} has no rows.")
    if project is not None and not options.again and annotators not in (None, project.annotators):
        raise InputError(
            f"The stage {stage!r} was pushed for {project.annotators} annotators an item, not "
            f"{annotators}. Omit the number, or push with --again."
        )
    if stage == "qualification" or options.anyone or (project is not None and project.anyone):
        return
    if not any(member.accepted for member in store.pool().values()):
        raise InputError(
            "The pool is empty, so no answer would count. Score the test with 'condsim build "
            "qualify', accept people with its --accept, or push with --anyone."
        )


def project_on(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> Project:
    """Return the project of a stage, after a check that it is on this server."""
    project = store.project(stage)
    if project is None:
        raise InputError(
            f"The stage {stage!r} was not pushed from {store.path.parent}; run 'condsim build push "
            f"{stage}' first."
        )
    if project.server != server.url:
        raise InputError(
            f"The stage {stage!r} was pushed to {project.server}, not to {server.url}. Use that "
            "--server, or push with --again."
        )
    # Raises an error if the project was deleted.
    server.count_annotations(project.project)
    return project


def _add_missing_tasks(
    store: AnnotationStore, server: LabelStudioServer, stage: Stage, project: int
) -> int:
    """Add unfinished items that the project lacks, and store the task of each item."""
    outcome = stage_outcome(store, stage)
    items = store.items(stage)
    present = {task.item for task in server.tasks(project)}
    missing = [
        {ITEM: item_id, **item.shown}
        for item_id, item in items.items()
        if item_id not in present and not outcome.has_enough(item_id)
    ]
    server.add_tasks(project, missing)
    tasks = {task.item: task.task for task in server.tasks(project)}
    store.write(stage, [replace(item, task=tasks.get(item.item_id)) for item in items.values()])
    return len(missing)


def _send_proposals(
    store: AnnotationStore, server: LabelStudioServer, stage: Stage, project: int
) -> int:
    tasks = {item.item_id: item.task for item in store.items(stage).values()}
    unsent = []
    for proposal in store.proposals(stage):
        task = tasks.get(proposal.item)
        if not proposal.sent and task is not None:
            unsent.append((task, proposal))
    for start in range(0, len(unsent), _PREDICTIONS_PER_REQUEST):
        batch = unsent[start : start + _PREDICTIONS_PER_REQUEST]
        server.add_predictions(project, stage, batch)
        # Marking each batch prevents sending it again after an interruption.
        store.write(stage, [replace(proposal, sent=True) for _, proposal in batch])
    return len(unsent)


class PullReport(NamedTuple):
    """Counts of a pull; foreign annotations belong to tasks that condsim did not push."""

    annotations: int
    new: int
    changed: int
    removed: int
    foreign: int


def store_annotations(
    store: AnnotationStore,
    stage: Stage,
    annotations: Mapping[str, Annotation],
    before: Mapping[str, Annotation],
    *,
    removed: Iterable[str],
    foreign: int,
) -> PullReport:
    """Store what a source has by the ids of the annotations, before and now, in one step."""
    differing = [row for key, row in annotations.items() if before.get(key) != row]
    gone = [replace(before[key], removed=True) for key in removed]
    store.write(stage, [*differing, *gone])
    new = len(annotations.keys() - before.keys())
    return PullReport(len(annotations), new, len(differing) - new, len(gone), foreign)


def pull_annotations(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> PullReport:
    """Fetch the annotations of a stage into the store, all of them or, on an error, none."""
    project = project_on(store, server, stage)
    source, items = project.source, store.items(stage)
    tasks = server.tasks(project.project)
    own_tasks = {task.item: task for task in tasks if task.item in items}
    names = _account_names(own_tasks.values(), server.accounts(), server.url)
    before = {row.annotation: row for row in store.annotations(stage, source=source)}
    annotations: dict[str, Annotation] = {}
    for task in own_tasks.values():
        for row in task.answers:
            # An account that was deleted keeps the name that it had.
            earlier = before[row.annotation].annotator if row.annotation in before else UNKNOWN
            name = names.get(row.annotator, earlier)
            annotations[row.annotation] = replace(row, source=source, annotator=name)
    removed = [key for key in before.keys() - annotations.keys() if before[key].item in own_tasks]
    foreign = sum(len(task.answers) for task in tasks if task.item not in items)
    return store_annotations(store, stage, annotations, before, removed=removed, foreign=foreign)


def _account_names(
    tasks: Iterable[RemoteTask], accounts: Mapping[str, str], url: str
) -> dict[str, str]:
    """Return the names of the accounts that gave answers; they must differ."""
    active = {answer.annotator for task in tasks for answer in task.answers}
    by_name: dict[str, str] = {}
    for account in sorted(accounts.keys() & active):
        name = accounts[account]
        twin = by_name.setdefault(name, account)
        if twin != account:
            raise InputError(
                f"Accounts {twin} and {account} on {url} both have the name {name!r}. Give one of "
                "them another e-mail address in Label Studio and pull again; nothing was changed."
            )
    return {account: name for name, account in by_name.items()}


def show_hints(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> int:
    """Show hints about pulled conditions on the pages of their pairs; return the pages changed."""
    if stage != "conditions":
        raise InputError(f"Hints are about written conditions; the stage {stage!r} has none.")
    project_on(store, server, stage)
    counted = stage_outcome(store, stage).counted
    changed = 0
    for item_id, item in store.items(stage).items():
        sentences = item.shown["sentence1"], item.shown["sentence2"]
        lines = []
        for annotation in counted[item_id]:
            for text in (annotation.answer.high or "", annotation.answer.low or ""):
                lines += [f"“{text}”: {hint.text}" for hint in hints_of(text, *sentences)]
        texts = {**item.shown, "hints": "\n".join(lines) or NO_HINTS}
        if item.task is not None and texts != item.shown:
            server.change_task(item.task, {ITEM: item_id, **texts})
            store.write(stage, [replace(item, shown=texts)])
            changed += 1
    return changed


def count_waiting(store: AnnotationStore, server: LabelStudioServer, stage: Stage) -> int | None:
    """Count the annotations on the server that were not pulled; None without a project there."""
    project = store.project(stage)
    if project is None or project.server == MTURK:
        return None
    pulled = store.annotations(stage, source=project_on(store, server, stage).source)
    finished = sum(not row.canceled for row in pulled)
    return max(0, server.count_annotations(project.project) - finished)
