"""Sources of the numbers of a page: data, models, settings and the command that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from condsim.evaluation.report import Report
from papers.columns import DEFAULT_BACKBONE
from papers.options import Options
from papers.results import BASELINE, Results

TASKS = {"c-sts": "C-STS", "sts-b": "STS-B"}


def facts(results: Results, command_text: str) -> Iterator[str]:
    """Describe the sources of the numbers, one text for each fact."""
    if results.experiment.kind in ("runs", "over-estimation") and results.measured:
        yield "Ours is measured on the dev file, which also chose the best epoch of each run."
        if any(line.column.in_papers and line.planned for line in results.lines):
            yield "Recipes of C-STS keep the last epoch instead, as its released code does."
        if "pearson" in results.experiment.metrics:
            yield "Pearson is measured on raw similarities, which no calibration has changed."
    prompting = results.experiment.kind == "prompting"
    use = "examples drawn from" if prompting else "fitted on"
    for measured in results.measured:
        rows = "?" if measured.valid_rows is None else f"{measured.valid_rows:,}"
        drawn = ", drawn with seed 0" if measured.valid_rows == measured.data.rows else ""
        yield (
            f"{TASKS[measured.task]}: {use} {measured.data.train.name} (revision "
            f"{measured.data.train_revision}), measured on {rows} labeled rows of "
            f"{measured.data.dev.name} (revision {measured.data.dev_revision}){drawn}."
        )
        if measured.baseline is None:
            yield f"{TASKS[measured.task]} has no conditions, so no {BASELINE}."
        elif not {"spearman", "pearson"} & set(results.experiment.metrics):
            yield f"{BASELINE}: Spearman {report_text(measured.baseline, 'spearman')}."
        if "over_estimated" in results.experiment.metrics and measured.baseline is not None:
            pairs = measured.baseline.contrasting_pairs
            yield f"Counted among the {pairs} pairs with unlike labels."
    yield from results.notes
    if not results.experiment.from_contexts:
        yield from _language_models(results) if prompting else _backbones(results)
    yield f"Made by `{command_text}`."


def _backbones(results: Results) -> Iterator[str]:
    """Describe the training or measurement and its changed settings."""
    ran = {line.column.key: line.column for line in results.lines if line.planned}
    for backbone in ran.values():
        seeds = sorted({s for line in results.lines if line.column == backbone for s in line.seeds})
        said = f"seeds {', '.join(map(str, seeds)) or 'none yet'}"
        if results.experiment.kind == "zero-shot":
            said = "as it is, nothing trained"
        yield f"Backbone {backbone.label}: `{backbone.model}`; {said}."
    if results.options.overrides and ran:
        changed = ", ".join(f"`{text}`" for text in results.options.overrides)
        yield f"Changed in every recipe: {changed}."


def _language_models(results: Results) -> Iterator[str]:
    """Describe the prompts and the reading of the answers."""
    chosen = results.options.prompts
    for model in chosen.models:
        lines = [
            line for line in results.lines if line.column.model == model.model and line.planned
        ]
        done = sum(bool(line.seeds) for line in lines)
        where = "behind a server" if chosen.base_url or model.hosted else "on this machine"
        yield (
            f"Language model {model.label}: `{_path_or_word(model.model)}`, {where}; {done} of "
            f"{len(lines)} rows finished; seed 0 for the examples and for the values of invalid "
            "answers."
        )
    if not chosen.models:
        yield "No language model was asked: name one with `--model`."
    elif "expected" in chosen.scoring:
        where = "The score is" if len(chosen.scoring) == 1 else "Where the head says so, it is"
        yield (
            f"{where} the expected value over the numbers a model might have said; where it "
            "gives no probabilities, the number it said."
        )


def command(name: str, options: Options) -> str:
    """The command that makes a page: ``python -m papers ccl-table4 --set epochs=2``.

    Folders of data and runs are left out, and so are absolute paths, addresses and budgets.
    """
    prompts, contexts = options.prompts, options.contexts
    backbones = () if options.backbones == (DEFAULT_BACKBONE,) else options.backbones
    rows = prompts.rows or contexts.rows
    named = [
        *(("--backbone", _path_or_word(column.model)) for column in backbones),
        *(("--model", _path_or_word(model.model)) for model in prompts.models),
        *(("--scoring", way) for way in prompts.scoring if prompts.scoring != ("text",)),
        ("--recipe", contexts.recipe and _path_or_word(str(contexts.recipe))),
        *(("--on", key) for key in contexts.only or ()),
        ("--rows", rows),
        *(("--set", f"'{text}'" if " " in text else text) for text in options.overrides),
        ("--seeds", options.seeds),
    ]
    words = ["python -m papers", name]
    words += [f"{option} {value}" for option, value in named if value is not None]
    words += ["--base-url URL"] * (prompts.base_url is not None) + ["--full"] * options.full
    return " ".join(words)


def _path_or_word(text: str) -> str:
    return "FOLDER" if Path(text).is_absolute() else text


def report_text(report: Report, metric: str) -> str:
    """A metric of the model of a report, such as ``30.1 [26.0, 34.0]``."""
    found = report.model.metrics[metric]
    return f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"
