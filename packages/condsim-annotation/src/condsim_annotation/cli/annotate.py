"""``condsim build push | pull | status | qualify | prefill | mturk``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli import files
from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim_annotation.exchange import PullReport
    from condsim_annotation.stages import Item
    from condsim_annotation.store import AnnotationStore

StageName = Literal["qualification", "conditions", "verification"]
StageArgument = Annotated[StageName, typer.Argument(help="Stage of the annotation.")]
Folder = Annotated[Path, typer.Option(help="Folder of the data set, with annotation.sqlite.")]
Server = Annotated[
    str,
    typer.Option(
        envvar="LABEL_STUDIO_URL",
        help="Address of Label Studio. The token is read from LABEL_STUDIO_API_KEY.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="qualification: triplets with known answers (default: a short test of condsim). "
        "conditions: sentence pairs. verification: conditions, as 'pull' wrote them. If omitted, "
        "earlier items stay."
    ),
]
Pairs = Annotated[Path | None, typer.Option(help="qualification: pairs to write conditions for.")]
Annotators = Annotated[
    int | None, typer.Option(min=1, help="Answers for each item (conditions: 1, verification: 3).")
]
Anyone = Annotated[
    bool, typer.Option("--anyone", help="Count the answers of everybody, not only of the pool.")
]
Output = Annotated[
    Path | None,
    typer.Option(help="File for the answers that count (.parquet or .csv)."),
    files.Output(".csv"),
]
DEFAULT_FOLDER = Path("annotation")
DEFAULT_URL = "http://localhost:8080"

app = typer.Typer(no_args_is_help=True)
mturk = typer.Typer(no_args_is_help=True)


def _open_store(folder: Path, *, make: bool = False) -> AnnotationStore:
    from condsim_annotation.store import AnnotationStore

    return AnnotationStore(folder, make=make)


def _read_items(
    store: AnnotationStore, stage: StageName, data: Path | None, pairs: Path | None
) -> Iterable[Item]:
    """Read the items of the input; none if it is omitted and the store has some."""
    from condsim_annotation.stages import items_to_annotate

    if data is None and stage in store.stages():
        return ()
    return items_to_annotate(stage, data, pairs=pairs)


def _show_pull(
    store: AnnotationStore, stage: StageName, report: PullReport, output: Path | None
) -> None:
    """Print the counts of a pull, and write the file of the stage."""
    from condsim_annotation.outcome import stage_outcome, write_stage

    foreign = f", {report.foreign} of tasks that are not condsim's" if report.foreign else ""
    typer.echo(
        f"{stage}: {report.annotations} annotations, {report.new} new, {report.changed} edited, "
        f"{report.removed} deleted{foreign}"
    )
    written = write_stage(store, stage, output)
    if written is not None:
        typer.echo(f"{stage}: {written[1]} rows in {written[0]}")
        _show_reasons(stage_outcome(store, stage).set_aside)


def _show_reasons(set_aside: Mapping[str, int]) -> None:
    for reason, number in set_aside.items():
        typer.echo(f"  {number} do not count: {reason}")


def _show_pool(store: AnnotationStore) -> None:
    pool = store.pool().values()
    typer.echo(f"pool: {sum(member.accepted for member in pool)} of {len(pool)} accepted")


@app.command()
def push(
    stage: StageArgument,
    data: Data = None,
    pairs: Pairs = None,
    folder: Folder = DEFAULT_FOLDER,
    server: Server = DEFAULT_URL,
    title: Annotated[str | None, typer.Option(help="Title of the project.")] = None,
    annotators: Annotators = None,
    anyone: Anyone = False,
    again: Annotated[
        bool, typer.Option("--again", help="Create a new project for the unfinished items.")
    ] = False,
) -> None:
    """Create the Label Studio project of a stage and add its tasks, each once.

    Run it again with more data, or after `condsim build prefill`: it adds only what is new.

    **Examples**

    `condsim build push qualification`

    `condsim build push verification --data annotation/conditions.parquet --annotators 3`
    """
    from condsim_annotation.exchange import PushOptions, open_server, push_items

    with open_server(server) as client, _open_store(folder, make=True) as store:
        items = _read_items(store, stage, data, pairs)
        options = PushOptions(title, annotators, anyone, again)
        report = push_items(store, client, stage, items, options)
    typer.echo(
        f"{stage}: project {report.project} {'created' if report.is_new else 'found'}, "
        f"{report.items} items, {report.added} tasks added, {report.repeated} rows that were there "
        f"already, {report.predictions} answers of models sent"
    )
    typer.echo(f"{client.url}/projects/{report.project}")


@app.command()
def pull(
    stage: StageArgument,
    folder: Folder = DEFAULT_FOLDER,
    server: Server = DEFAULT_URL,
    output: Output = None,
    hints: Annotated[
        bool, typer.Option("--hints", help="conditions: show hints where annotators can edit them.")
    ] = False,
) -> None:
    """Fetch annotations. Repeated runs add nothing twice.

    **Example**: `condsim build pull verification`
    """
    from condsim_annotation.exchange import open_server, pull_annotations, show_hints

    with open_server(server) as client, _open_store(folder) as store:
        _show_pull(store, stage, pull_annotations(store, client, stage), output)
        if hints:
            changed = show_hints(store, client, stage)
            typer.echo(f"{stage}: hints changed on {changed} pages")


@app.command()
def status(
    folder: Folder = DEFAULT_FOLDER,
    server: Server = DEFAULT_URL,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the server for new annotations.")
    ] = False,
) -> None:
    """Show the progress of each stage, and why answers do not count."""
    from condsim_annotation.exchange import count_waiting, open_server
    from condsim_annotation.outcome import stage_outcome

    with ExitStack() as stack:
        store = stack.enter_context(_open_store(folder))
        client = None if offline else stack.enter_context(open_server(server))
        for stage in store.stages():
            outcome = stage_outcome(store, stage)
            people = [row.annotator for rows in outcome.counted.values() for row in rows]
            line = f"{stage}: {len(outcome.counted)} items"
            if outcome.target:
                line += f", {outcome.done} done of {outcome.target} answers each"
            line += f"; {len(people)} answers by {len(set(people))} people"
            waiting = None if client is None else count_waiting(store, client, stage)
            typer.echo(line if waiting is None else f"{line}, {waiting} to pull")
            _show_reasons(outcome.set_aside)
            models = Counter(proposal.model for proposal in store.proposals(stage))
            for model, number in sorted(models.items()):
                typer.echo(f"  {number} started by {model}")
        _show_pool(store)


@app.command()
def qualify(
    folder: Folder = DEFAULT_FOLDER,
    min_conditions: Annotated[
        float, typer.Option(min=0, max=1, help="Minimum share of acceptable conditions.")
    ] = 0.8,
    min_ratings: Annotated[
        float, typer.Option(min=0, max=1, help="Minimum share of ratings within 1 of the answer.")
    ] = 0.8,
    accept: Annotated[list[str] | None, typer.Option(help="Annotator to accept untested.")] = None,
    reject: Annotated[list[str] | None, typer.Option(help="Annotator to reject.")] = None,
) -> None:
    """Score the qualification test and choose the pool of annotators.

    **Example**: `condsim build qualify --accept ann@example.org --reject bob@example.org`
    """
    from condsim_annotation.outcome import decide_by_hand, score_test

    with _open_store(folder, make=bool(accept)) as store:
        by_hand = decide_by_hand(store, accept=accept or (), reject=reject or ())
        if "qualification" in store.stages() or not by_hand:
            for row in score_test(store, min_conditions=min_conditions, min_ratings=min_ratings):
                verdict = {True: "passed", False: "failed", None: "not finished"}[row.accepted]
                typer.echo(
                    f"{row.annotator}: {verdict}; {row.answered} of {row.items} answered, "
                    f"conditions {row.condition_score:.2f}, ratings {row.rating_score:.2f}"
                )
        for member in by_hand:
            typer.echo(f"{member.annotator}: {'accepted' if member.accepted else 'rejected'}")
        _show_pool(store)


@app.command()
def prefill(
    stage: StageArgument,
    model: Annotated[
        str,
        typer.Option(
            help="verification: any model, such as 'default'. conditions: the YAML file of a "
            "prompted model, as 'condsim prompt --save' writes it."
        ),
    ] = "default",
    folder: Folder = DEFAULT_FOLDER,
) -> None:
    """Let a model answer first; annotators see its answers and change them.

    The model's name stays with every row it took part in. Push again to send the answers.

    **Example**: `condsim build prefill verification --model default`
    """
    from condsim_annotation.outcome import prefill_stage

    if stage == "qualification":
        raise InputError("A test cannot be prefilled; prefill conditions or verification.")
    with _open_store(folder) as store:
        name, done, unread = prefill_stage(store, stage, model)
    if stage == "verification":
        typer.echo(f"verification: {done} rows rated by {name}")
    else:
        typer.echo(
            f"conditions: {done} pairs started by {name}, {unread} answers that could not be read"
        )


@mturk.command()
def form(
    stage: StageArgument,
    output: Annotated[
        Path, typer.Option(help="Folder for the CSV and the HTML file."), files.FOLDER
    ],
    data: Data = None,
    pairs: Pairs = None,
    folder: Folder = DEFAULT_FOLDER,
    annotators: Annotators = None,
    anyone: Anyone = False,
) -> None:
    """Write the unfinished items as a CSV file, with the form that shows them."""
    from condsim_annotation.exchange import PushOptions
    from condsim_annotation.mturk import export_mturk

    with _open_store(folder, make=True) as store:
        items = _read_items(store, stage, data, pairs)
        options = PushOptions(annotators=annotators, anyone=anyone)
        table, page, number = export_mturk(store, stage, items, output, options)
    typer.echo(f"{stage}: {number} items in {table}, their page in {page}")


@mturk.command()
def results(
    stage: StageArgument,
    batch: Annotated[Path, typer.Argument(help="CSV file of a batch.")],
    folder: Folder = DEFAULT_FOLDER,
    output: Output = None,
) -> None:
    """Read the results of a batch; reading a file twice changes nothing."""
    from condsim_annotation.mturk import import_mturk

    with _open_store(folder) as store:
        _show_pull(store, stage, import_mturk(store, stage, batch), output)


app.add_typer(mturk, name="mturk", help="The same tasks for Amazon Mechanical Turk.")
