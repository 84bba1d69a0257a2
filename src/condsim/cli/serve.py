"""``condsim serve``: serve a model over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.options import Model, TextFile
from condsim.cli.process import print_note
from condsim.data.text import DETECTED
from condsim.errors import InputError
from condsim.labeling import LabelSession, Session
from condsim.loading import load_encoder, load_scorer
from condsim.model.base import PairScorer
from condsim.model.criterion import Criterion
from condsim.pair_labeling import PairSession


def serve(
    host: Annotated[str, Option(help="Address; one that others reach needs a key.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    model: Model = None,
    index: Annotated[str | None, Option(help="Index to search; see condsim index.")] = None,
    criterion: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=FILE", help="Learned criterion, a condition of this name. Repeatable."
        ),
    ] = None,
    judge: options.JudgeName = None,
    label: Annotated[
        Path | None, Option(help="File of texts to label on the page /label; see condsim label.")
    ] = None,
    condition: Annotated[
        str | None, Option(help="What to tell the texts of --label apart by.")
    ] = None,
    output: Annotated[
        Path | None, Option(help="CSV file of the labels of --label."), Output(".csv")
    ] = None,
    pairs: Annotated[
        bool, Option("--pairs", help="On /label, ask whether two texts are the same or different.")
    ] = False,
    column: options.TextColumn = "text",
    api_key_file: Annotated[
        Path | None, Option(help="File of API keys, one a line.", show_default="no key")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        Option(help="Origin whose pages may ask from a browser, or *.", show_default="none"),
    ] = None,
    max_bytes: Annotated[int, Option(help="Maximum bytes of a request body.")] = 8 * 2**20,
    max_rows: Annotated[int, Option(help="Maximum texts, or pairs times conditions.")] = 2048,
    max_characters: Annotated[int, Option(help="Maximum characters of a text.")] = 50_000,
    queue_rows: Annotated[int, Option(help="Maximum waiting rows of 512 characters.")] = 8192,
    batch_rows: Annotated[int, Option(help="Maximum rows in a batch.")] = 64,
    time_limit: Annotated[float, Option(help="Seconds to answer a request.")] = 120,
) -> None:
    """Serve a model over HTTP: scores, embeddings and reranking under a condition, and a page.

    Accepts the requests of OpenAI, Cohere, Jina and text-embeddings-inference clients, with an
    optional `condition` or the header `X-Condsim-Condition`; `/` is a page to try it. Requests of
    all callers are batched. SIGTERM and Ctrl-C finish the accepted requests.

    **Examples**

    `condsim serve`

    `condsim serve --index tickets.index`

    `condsim serve --criterion problem=problem.criterion`

    `condsim serve --label tickets.csv --condition "the problem" --output problem.csv`

    `condsim serve --host 0.0.0.0 --port 8080 --api-key-file keys.txt --model runs/mine`
    """
    from condsim.serving.app import create_app, run_server
    from condsim.serving.middleware import ServingSettings, check_address, read_keys

    settings = ServingSettings(
        max_bytes=max_bytes,
        max_rows=max_rows,
        max_characters=max_characters,
        queue_rows=queue_rows,
        batch_rows=batch_rows,
        time_limit=time_limit,
    )
    keys = () if api_key_file is None else read_keys(api_key_file)
    check_address(host, has_key=bool(keys))
    search_index = None
    if index is not None:
        from condsim.search.index import Index

        search_index = Index.open(index, model=model)
        model = model or search_index.about.model
    scorer = load_scorer(model)
    criteria = _criteria(criterion or ())
    logging.basicConfig(level=logging.WARNING)

    def announce(address: str) -> None:
        print_note(f"{scorer.name} at {address} (Ctrl-C stops)")
        print_note("" if label is None else f"Label texts on {address}/label")

    # Slow to import.
    from condsim.model.judge import load_judge

    with ExitStack() as stack:
        session: Session[Any] | None = None
        if label is not None:
            kind = PairSession if pairs else LabelSession
            session = stack.enter_context(_session(kind, label, column, condition, output, scorer))
        app = create_app(
            scorer,
            settings=settings,
            keys=keys,
            index=search_index,
            origins=allow_origin or (),
            criteria=criteria,
            session=session,
            judge=None if judge is None else load_judge(judge),
        )
        try:
            run_server(app, host=host, port=port, announce=announce)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _session(
    kind: type[LabelSession | PairSession],
    file: Path,
    column: str,
    condition: str | None,
    output: Path | None,
    scorer: PairScorer,
) -> AbstractContextManager[Session[Any]]:
    if condition is None or output is None or output.suffix != ".csv":
        raise InputError(
            "--label needs --condition, such as 'the problem', and --output, a CSV file."
        )
    rows = TextFile(file, column, DETECTED, tables=False, strict=False)
    return kind.open(rows, condition, model=load_encoder(scorer), output=output)


def _criteria(options: Sequence[str]) -> dict[str, Criterion]:
    criteria = {}
    for option in options:
        name, separator, file = option.partition("=")
        if not (separator and name.strip() and file):
            raise InputError(f"--criterion must be NAME=FILE; got {option!r}.")
        criteria[name.strip()] = Criterion.load(file)
    return criteria
