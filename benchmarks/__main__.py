"""``python -m benchmarks``: runs the benchmarks and prints one table."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.machine import facts, limit_cores
from benchmarks.result import Result, print_table, write_json
from benchmarks.rows import DATA
from condsim.errors import CondSimError


class Name(StrEnum):
    """The benchmarks, in the order they are run in."""

    SCORE_ONE = "score_one"
    SCORE_MANY = "score_many"
    TRAIN_EPOCH = "train_epoch"
    CCL_STEP = "ccl_step"
    PROMPT_LOCAL = "prompt_local"
    PROMPT_HTTP = "prompt_http"
    CONTEXTS_RETRIEVAL = "contexts_retrieval"
    CONTEXTS_MEMORY = "contexts_memory"
    CONTEXTS_ORIGIN = "contexts_origin"
    CONTEXTS_SURROGATE = "contexts_surrogate"
    ENCODE_SPEED = "encode_speed"
    SUITE_MTEB = "suite_mteb"
    SERVE = "serve"
    DEDUPE = "dedupe"
    SEARCH = "search"
    VERDICTS = "verdicts"


_WITH_PEER_MODEL = (Name.SCORE_ONE, Name.SCORE_MANY, Name.ENCODE_SPEED, Name.SERVE)


def main(
    only: Annotated[list[Name] | None, typer.Option(help="Run this one. Repeatable.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows and repeats: a trial, not a measurement.")
    ] = False,
    json: Annotated[
        Path | None, typer.Option(help="Write results and machine facts to this file.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores that both sides may use.")] = 2,
    data: Annotated[
        Path, typer.Option(help="C-STS training file; rows are generated if it is missing.")
    ] = DATA,
    peer_model: Annotated[
        Path | None,
        typer.Option(help="The default model in float32.", show_default="rebuilt from int8"),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(help="Folder of the model to train.", show_default="all-MiniLM-L6-v2"),
    ] = None,
    train_rows: Annotated[
        int, typer.Option(min=0, help="Rows of the training epoch; 0 for all.")
    ] = 3072,
    score_rows: Annotated[
        int, typer.Option(min=1000, help="Rows that score_many scores, of each file.")
    ] = 10_000,
) -> None:
    """Compare condsim with its peers; the exit status does not say who won."""
    used = limit_cores(cores)
    machine = facts()
    console = Console(width=None if sys.stdout.isatty() else 120)
    results: list[Result] = []
    for name in only or list(Name):
        console.print(f"running {name.value} ...")
        results += _run(
            name,
            quick=quick,
            data=data,
            peer_folder=peer_model,
            backbone=backbone,
            train_rows=768 if quick else train_rows,
            score_rows=1_000 if quick else score_rows,
        )
    print_table(results, console)
    console.print(f"{used} of {machine['cores']} cores, {machine['processor']}", markup=False)
    if json is not None:
        settings = {
            "quick": quick,
            "data": data.is_file(),
            "peer_model": peer_model and peer_model.name,
        }
        write_json(json, results, machine=machine, settings=settings)


def _run(
    name: Name,
    *,
    quick: bool,
    data: Path,
    peer_folder: Path | None,
    backbone: str | None,
    train_rows: int,
    score_rows: int,
) -> list[Result]:
    """Run one benchmark; torch is imported only now, when the number of cores is settled."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]  # one for every model loaded
    if name is Name.TRAIN_EPOCH:
        from benchmarks import train_epoch

        return train_epoch.run(backbone, data, rows=train_rows)
    if name is Name.CCL_STEP:
        from benchmarks import ccl_step

        return ccl_step.run(backbone, data, rows=train_rows, quick=quick)
    if name not in _WITH_PEER_MODEL:
        alone: list[Result] = import_module(f"benchmarks.{name.value}").run(quick=quick)
        return alone
    from benchmarks.models import peer_model

    peer = peer_model(peer_folder)
    if name is Name.SCORE_ONE:
        from benchmarks import score_one

        return score_one.run(peer, quick=quick)
    if name is Name.SCORE_MANY:
        from benchmarks import score_many

        return score_many.run(peer, data, rows=score_rows, quick=quick)
    module = import_module(f"benchmarks.{name.value}")
    found: list[Result] = module.run(peer, data, quick=quick)
    return found


if __name__ == "__main__":
    try:
        typer.run(main)
    except CondSimError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
