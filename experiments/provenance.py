"""Where the figures of a page come from: data, models, settings and the command that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.experiment import FROM_CONTEXTS
from experiments.gold_sets import ContextsOptions
from experiments.language_models import hosted
from experiments.plan import Options
from experiments.results import Measured, Results

BASELINE = "condition-only baseline"
TASKS = {"c-sts": "C-STS", "sts-b": "STS-B"}


def facts(results: Results, options_text: str) -> Iterator[str]:
    """Where the figures come from.

    Args:
        results: The results.
        options_text: The command that makes the page.

    Yields:
        One text for each fact.
    """
    if results.experiment.kind in ("runs", "over-estimation") and results.measured:
        yield "Ours is measured on the dev file, which also chose the best epoch of each run."
    prompting = results.experiment.kind == "prompting"
    use = "examples drawn from" if prompting else "fitted on"
    for measured in results.measured:
        rows = "?" if measured.valid_rows is None else f"{measured.valid_rows:,}"
        yield (
            f"{TASKS[measured.task]}: {use} {measured.data.train.name} (revision "
            f"{measured.data.train_revision}), measured on {rows} labelled rows of "
            f"{measured.data.dev.name} (revision {measured.data.dev_revision})."
        )
        if measured.report is None:
            yield f"{TASKS[measured.task]} has no conditions, so no {BASELINE}."
        elif not {"spearman", "pearson"} & set(results.experiment.metrics):
            yield f"{BASELINE}: Spearman {baseline(measured, 'spearman')}."
        if "over_estimated" in results.experiment.metrics and measured.report is not None:
            yield f"Counted among the {measured.report.contrasting_pairs} pairs with unlike labels."
    yield from results.notes
    if results.experiment.kind not in FROM_CONTEXTS:
        yield from _language_models(results) if prompting else _backbones(results)
    yield f"Made by `{options_text}`."


def _backbones(results: Results) -> Iterator[str]:
    """What was trained or measured, and with which changes."""
    ran = {line.backbone.key: line.backbone for line in results.lines if line.planned}
    for backbone in ran.values():
        seeds = sorted(
            {s for line in results.lines if line.backbone == backbone for s in line.seeds}
        )
        said = f"seeds {', '.join(map(str, seeds)) or 'none yet'}"
        if results.experiment.kind == "zero-shot":
            said = "as it is, nothing trained"
        yield f"Backbone {backbone.label}: `{backbone.model}`; {said}."
    if results.options.overrides and ran:
        changed = ", ".join(f"`{text}`" for text in results.options.overrides)
        yield f"Changed in every recipe: {changed}."


def _language_models(results: Results) -> Iterator[str]:
    """What was asked, and how its answers were read."""
    chosen = results.options.prompts
    for model in chosen.models:
        lines = [line for line in results.lines if line.backbone == model]
        done = sum(bool(line.seeds) for line in lines)
        seeds = {seed for line in lines for seed in line.planned}
        where = "behind a server" if chosen.base_url or hosted(model) else "on this machine"
        yield (
            f"Language model {model.label}: `{_path_or_word(model.model)}`, {where}; {done} of "
            f"{len(lines)} rows finished; seed {', '.join(map(str, sorted(seeds)))} for the "
            "examples and for the values of invalid answers."
        )
    if not chosen.models:
        yield "No language model was asked: name one with `--model`."
    elif chosen.scoring == "expected":
        yield (
            "The score is the expected value over the numbers a model might have said; where it "
            "gives no probabilities, the number it said."
        )


def command(name: str, options: Options, defaults: Options) -> str:
    """The command that makes a page, without what is the default.

    Args:
        name: Name of the experiment.
        options: What was chosen.
        defaults: What would have been chosen.

    Returns:
        Such as ``condsim reproduce ccl-table4 --set epochs=2``; an absolute path is left out,
        and so are addresses and budgets.
    """
    words = ["condsim reproduce", name]
    if options.backbones != defaults.backbones:
        for backbone in options.backbones:
            words.append(f"--backbone {_path_or_word(backbone.model)}")
    for flag in ("data", "stsb", "runs"):
        path = getattr(options, flag)
        if path != getattr(defaults, flag):
            words.append(f"--{flag} {_path_or_word(str(path))}")
    words += [f"--model {_path_or_word(model.model)}" for model in options.prompts.models]
    if options.prompts.base_url is not None:
        words.append("--base-url URL")
    if options.prompts.scoring != defaults.prompts.scoring:
        words.append(f"--scoring {options.prompts.scoring}")
    words += _of_contexts(options.contexts, defaults.contexts)
    words += [f"--set '{text}'" if " " in text else f"--set {text}" for text in options.overrides]
    if options.seeds is not None:
        words.append(f"--seeds {options.seeds}")
    if options.full:
        words.append("--full")
    return " ".join(words)


def _of_contexts(chosen: ContextsOptions, defaults: ContextsOptions) -> Iterator[str]:
    for flag in ("recipe", "sts", "sick"):
        path = getattr(chosen, flag)
        if path != getattr(defaults, flag):
            yield f"--{flag} {_path_or_word(str(path))}"
    yield from (f"--on {key}" for key in chosen.only or ())
    if chosen.rows is not None:
        yield f"--rows {chosen.rows}"


def _path_or_word(text: str) -> str:
    return "FOLDER" if Path(text).is_absolute() else text


def baseline(measured: Measured, metric: str) -> str:
    """A figure of the condition-only baseline.

    Args:
        measured: Where it is measured.
        metric: Name of the figure.

    Returns:
        Such as ``30.1 [26.0, 34.0]``; ``-`` where there is none.
    """
    found = measured.report.model.metrics.get(metric) if measured.report else None
    if found is None:
        return "-"
    return f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"
