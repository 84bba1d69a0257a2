"""``condsim reproduce default-model``: the model that ships, from the data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from condsim.errors import InputError, require

NAME = "default-model"
TITLE = "The model that ships, made again from the data files"
OPTIONS = ("--backbone", "--teacher", "--seeds")
"""The options that it takes, beside those of every name."""


def reproduce_default(
    *, data: Path, runs: Path, backbones: Sequence[str], teacher: str | None, seeds: int | None
) -> None:
    """Makes the model, or goes on with it, and prints where it is and how it does.

    Args:
        data: Folder with ``train.csv`` and ``dev.csv``; ``captions`` and ``nli`` lie beside it.
        runs: The model's folder is ``default-model`` in it.
        backbones: Key, Hub name or folder of the backbone, one; all-MiniLM-L6-v2 if empty.
        teacher: Hub name or folder of the teacher's backbone; all-mpnet-base-v2 if None.
        seeds: Fine-tuned runs that are averaged; two if None.

    Raises:
        InputError: If a file is missing, an option makes no sense, or the folder holds a model of
            other files.
        MissingExtraError: If the extras ``train`` and ``build`` are not installed.
    """
    require("sentence_transformers", extra="train")
    from condsim.cli.running import long_work
    from experiments.backbones import resolve
    from experiments.default_model import DefaultModelFiles, make_default_model

    found = resolve(backbones)
    if len(found) > 1:
        raise InputError(f"{NAME} has one --backbone. Got {len(found)}.")
    captions = tuple(sorted((data.parent / "captions").glob("*.tsv.gz")))
    if not captions:
        raise InputError(f"{data.parent / 'captions'} has no files of captions (*.tsv.gz).")
    files = DefaultModelFiles(
        train=data / "train.csv",
        dev=data / "dev.csv",
        captions=captions,
        nli=data.parent / "nli",
        backbone=found[0].model,
    )
    if teacher is not None:
        files = replace(files, teacher=teacher)
    if seeds is not None:
        files = replace(files, seeds=tuple(range(1, seeds + 1)))
    with long_work() as stages:
        report = make_default_model(files, runs / NAME, stages)
    spearman = report.model.metrics["spearman"]
    typer.echo(
        f"{runs / NAME / 'exported'}: dev Spearman {spearman.value:.1f} "
        f"[{spearman.low:.1f}, {spearman.high:.1f}] before int8"
    )
