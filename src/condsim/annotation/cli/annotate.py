"""``condsim build push | pull | status | qualify | prefill | mturk``: people annotate."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.running import check_outputs

if TYPE_CHECKING:
    from condsim.annotation.exchange import Pulled
    from condsim.annotation.stages import Item
    from condsim.annotation.store import AnnotationStore

Stage = Literal["qualification", "conditions", "verification"]
StageArgument = Annotated[Stage, typer.Argument(help="Stage of the annotation.")]
Folder = Annotated[
    Path, typer.Option(help="Folder of the data set; annotation.sqlite is kept in it.")
]
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
        help="qualification: triplets with known answers (a short test of condsim's own if left "
        "out). conditions: sentence pairs. verification: conditions, as 'pull' wrote them. Left "
        "out, what was handed out before stays."
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(
        help="qualification: pairs to write conditions for.", show_default="condsim's own"
    ),
]
Annotators = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Answers wanted for each item.",
        show_default="1 for conditions, 3 for verification",
    ),
]
Anyone = Annotated[
    bool, typer.Option("--anyone", help="Count the answers of everybody, not only of the pool.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="Where to write what counts (.parquet or .csv).",
        show_default="conditions.parquet or ratings.parquet in the folder",
    ),
]
FOLDER = Path("annotation")
URL = "http://localhost:8080"

app = typer.Typer(no_args_is_help=True)
mturk = typer.Typer(no_args_is_help=True)


def items_of(
    store: AnnotationStore, stage: Stage, data: Path | None, pairs: Path | None
) -> Iterable[Item]:
    """The items of the input; none where it is left out and there are some already."""
    from condsim.annotation.stages import items_to_annotate

    if data is None and stage in store.stages():
        return ()
    return items_to_annotate(stage, data, pairs=pairs)


def show_pulled(store: AnnotationStore, stage: Stage, pulled: Pulled, output: Path | None) -> None:
    """Prints what a pull brought, and writes the file of the stage."""
    from condsim.annotation.outcome import write_stage

    foreign = f", {pulled.foreign} of tasks that are not condsim's" if pulled.foreign else ""
    typer.echo(
        f"{stage}: {pulled.annotations} annotations, {pulled.new} new, {pulled.changed} edited, "
        f"{pulled.removed} deleted{foreign}"
    )
    written = write_stage(store, stage, output)
    if written is not None:
        typer.echo(f"{stage}: {written.rows} rows in {written.path}")
        show_reasons(written.set_aside)


def show_reasons(set_aside: Iterable[tuple[str, int]]) -> None:
    """Prints why answers do not count."""
    for reason, number in set_aside:
        typer.echo(f"  {number} do not count: {reason}")


def show_pool(store: AnnotationStore) -> None:
    """Prints how many annotators are accepted."""
    pool = store.pool().values()
    typer.echo(f"pool: {sum(member.accepted for member in pool)} of {len(pool)} accepted")


@app.command()
def push(
    stage: StageArgument,
    data: Data = None,
    pairs: Pairs = None,
    folder: Folder = FOLDER,
    server: Server = URL,
    title: Annotated[
        str | None, typer.Option(help="Title of the project.", show_default="folder and stage")
    ] = None,
    annotators: Annotators = None,
    anyone: Anyone = False,
    again: Annotated[
        bool, typer.Option("--again", help="Make a new project for the unfinished items.")
    ] = False,
) -> None:
    """Make the Label Studio project of a stage and put its tasks there, each once.

    Run it again with more data, or after `condsim build prefill`: only what is new is added.

    **Examples**

    `condsim build push qualification`

    `condsim build push conditions --data pairs.parquet`

    `condsim build push verification --data annotation/conditions.parquet --annotators 3`
    """
    from condsim.annotation.exchange import push as hand_out
    from condsim.annotation.label_studio import open_server
    from condsim.annotation.store import AnnotationStore

    with open_server(server) as where, AnnotationStore(folder, make=True) as store:
        done = hand_out(
            store,
            where,
            stage,
            items_of(store, stage, data, pairs),
            title=title,
            annotators=annotators,
            anyone=anyone,
            again=again,
        )
    typer.echo(
        f"{stage}: project {done.project} {'made' if done.made else 'found'}, {done.items} items, "
        f"{done.added} tasks added, {done.repeated} rows that were there already, "
        f"{done.predictions} answers of models handed out"
    )
    typer.echo(f"{where.url}/projects/{done.project}")


@app.command()
def pull(
    stage: StageArgument,
    folder: Folder = FOLDER,
    server: Server = URL,
    output: Output = None,
    hints: Annotated[
        bool,
        typer.Option(
            "--hints",
            help="conditions: show hints at doubtful conditions on the pages of their pairs, "
            "where annotators can edit them.",
        ),
    ] = False,
) -> None:
    """Fetch annotations. Repeated runs add nothing twice.

    **Example**: `condsim build pull verification`
    """
    from condsim.annotation.exchange import give_hints, pull as fetch
    from condsim.annotation.label_studio import open_server
    from condsim.annotation.store import AnnotationStore

    check_outputs(output=output)
    with open_server(server) as where, AnnotationStore(folder) as store:
        show_pulled(store, stage, fetch(store, where, stage), output)
        if hints:
            changed = give_hints(store, where, stage)
            typer.echo(f"{stage}: hints changed on {changed} pages")


@app.command()
def status(
    folder: Folder = FOLDER,
    server: Server = URL,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the server what waits there.")
    ] = False,
) -> None:
    """Show how far each stage is, and why answers do not count."""
    from condsim.annotation.exchange import stage_status
    from condsim.annotation.label_studio import open_server
    from condsim.annotation.store import AnnotationStore

    with ExitStack() as opened:
        store = opened.enter_context(AnnotationStore(folder))
        where = None if offline else opened.enter_context(open_server(server))
        for stage in store.stages():
            one = stage_status(store, stage, where)
            finished = f", {one.done} done of {one.wanted} answers each" if one.wanted else ""
            waiting = f", {one.waiting} to pull" if one.waiting is not None else ""
            typer.echo(
                f"{stage}: {one.items} items{finished}; {one.counted} answers by {one.people} "
                f"people{waiting}"
            )
            show_reasons(one.set_aside)
            for model, number in one.proposals:
                typer.echo(f"  {number} started by {model}")
        show_pool(store)


@app.command()
def qualify(
    folder: Folder = FOLDER,
    min_conditions: Annotated[
        float, typer.Option(help="Share of written conditions that must do.")
    ] = 0.8,
    min_ratings: Annotated[
        float, typer.Option(help="Share of ratings that must be within 1 of the known answer.")
    ] = 0.8,
    accept: Annotated[
        list[str] | None, typer.Option(help="Take this annotator in, whatever the test says.")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(help="Take this annotator out; answers no longer count.")
    ] = None,
) -> None:
    """Score the qualification test and choose the pool of annotators.

    **Examples**

    `condsim build qualify --min-ratings 0.9`

    `condsim build qualify --accept ann@example.org --reject bob@example.org`
    """
    from condsim.annotation.outcome import decide_by_hand, score_test
    from condsim.annotation.store import AnnotationStore

    with AnnotationStore(folder, make=bool(accept)) as store:
        by_hand = decide_by_hand(store, accept=accept or (), reject=reject or ())
        if "qualification" in store.stages() or not by_hand:
            for one in score_test(store, min_conditions=min_conditions, min_ratings=min_ratings):
                verdict = {True: "passed", False: "failed", None: "not finished"}[one.accepted]
                typer.echo(
                    f"{one.annotator}: {verdict}; {one.answered} of {one.items} answered, "
                    f"conditions {one.condition_score:.2f}, ratings {one.rating_score:.2f}"
                )
        for member in by_hand:
            typer.echo(f"{member.annotator}: {'accepted' if member.accepted else 'rejected'}")
        show_pool(store)


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
    name: Annotated[
        str | None, typer.Option(help="Name kept with each row.", show_default="that of the model")
    ] = None,
    folder: Folder = FOLDER,
) -> None:
    """Let a model answer first; annotators see its answers and change them.

    The model's name stays with every row it had a hand in. Push once more to hand the answers out.

    **Example**: `condsim build prefill verification --model default`
    """
    from condsim.annotation.prefill import prefill as answer_first
    from condsim.annotation.store import AnnotationStore
    from condsim.errors import InputError

    if stage == "qualification":
        raise InputError("A test is not helped with: prefill conditions or verification.")
    with AnnotationStore(folder) as store:
        one = answer_first(store, stage, model, name=name)
    if stage == "verification":
        typer.echo(f"verification: {one.done} rows rated by {one.model}")
    else:
        typer.echo(
            f"conditions: {one.done} pairs started by {one.model}, {one.unread} answers that could "
            "not be read"
        )


@mturk.command()
def form(
    stage: StageArgument,
    output: Annotated[Path, typer.Option(help="Folder for the CSV and the HTML file.")],
    data: Data = None,
    pairs: Pairs = None,
    folder: Folder = FOLDER,
    annotators: Annotators = None,
    anyone: Anyone = False,
) -> None:
    """Write the items that are not done as a CSV file, with the form that shows them."""
    from condsim.annotation.mturk import export_mturk
    from condsim.annotation.store import AnnotationStore

    with AnnotationStore(folder, make=True) as store:
        items = items_of(store, stage, data, pairs)
        table, page, number = export_mturk(
            store, stage, items, output, annotators=annotators, anyone=anyone
        )
    typer.echo(f"{stage}: {number} items in {table}, their page in {page}")


@mturk.command()
def results(
    stage: StageArgument,
    batch: Annotated[Path, typer.Argument(help="CSV file of a batch.")],
    folder: Folder = FOLDER,
    output: Output = None,
) -> None:
    """Read the results of a batch; twice the same file changes nothing."""
    from condsim.annotation.mturk import import_mturk
    from condsim.annotation.store import AnnotationStore

    check_outputs(output=output)
    with AnnotationStore(folder) as store:
        show_pulled(store, stage, import_mturk(store, stage, batch), output)


app.add_typer(mturk, name="mturk", help="The same tasks for Amazon Mechanical Turk.")
