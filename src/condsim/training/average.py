"""Averages the weights of models trained from one backbone (a "model soup").

Runs that differ in seed or settings but start from the same pre-trained weights mostly end in one
basin; the mean of their weights is then often better than each, at the cost of one model
(Wortsman et al., 2022, "Model soups", uniform soup). Not from the papers condsim implements.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from condsim.encoders import without_progress_bars
from condsim.errors import InputError
from condsim.evaluation import Report
from condsim.files import write_text
from condsim.scorers import EncoderScorer, load_trained
from condsim.training.data import load_dev, load_train
from condsim.training.folder import HISTORY, RECIPE, REPORT, prepare_output
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.saving import write_model
from condsim.training.trainer import Model


def average_weights(models: Sequence[Model]) -> None:
    """Gives the first model the mean of the weights of all.

    Args:
        models: Two models or more of one architecture; the first is changed.

    Raises:
        InputError: If there are fewer than two, or their weights differ in name or shape.
    """
    if len(models) < 2:
        raise InputError(f"An average needs two models or more. Got {len(models)}.")
    states = [model.state_dict() for model in models]
    shapes = [{name: tuple(value.shape) for name, value in state.items()} for state in states]
    for number, shape in enumerate(shapes[1:], start=2):
        if shape != shapes[0]:
            names = sorted(set(shapes[0].items()) ^ set(shape.items()))
            raise InputError(
                f"Only models of one architecture can be averaged. Model {number} differs from the "
                f"first in {names[0][0]!r}."
            )
    with torch.no_grad():
        for name, value in states[0].items():
            if value.is_floating_point():
                mean = torch.stack([state[name].double() for state in states]).mean(dim=0)
                value.copy_(mean)


@without_progress_bars()
def average_models(
    runs: Sequence[Path],
    output: Path,
    *,
    name: str | None = None,
    base_model: str | None = None,
    float16: bool = False,
) -> Report:
    """Averages finished runs into a new model folder, calibrated and measured on their dev file.

    Args:
        runs: Output folders of ``condsim train``, two or more.
        output: A folder that is new or empty.
        name: Name of the model; that of the first run if None.
        base_model: What the card names as the model that training began from; the backbone of the
            runs if None, which may be a run itself.
        float16: Whether the weights are stored in half the bytes (and used as float32 still).

    Raises:
        InputError: If a folder is no finished run, or the runs differ in what they would score.
    """
    recipes = [_finished(run) for run in runs]
    recipe = recipes[0].replaced(name=name or recipes[0].name)
    for run, other in zip(runs, recipes, strict=True):
        for key in ("encoder", "backbone", "order", "pooling", "fusion", "rank", "dev"):
            if getattr(other, key) != getattr(recipe, key):
                raise InputError(
                    f"{run} cannot be averaged with {runs[0]}: their recipes differ in '{key}'."
                )
    train, dev = load_train(recipe), load_dev(recipe)
    models = [_model(run) for run in runs]
    average_weights(models)
    prepare_output(output, recipe, resume=False)
    report = write_model(
        models[0],
        recipe,
        output,
        train=train,
        dev=dev,
        runs=len(runs),
        base_model=base_model,
        float16=float16,
    )
    members = {str(run): member.model_dump() for run, member in zip(runs, recipes, strict=True)}
    write_text(output / HISTORY, json.dumps({"average_of": members}, indent=2))
    report.to_json(output / REPORT)
    return report


def _finished(run: Path) -> Recipe:
    if not (run / REPORT).is_file():
        raise InputError(f"{run} is no finished run of 'condsim train' (there is no {REPORT}).")
    return load_recipe(run / RECIPE)


def _model(run: Path) -> Model:
    scorer = load_trained(str(run), device="cpu")
    if not isinstance(scorer, EncoderScorer):
        raise InputError(f"{run} is no bi- or tri-encoder; only those can be averaged.")
    return scorer.model
