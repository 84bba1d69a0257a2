"""Runs what is not finished, and reads what is; several processes may share the work."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from condsim.errors import InputError, ModelError, require
from condsim.evaluation import Report
from condsim.training import finished_run, run_or_resume
from experiments.naming import digest, run_hash
from experiments.plan import DataFiles, Options, PlannedRun

_LOGGER = logging.getLogger("condsim")
_REPORT = "report.json"


def finished_report(run: PlannedRun) -> Report | None:
    """Reads the report of a run; imports no torch.

    Args:
        run: The run.

    Returns:
        Its evaluation on the dev file, or None if it is not finished.

    Raises:
        InputError: If its folder holds a run of another recipe or other data.
    """
    if not run.trained:
        path = run.folder / _REPORT
        return Report.from_json(path) if path.is_file() else None
    found = finished_run(run.folder)
    if found is None:
        return None
    there = run_hash(
        found.recipe,
        train_revision=found.train_revision,
        dev_revision=found.report.task_revision,
    )
    data = run.data
    expected = run_hash(
        run.recipe, train_revision=data.train_revision, dev_revision=data.dev_revision
    )
    if there != expected:
        raise InputError(
            f"{run.folder} holds another run: its recipe and data have the code {there}, and "
            f"{expected} is expected. Move it away."
        )
    return found.report


def run_missing(runs: Sequence[PlannedRun]) -> frozenset[str]:
    """Trains or scores what is not finished.

    Runs that another process is at are left to it and waited for at the end.

    Args:
        runs: The runs, each once.

    Returns:
        The backbones whose weights cannot be had; their runs are left out.

    Raises:
        KeyboardInterrupt: If Ctrl-C ended a run; the same call goes on from there.
        InputError: If data or recipes break a rule.
        ModelError: If a model is damaged, or its training diverged.
    """
    missing = [run for run in runs if finished_report(run) is None]
    if not missing:
        return frozenset()
    require("sentence_transformers", extra="train")
    absent = frozenset(
        backbone
        for backbone in dict.fromkeys(run.recipe.backbone for run in missing)
        if not _has_weights(backbone)
    )
    in_flight = []
    for run in missing:
        if run.recipe.backbone in absent:
            continue
        _LOGGER.info("%s", run.folder.name)
        if not run.trained:
            _score_untrained(run)
            continue
        run.folder.parent.mkdir(parents=True, exist_ok=True)
        if run_or_resume(run.recipe, run.folder, wait=False) is None:
            in_flight.append(run)
    for run in in_flight:
        _LOGGER.info("waiting for another process: %s", run.folder.name)
        run_or_resume(run.recipe, run.folder, wait=True)
    return absent


def condition_only(data: DataFiles, options: Options) -> Report:
    """Measures the condition-only baseline, fitted on the training file, or reads what was found.

    Args:
        data: The files.
        options: Where the runs are.

    Returns:
        The report on the dev file, whose model is the baseline.

    Raises:
        InputError: If the files break a rule.
    """
    code = digest({"train": data.train_revision, "dev": data.dev_revision})
    folder = options.runs / f"condition-only-{code}"
    if (folder / _REPORT).is_file():
        return Report.from_json(folder / _REPORT)
    from condsim.evaluation import evaluate
    from condsim.scorers import ConditionOnlyScorer
    from condsim.tasks import load_csts

    scorer = ConditionOnlyScorer().fit_task(load_csts(data.train, require_labels=True))
    report = evaluate(scorer, load_csts(data.dev), condition_only=scorer)
    folder.mkdir(parents=True, exist_ok=True)
    report.to_json(folder / _REPORT)
    return report


def _has_weights(backbone: str) -> bool:
    """Whether a backbone can be loaded; says in the log why not."""
    from condsim.encoders import load_backbone, without_progress_bars

    try:
        with without_progress_bars():
            load_backbone(backbone)
    except ModelError as error:
        _LOGGER.warning("not run: %s", error)
        return False
    return True


def _score_untrained(run: PlannedRun) -> None:
    """Measures a backbone as it is, on pairs with a condition or without (C-STS, Table 2)."""
    from condsim.encoders import build_bi_encoder, without_progress_bars
    from condsim.evaluation import evaluate
    from condsim.scorers import ConditionOnlyScorer, EncoderScorer
    from condsim.tasks import load_task

    recipe = run.recipe
    with without_progress_bars():
        model = build_bi_encoder(
            recipe.backbone, pooling=recipe.pooling, max_seq_length=recipe.max_seq_length
        )
    dev = load_task(run.data.dev, require_labels=True)
    baseline = ConditionOnlyScorer().fit_task(load_task(run.data.train, require_labels=True))
    report = evaluate(
        EncoderScorer(model, name=recipe.name, order=recipe.order), dev, condition_only=baseline
    )
    run.folder.mkdir(parents=True, exist_ok=True)
    report.to_json(run.folder / _REPORT)
