"""``condsim build push | pull | status | qualify | prefill | mturk``: people annotate."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.build import mturk as build_mturk
from condsim.cli.build.stage import (
    FOLDER,
    URL,
    Annotators,
    Anyone,
    Data,
    Folder,
    Output,
    Pairs,
    Server,
    StageArgument,
    StageName,
    print_pulled,
    works_of,
    write_file,
)
from condsim.cli.running import check_output

if TYPE_CHECKING:
    from condsim.construction import Store


def rate(store: Store, model: str, name: str | None) -> str:
    """Rates the verification stage.

    Args:
        store: The store.
        model: As `condsim.loading.load_scorer` takes it.
        name: Name of the model in the rows; its own if None.

    Returns:
        What was done, one line.
    """
    from condsim.construction import rate_rows
    from condsim.loading import load_scorer

    scorer = load_scorer(model)
    shown = name or scorer.name
    return f"verification: {rate_rows(store, scorer, model=shown)} rows rated by {shown}"


def propose(store: Store, model: str, name: str | None) -> str:
    """Proposes conditions.

    Args:
        store: The store.
        model: YAML file of a prompted model.
        name: Name of the model in the rows; its own if None.

    Returns:
        What was done, one line.

    Raises:
        InputError: If the model is no YAML file.
    """
    from condsim.construction import PROPOSAL_TOKENS, propose_conditions
    from condsim.prompting import open_asker

    asker, found = open_asker(Path(model), new_tokens=PROPOSAL_TOKENS)
    shown = name or found
    proposed, unread = propose_conditions(store, asker, model=shown)
    return (
        f"conditions: {proposed} pairs started by {shown}, {unread} answers that could not be read"
    )


app = typer.Typer(no_args_is_help=True)


@app.command()
def push(
    stage: StageArgument,
    data: Data = None,
    pairs: Pairs = None,
    folder: Folder = FOLDER,
    server: Server = URL,
    title: Annotated[
        str | None,
        typer.Option(help="Title of the project.", show_default="folder and stage"),
    ] = None,
    annotators: Annotators = None,
    anyone: Anyone = False,
    again: Annotated[
        bool, typer.Option("--again", help="Make a new project for what is not done.")
    ] = False,
) -> None:
    """Make the Label Studio project of a stage and put its tasks there, each once.

    Run it again with more data, or after `condsim build prefill`: only what is new is added.

    **Examples**

    `condsim build push qualification`

    `condsim build push conditions --data pairs.parquet`

    `condsim build push verification --data annotation/conditions.parquet --annotators 3`
    """
    from condsim.construction import Store, open_server, push as hand_out, stage_of

    name = stage_of(stage.value)
    with open_server(server) as where, Store(folder, make=True) as store:
        done = hand_out(
            store,
            where,
            name,
            works_of(store, name, data, pairs),
            title=title,
            annotators=annotators,
            anyone=anyone,
            again=again,
        )
    typer.echo(
        f"{name}: project {done.project} {'made' if done.made else 'found'}, {done.items} items, "
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
    """Fetch what annotators did. Run it as often as you like: nothing doubles.

    **Example**: `condsim build pull verification`
    """
    from condsim.construction import Store, give_hints, open_server, pull as fetch, stage_of

    check_output("--output", output)
    name = stage_of(stage.value)
    with open_server(server) as where, Store(folder) as store:
        print_pulled(name, fetch(store, where, name))
        write_file(store, name, folder, output)
        if hints:
            changed = give_hints(store, where, name)
            typer.echo(f"{name}: hints changed on {changed} pages")


@app.command()
def status(
    folder: Folder = FOLDER,
    server: Server = URL,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the server what waits there.")
    ] = False,
) -> None:
    """Show how far each stage is, and why answers do not count."""
    from condsim.construction import MTURK, Store, open_server, progress_of

    with ExitStack() as opened:
        store = opened.enter_context(Store(folder))
        where = None if offline else opened.enter_context(open_server(server))
        for stage in store.stages():
            project = store.project(stage)
            asked = where if project is not None and project.server != MTURK else None
            one = progress_of(store, stage, asked)
            wanted = f" of {one.wanted} answers each" if one.wanted else ""
            finished = f", {one.done} done{wanted}" if one.wanted else ""
            waiting = f", {one.waiting} to pull" if one.waiting is not None else ""
            typer.echo(
                f"{stage}: {one.items} items{finished}; {one.counted} answers by {one.people} "
                f"people{waiting}"
            )
            for reason, number in one.set_aside:
                typer.echo(f"  {number} do not count: {reason}")
            for model, number in one.proposals:
                typer.echo(f"  {number} started by {model}")
        pool = store.pool().values()
        typer.echo(f"pool: {sum(member.accepted for member in pool)} of {len(pool)} accepted")


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
        list[str] | None,
        typer.Option(help="Take this annotator in, whatever the test says.", show_default=False),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(help="Take this annotator out; answers no longer count.", show_default=False),
    ] = None,
) -> None:
    """Score the qualification test and choose the pool of annotators.

    **Examples**

    `condsim build qualify --min-ratings 0.9`

    `condsim build qualify --accept ann@example.org --reject bob@example.org`
    """
    from condsim.construction import Store, decide_by_hand, score_test

    with Store(folder, make=bool(accept)) as store:
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
        pool = store.pool().values()
        typer.echo(f"pool: {sum(member.accepted for member in pool)} of {len(pool)} accepted")


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
        str | None,
        typer.Option(help="Name kept with each row.", show_default="that of the model"),
    ] = None,
    folder: Folder = FOLDER,
) -> None:
    """Let a model answer first; annotators see its answers and change them.

    The model's name stays with every row it had a hand in. Push once more to hand the answers out.

    **Example**: `condsim build prefill verification --model default`
    """
    from condsim.construction import Store
    from condsim.errors import InputError

    if stage is StageName.QUALIFICATION:
        raise InputError("A test is not helped with: prefill conditions or verification.")
    with Store(folder) as store:
        helper = rate if stage is StageName.VERIFICATION else propose
        typer.echo(helper(store, model, name))


app.add_typer(build_mturk.app, name="mturk", help="The same tasks for Amazon Mechanical Turk.")
