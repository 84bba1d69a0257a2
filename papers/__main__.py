"""``python -m papers NAME``: a table or figure of the papers, or the default model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from condsim.cli.process import long_work, run_app
from condsim.errors import InputError, check_name, requires_extra
from condsim_llm.backend import Scoring
from papers.catalogue import Experiment, load_experiment, names
from papers.columns import resolve_backbones, resolve_models
from papers.engine import open_work, reproduce
from papers.options import ContextsOptions, Options, PromptOptions, data_path

DEFAULT_MODEL = "default-model"
_DEFAULT_TITLE = "Both default models, made again from the data files"
_EVERYWHERE = ("name", "--list", "--data", "--runs", "--output", "--dry-run", "--report-only")
# By what an experiment does: the other options that it takes.
_OPTIONS = {
    "runs encoders; name them with --backbone": ("--backbone", "--set", "--seeds", "--full"),
    "learns from a corpus; name it with --recipe": (
        *("--recipe", "--on", "--rows", "--set", "--full"),
    ),
    "asks language models; name them with --model": (
        *("--model", "--base-url", "--scoring", "--max-requests", "--max-tokens", "--rows"),
    ),
    "makes two models; name what they start from with --backbone": ("--backbone",),
}
_ENCODERS, _CONTEXTS, _LANGUAGE_MODELS, _MODELS = _OPTIONS

app = typer.Typer(name="papers", rich_markup_mode="markdown", pretty_exceptions_enable=False)


@app.command()
def main(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Table or figure, such as ccl-table4.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print all names.")] = False,
    backbone: Annotated[
        list[str] | None,
        typer.Option(
            help="roberta-base, simcse-large ..., paper for the papers' five, a Hub name or a "
            "folder. Repeatable.",
            show_default="minilm",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Language model, for the tables of prompting: google/flan-t5-small, another Hub "
            "name, a folder, a GGUF file or a server's name for it. Repeatable.",
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="OpenAI-compatible server of these models, such as http://localhost:8000/v1. The "
            "key is read from OPENAI_API_KEY.",
            show_default=False,
        ),
    ] = None,
    scoring: Annotated[
        list[str] | None,
        typer.Option(
            help="text: the number in the answer. expected: the mean over the numbers the model "
            "might have said. Repeatable: each further one has separate columns.",
            show_default="text",
        ),
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Send at most this many prompts in all runs together.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Use at most this many tokens, counting prompts and answers."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data sets: csts-reannotated, sts-b, sts12-16, sick-r, corpus, "
            "captions, nli. If a file is missing, the error names it.",
            show_default=False,
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            help="For ssbc-...: recipe to start from, which names the corpus.",
            show_default="recipes/contexts/openstax.yaml",
        ),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="For ssbc-...: measure on this test set only: sts12 ... sts16, sts-b, sick-r. "
            "Repeatable.",
            show_default="all of the experiment",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=3,
            help="For ssbc-... and language models: use at most this many rows of a test set.",
            show_default="all",
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs of all experiments.")] = (
        Options.runs
    ),
    output: Annotated[Path, typer.Option(help="Folder for NAME.md, NAME.csv and NAME.png.")] = Path(
        "papers/docs/results"
    ),
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of every recipe."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds for every row.", show_default="the experiment's"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also run the rows left out by default.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the folders of the runs, and whether they are finished."
        ),
    ] = False,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only", help="Train and ask nothing; write the table of the finished runs."
        ),
    ] = False,
) -> None:
    """Repeat a table or figure of the papers.

    Trains the missing runs and writes the paper's numbers and ours side by side. Ctrl-C stops after
    the step in progress; the same command continues. Experiments share runs, so nothing is trained
    twice.

    csts-table4, csts-table11 and csts-table12 ask the language models of --model instead. They
    store each answer as it arrives, and no prompt is sent twice.

    The ssbc-... experiments learn similarity from the contexts of the corpus in --recipe. They make
    what rows share, such as models, only once.

    default-model makes the small and the large default model from the data sets and the data that
    condsim publishes; --backbone twice names the large and the small encoder to start from, and
    once a small model that is trained further, such as "default".

    **Examples**

    `python -m papers --list`

    `python -m papers ccl-table4 --data DATA --dry-run`

    `python -m papers csts-table3 --data DATA --set epochs=2`

    `python -m papers ccl-table3 --data DATA --backbone simcse-base --backbone minilm`

    `python -m papers csts-table11 --data DATA --model google/flan-t5-small
    --max-requests 2000`

    `python -m papers ssbc-table9 --data DATA --rows 300 --set selection.size=20`

    `python -m papers default-model --data DATA`
    """
    if list_:
        _print_names()
        return
    if name is None:
        raise InputError("Give the name of a table or figure; --list prints all of them.")
    given = _given(context)
    if name == DEFAULT_MODEL:
        reporting = ["--dry-run"] * dry_run + ["--report-only"] * report_only
        _check_options(name, _MODELS, [*reporting, *given])
        _make_default(backbone or (), Options(data, runs))
        return
    experiment = load_experiment(name)
    prompting = experiment.kind == "prompting"
    does = _CONTEXTS if experiment.from_contexts else _ENCODERS
    _check_options(name, _LANGUAGE_MODELS if prompting else does, given)
    if prompting and given and "--model" not in given:
        raise InputError(f"{given[0]} is of no use without a language model: name it with --model.")
    prompts = PromptOptions(
        models=resolve_models(model or ()),
        base_url=base_url,
        scoring=_scorings(scoring or ("text",)),
        rows=rows if prompting else None,
        max_requests=max_requests,
        max_tokens=max_tokens,
    )
    options = Options(
        data=data,
        runs=runs,
        backbones=resolve_backbones(backbone or ()),
        overrides=tuple(set_ or ()),
        seeds=seeds,
        full=full,
        prompts=prompts,
        contexts=ContextsOptions(
            recipe, tuple(on) if on else None, rows if experiment.from_contexts else None
        ),
    )
    if dry_run:
        _print_plan(experiment, options)
        return
    with long_work(log=None if report_only else "condsim") as progress:
        written = reproduce(experiment, options, output, report_only=report_only, progress=progress)
    typer.echo(f"{written.page}: {written.finished} of {written.planned} runs finished")


def _scorings(given: Sequence[str]) -> tuple[Scoring, ...]:
    for name in given:
        check_name("scoring", name, get_args(Scoring))
    return tuple(dict.fromkeys(cast(Sequence[Scoring], given)))


def _print_names() -> None:
    for name in names():
        typer.echo(f"{name:<18}{load_experiment(name).title}")
    typer.echo(f"{DEFAULT_MODEL:<18}{_DEFAULT_TITLE}")


def _print_plan(experiment: Experiment, options: Options) -> None:
    work = open_work(experiment, options)
    finished = {run.folder: work.finished(run) for run in work.runs}
    for folder, is_finished in finished.items():
        typer.echo(f"{'finished' if is_finished else 'to do   '}  {folder}")
    typer.echo(f"{sum(finished.values())} of {len(finished)} runs finished", err=True)


def _make_default(names: Sequence[str], options: Options) -> None:
    """Make both default models, or go on with one or both, and print their folders."""
    with requires_extra("train"):
        from papers.model.pipeline import Starts, make_models
        from papers.model.sources import HELD_OUT

    if len(names) > 2:
        raise InputError(
            "default-model takes --backbone twice, for the large and the small model, or once, for "
            "a small model that is trained further."
        )
    starts = Starts()
    if names:
        starts = Starts(names[0] if len(names) == 2 else None, names[-1])
    data = data_path(options, HELD_OUT).parents[1]
    with long_work():
        shipped = make_models(data, starts, options.runs / DEFAULT_MODEL)
    for model, folder in shipped.items():
        typer.echo(f"{model.name}: {folder}")


def _given(context: typer.Context) -> list[str]:
    """The options on the command line that some experiments do not have."""
    given = []
    for parameter in context.command.params:
        source, option = context.get_parameter_source(str(parameter.name)), parameter.opts[0]
        if source is not None and source.name == "COMMANDLINE" and option not in _EVERYWHERE:
            given.append(option)
    return given


def _check_options(name: str, does: str, given: Sequence[str]) -> None:
    for option in given:
        if option not in _OPTIONS[does]:
            raise InputError(f"{option} does not apply to {name}, which {does}.")


if __name__ == "__main__":
    run_app(app)
