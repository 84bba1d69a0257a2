"""Averages of runs: one model whose weights are the mean of theirs.

Runs that differ in seed or settings but start from the same pre-trained weights mostly end in one
basin; the mean of their weights is then often better than each, at the cost of one model
(Wortsman et al., 2022, "Model soups", uniform soup). A share of the pre-trained weights in that
mean restores some of what training forgot (Wortsman et al., 2022, "Robust fine-tuning of zero-shot
models"). Neither is from the papers that condsim implements.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from condsim.errors import InputError, requires_extra

with requires_extra("train"):
    import torch

    from condsim.evaluation.report import Report
    from condsim.io import write_text
    from condsim.model.builders import without_progress_bars
    from condsim.model.torch import load_trained
    from condsim.training.callbacks import Model
    from condsim.training.card import write_model
    from condsim.training.data import load_data
    from condsim.training.folder import HISTORY, RECIPE, REPORT, check_new
    from condsim.training.recipe import Recipe, load_recipe, save_recipe
    from condsim.training.trainer import build_model

SHARED_KEYS = ("encoder", "backbone", "order", "pooling", "fusion", "rank", "dev")
"""Recipe keys in which the runs of an average must agree."""


@without_progress_bars()
def average_models(
    runs: Sequence[Path],
    output: Path,
    *,
    name: str | None = None,
    base_model: str | None = None,
    pretrained: str | None = None,
    pretrained_share: float = 0.1,
    float16: bool = False,
) -> Report:
    """Average finished runs into a new model folder, calibrated and measured on their dev file.

    Args:
        runs: Output folders of ``condsim train``, two or more; one is enough with ``pretrained``.
        output: A folder that is new or empty.
        name: Name of the model; the first run's if None.
        base_model: Name of the model that training began from, for the card; the backbone of the
            runs if None, which may be a run itself.
        pretrained: Folder or Hub name of the model that all training began from, which then has a
            share in the mean.
        pretrained_share: That share, above 0 and below 1; the runs share the rest equally.
        float16: Whether to store the weights in half the bytes; they are used as float32.

    Returns:
        The evaluation of the averaged model.

    Raises:
        InputError: If a folder is not a finished run, the runs differ in what they would score, or
            the share is out of its range.
    """
    if not 0 < pretrained_share < 1:
        raise InputError(
            f"The pre-trained share must be between 0 and 1; got {pretrained_share:g}."
        )
    if len(runs) < 2 and pretrained is None:
        raise InputError(f"An average needs two runs or more; got {len(runs)}.")
    recipes = _comparable_recipes(runs)
    recipe = recipes[0].replaced(name=name or recipes[0].name)
    has_new_layers = recipe.encoder != "bi-encoder" or recipe.transform
    if recipe.encoder == "cross-encoder" or (pretrained is not None and has_new_layers):
        raise InputError(
            "Only bi- and tri-encoders can be averaged, with a pre-trained model only bi-encoders "
            "without 'transform': others have layers that it lacks."
        )
    train, dev = load_data(recipe)
    models: list[Model] = [load_trained(str(run), device="cpu").model for run in runs]
    shares = [1 / len(runs)] * len(runs)
    if pretrained is not None:
        models.append(build_model(recipe.replaced(backbone=pretrained)))
        shares = [*(share * (1 - pretrained_share) for share in shares), pretrained_share]
    average_weights(models, shares)
    check_new(output)
    output.mkdir(parents=True, exist_ok=True)
    save_recipe(recipe, output / RECIPE)
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
    history: dict[str, object] = {"average_of": members}
    if pretrained is not None:
        history["pretrained"] = {"model": pretrained, "share": pretrained_share}
    write_text(output / HISTORY, json.dumps(history, indent=2))
    report.to_json(output / REPORT)
    return report


def average_weights(models: Sequence[Model], shares: Sequence[float]) -> None:
    """Set the weights of the first model to the mean of all; the shares sum to 1."""
    states = [model.state_dict() for model in models]
    shapes = [{name: tuple(value.shape) for name, value in state.items()} for state in states]
    for number, shape in enumerate(shapes[1:], start=2):
        if shape != shapes[0]:
            names = sorted(set(shapes[0].items()) ^ set(shape.items()))
            raise InputError(
                f"Only models of one architecture can be averaged; model {number} differs from the "
                f"first in {names[0][0]!r}."
            )
    with torch.no_grad():
        for name, value in states[0].items():
            if value.is_floating_point():
                parts = [
                    share * state[name].double()
                    for share, state in zip(shares, states, strict=True)
                ]
                value.copy_(torch.stack(parts).sum(dim=0))


def _comparable_recipes(runs: Sequence[Path]) -> list[Recipe]:
    """Recipes of finished runs, which must agree in what their models compute."""
    recipes: list[Recipe] = []
    for run in runs:
        if not (run / REPORT).is_file():
            raise InputError(
                f"{run} is not a finished run of 'condsim train' ({REPORT} is missing)."
            )
        recipes.append(load_recipe(run / RECIPE))
        for key in SHARED_KEYS:
            if getattr(recipes[-1], key) != getattr(recipes[0], key):
                raise InputError(
                    f"{run} cannot be averaged with {runs[0]}: their recipes differ in '{key}'."
                )
    return recipes
